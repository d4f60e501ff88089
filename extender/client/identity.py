"""Our identity at the API server, and its address: from a kubeconfig, or from the pod's service account.

Everything may change while we run: tokens rotate hourly, certificates and the CA too, a plugin's answer expires. What was read
counts for some seconds, then it is looked at again; what a server has refused is read again at once.
client-go: rest/transport.go, transport/cert_rotation.go, transport/token_source.go
"""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from extender.client.credentials import Credentials, IdentityError, Pem, Route, http_url
from extender.client.errors import ConnectionFailedError
from extender.client.exec_plugin import PluginStatus
from extender.client.kubeconfig import Kubeconfig, KubeconfigFiles, read_kubeconfig
from extender.client.proxies import proxy_for

log = logging.getLogger(__name__)

KEPT_SECONDS = 10.0
WAIT_SECONDS = 30.0  # for another thread that reads them just now
SKEW = timedelta(seconds=30)  # a plugin's answer is not used until its last moment
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Source(Protocol):
    """Where credentials come from. Called by one thread at a time."""

    def read(self, refused: bool) -> Credentials:
        """As they are now. refused: the server did not accept the last ones. Raises IdentityError."""
        ...


class Identity:
    """`current` for each call; `renew` where the server refused what a call was made with. Thread-safe."""

    def __init__(self, source: Source, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises IdentityError, also for a certificate that is none."""
        self._source = source
        self._clock = clock
        self._changed = threading.Condition()  # guards the four below; nothing is read, and no plugin runs, under it
        self._current = source.read(refused=False)
        self._current.route.check()
        self._until = clock() + KEPT_SECONDS
        self._reading = False
        self._trouble = ""

    @classmethod
    def from_kubeconfig(cls, given: str | Path | KubeconfigFiles, context: str | None = None) -> Identity:
        """Raises IdentityError."""
        return cls(KubeconfigSource(given, context or ""))

    @classmethod
    def in_cluster(cls) -> Identity:
        """Raises IdentityError."""
        return cls(ServiceAccountSource())

    def current(self) -> Credentials:
        """One caller looks whether there are newer ones; the others go on with those that there are."""
        with self._changed:
            if self._reading or self._clock() < self._until:
                return self._current
            self._reading = True
        self._read(refused=False)
        return self._current

    def renew(self, refused: Credentials) -> None:
        """Reads them again, once for all calls that were refused with these. Raises ConnectionFailedError."""
        with self._changed:
            self._changed.wait_for(lambda: not self._reading, WAIT_SECONDS)
            if self._current is not refused:
                return
            if self._reading:
                raise ConnectionFailedError(f"credentials: not read after {WAIT_SECONDS:.0f} s")
            self._reading = True
        if error := self._read(refused=True):
            raise ConnectionFailedError(f"credentials could not be read: {error}")

    def _read(self, refused: bool) -> str:
        """Why not, if not: then the last ones stay."""
        trouble, found = "", None
        try:
            found = self._source.read(refused)
            if found.route != self._current.route:
                found.route.check()
        except IdentityError as error:
            trouble = str(error)
        except Exception as error:  # of a file in the middle of its being written, or of the kubernetes package
            trouble = f"{type(error).__name__}: {error}"
        if trouble and trouble != self._trouble:
            log.warning("credentials could not be read, the last ones stay error=%s", trouble)
        with self._changed:
            if not trouble and found is not None and (refused or found != self._current):
                self._current = found
            self._trouble = trouble
            self._until = self._clock() + KEPT_SECONDS
            self._reading = False
            self._changed.notify_all()
        return trouble


class ServiceAccountSource:
    """The pod's own: the token and the CA are files that the kubelet replaces."""

    def __init__(self, folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ) -> None:
        self._folder = folder
        self._environ = environ

    def read(self, refused: bool) -> Credentials:
        host = self._environ.get("KUBERNETES_SERVICE_HOST", "")
        port = self._environ.get("KUBERNETES_SERVICE_PORT", "")
        if not host or not port:
            raise IdentityError(
                "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
                "outside of one --kubeconfig FILE says how to reach the API server"
            )
        authority = self._folder / "ca.crt"
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        pem = Pem(str(authority), self._file(authority))
        try:
            route = Route.to(server, proxy=_proxy(server, self._environ), authority=pem)
        except ValueError as error:
            raise IdentityError(f"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: {server}: {error}") from error
        token = self._folder / "token"
        return Credentials(route, _bearer(self._file(token), f"not in a cluster: {token}"))

    def _file(self, file: Path) -> bytes:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise IdentityError(f"not in a cluster: {file}: {error.strerror}") from error
        return data


class KubeconfigSource:
    """The kubeconfig is read again when it, or a file that it names, has changed; a plugin runs when its answer has expired."""

    def __init__(
        self,
        given: str | Path | KubeconfigFiles,
        context: str,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Raises IdentityError."""
        self._files = KubeconfigFiles.of(given)
        self._context = context
        self._environ = environ
        self._now = now
        self._read: tuple[object, Kubeconfig] | None = None
        self._answer: tuple[Kubeconfig, PluginStatus] | None = None
        self._provider: tuple[Kubeconfig, Any] | None = None  # the Configuration of the kubernetes package

    def read(self, refused: bool) -> Credentials:
        config = self._kubeconfig()
        status = self._plugin(config, refused)
        route = Route.to(
            config.server,
            server_name=config.server_name,
            verify=not config.insecure,
            authority=config.authority.pem() if config.authority else None,
            certificate=config.certificate.pem() if config.certificate else None,
            key=config.key.pem() if config.key else None,
        )
        route = replace(route, proxy=config.proxy_url or _proxy(route.server, self._environ))
        if status is not None and status.client_certificate_data and config.plugin is not None:
            place = config.plugin.place
            certificate, key = status.client_certificate_data.encode(), status.client_key_data.encode()
            route = replace(route, certificate=Pem(place, certificate), key=Pem(place, key))
        return Credentials(route, self._authorization(config, status, refused))

    def _kubeconfig(self) -> Kubeconfig:
        stamp = tuple(map(_stamp, self._files.paths))
        if self._read is None or self._read[0] != stamp:
            self._read = stamp, read_kubeconfig(self._files, self._context)
        return self._read[1]

    def _plugin(self, config: Kubeconfig, refused: bool) -> PluginStatus | None:
        if config.plugin is None:
            return None
        if self._answer is None or self._answer[0] is not config or refused or self._expired(self._answer[1]):
            self._answer = config, config.plugin.run()
        return self._answer[1]

    def _expired(self, status: PluginStatus) -> bool:
        return status.expiration_timestamp is not None and self._now() >= status.expiration_timestamp - SKEW

    def _authorization(self, config: Kubeconfig, status: PluginStatus | None, refused: bool) -> str:
        if config.token is not None:
            return _bearer(config.token.read(), config.token.place)
        if status is not None and status.token and config.plugin is not None:
            return _bearer(status.token.encode(), config.plugin.place)
        if config.username:
            return "Basic " + base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
        return self._of_auth_provider(config, refused) if config.auth_provider else ""

    def _of_auth_provider(self, config: Kubeconfig, refused: bool) -> str:
        """The kubernetes package renews its token by itself when it expires.

        It is imported here, where alone it is needed: its models would cost every start 20 MB, and some 0.4 s.
        """
        from kubernetes import client as kubernetes_client
        from kubernetes import config as kubernetes_config

        try:
            if self._provider is None or self._provider[0] is not config or refused:
                made = kubernetes_client.Configuration()
                kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                    str(config.files), config.context, made, persist_config=False
                )
                self._provider = config, made
            # the name that the package keeps it under depends on its version
            return self._provider[1].get_api_key_with_prefix("BearerToken", alias="authorization") or ""
        except Exception as error:  # of whatever kind the package raises for fields that it does not check
            raise IdentityError(
                f"kubeconfig {config.files}: auth-provider: gives no token ({type(error).__name__}): kubectl 1.26 dropped the "
                "providers gcp and azure: use an exec plugin"
            ) from error


def _proxy(server: str, environ: Mapping[str, str]) -> str:
    """Of the environment; empty for none. Raises IdentityError."""
    proxy = proxy_for(server, environ)
    try:
        if proxy:
            http_url(proxy)
    except ValueError as error:
        raise IdentityError(f"HTTPS_PROXY or HTTP_PROXY of the environment: {proxy}: {error}") from error
    return proxy


def _bearer(token: bytes, place: str) -> str:
    """The header's value. Raises IdentityError, which does not quote the token."""
    text = token.strip()
    if not text:
        raise IdentityError(f"{place}: empty")
    if not all(32 < char < 127 for char in text):
        raise IdentityError(f"{place}: not a token: has spaces, line breaks or characters beyond ASCII")
    return "Bearer " + text.decode("ascii")


def _stamp(file: Path) -> object:
    """Differs where the file was written, or replaced by another."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
