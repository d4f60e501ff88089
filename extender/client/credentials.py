"""Where the API server is, how a connection to it is made, and by which identity: values, compared by what they hold.

client/identity reads them from a kubeconfig or from the pod; client/transport makes new connections where the route differs.
client-go: rest.Config, transport.TLSConfig
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import urllib3

from extender.redaction import redacted

_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")
MAX_ERROR = 500  # characters of an error, of which a value that is quoted may be any number


class IdentityError(Exception):
    """No usable kubeconfig, or not in a cluster. The text names the file and the place, on one line, and no secret."""

    def __init__(self, text: str) -> None:
        line = "".join(char if char.isprintable() else "?" for char in " ".join(redacted(text).split()))
        if len(line) > MAX_ERROR:
            line = f"{line[: MAX_ERROR * 3 // 4]} ... {line[-MAX_ERROR // 5 :]}"
        super().__init__(line)


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM that was read. place: where it is from, for errors."""

    place: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Route:
    """server: URL of the API server without a path. path: in front of all others, or empty. proxy: URL, or empty.

    server_name: what the server's certificate has to be for, if not for its host. verify: False trusts any certificate.
    """

    server: str
    path: str = ""
    proxy: str = ""
    server_name: str = ""
    verify: bool = True
    authority: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None

    @classmethod
    def to(cls, url: str, **rest: Any) -> Route:
        """Raises ValueError for what is not the URL of a server."""
        parsed = http_url(url)
        port = f":{parsed.port}" if parsed.port else ""
        return cls(f"{parsed.scheme}://{parsed.host}{port}", (parsed.path or "").rstrip("/"), **rest)

    def check(self) -> None:
        """Raises IdentityError for what no connection can be made with."""
        self.ssl_context()

    @property
    def target(self) -> str:
        """In front of a request's path: a proxy is given the whole URL where it does not only pass bytes on."""
        return self.path if self.tls or not self.proxy else self.server + self.path

    @property
    def tls(self) -> bool:
        return self.server.startswith("https:")

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for plain HTTP. Only the server's own CA is trusted where one is named. Raises IdentityError."""
        if not self.tls:
            return None
        context = ssl.create_default_context()
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.authority is not None:
            context = _trusting(self.authority)
        if self.certificate is not None:
            _show(context, self.certificate, self.key)
        return context


def http_url(text: str) -> urllib3.util.Url:
    """Raises ValueError with the reason for a text that is not the URL of a server or of a proxy."""
    try:
        url = urllib3.util.parse_url(text)
    except urllib3.exceptions.LocationParseError as error:
        raise ValueError(str(error)) from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("must be a URL such as https://10.0.0.1:6443")
    check_host(url.host)
    return url


def check_host(host: str) -> None:
    """Raises ValueError for what is neither an address nor a name that can be looked up, or shown in a TLS handshake."""
    try:
        name = host.strip("[]").encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError("must be a host: a label is empty or too long") from error
    if not _HOST.fullmatch(name):
        raise ValueError("must be a host: a name or an address")


@dataclass(frozen=True, slots=True)
class Credentials:
    """authorization: the header's value, or empty."""

    route: Route
    authorization: str = field(default="", repr=False)

    def headers(self) -> Mapping[str, str]:
        return {"Authorization": self.authorization} if self.authorization else {}


def _trusting(authority: Pem) -> ssl.SSLContext:
    if not authority.data.strip():  # with which the ssl module would trust the system's own
        raise IdentityError(f"{authority.place}: no certificate in PEM: empty")
    try:
        return ssl.create_default_context(cadata=authority.data.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise IdentityError(f"{authority.place}: no certificate in PEM: {_reason(error)}") from error


def _show(context: ssl.SSLContext, certificate: Pem, key: Pem | None) -> None:
    """The standard library takes files only: these are in memory and of this process alone."""
    both = certificate.data + b"\n" + (key.data if key is not None else b"")
    try:
        with _in_memory(both) as file:
            context.load_cert_chain(file, password="")
    except (ssl.SSLError, ValueError, OSError) as error:
        raise IdentityError(f"{certificate.place}: no certificate with its key in PEM: {_reason(error)}") from error


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """Its name, for as long as it is open. Where the system has no such files: one that only this user may read."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as readable:
            readable.write(data)
            readable.flush()
            yield readable.name
        return
    descriptor = os.memfd_create("client-certificate")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error)
