"""A kubeconfig: the cluster and the user of its current context. What is wrong is told with file, line and field.

client/identity reads credentials from it, again and again: files that it names may change.
client-go: tools/clientcmd, tools/clientcmd/api/v1/types.go
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from extender.client.credentials import IdentityError, Pem, check_host, http_url
from extender.client.exec_plugin import ExecPlugin
from extender.config.section import Section
from extender.config.yaml_file import ConfigurationError, Document, Mistake, read_document


@dataclass(frozen=True, slots=True)
class Source:
    """Where text or PEM comes from: a file, or the kubeconfig itself (`data`)."""

    place: str
    file: Path | None = None
    data: bytes = b""

    def read(self) -> bytes:
        """Raises IdentityError."""
        if self.file is None:
            return self.data
        try:
            return self.file.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            raise IdentityError(f"{self.place}: {self.file}: {getattr(error, 'strerror', error)}") from error

    def pem(self) -> Pem:
        return Pem(f"{self.place}: {self.file}" if self.file else self.place, self.read())


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Of the context. server: a URL. namespace: empty where the context names none. auth_provider: whether the user has one, which is
    left to the kubernetes package."""

    file: Path
    context: str
    server: str
    proxy_url: str
    server_name: str
    insecure: bool
    authority: Source | None
    certificate: Source | None
    key: Source | None
    token: Source | None
    username: str
    password: str
    plugin: ExecPlugin | None
    auth_provider: bool
    namespace: str = ""


def read_kubeconfig(file: Path, context: str = "") -> Kubeconfig:
    """context: empty for the file's own current-context. Raises IdentityError, which tells the first mistake."""
    try:
        document = read_document(file)
        return _Reader(document, file).kubeconfig(context)
    except ConfigurationError as error:
        raise IdentityError(f"kubeconfig {str(error).splitlines()[0]}") from error
    except OSError as error:
        raise IdentityError(f"kubeconfig {file}: {error.strerror}") from error


class _Reader:
    """Unknown fields are passed over, as client-go does."""

    def __init__(self, document: Document, file: Path) -> None:
        self._document = document
        self._file = file
        self._root = Section.root(document)

    def kubeconfig(self, context: str) -> Kubeconfig:
        name = context or _needed(self._root, "current-context")
        self._stop_at_mistakes()
        chosen = self._named("contexts", "context", name, "" if context else "current-context")
        cluster_name, user_name = _needed(chosen, "cluster"), chosen.text("user")
        self._stop_at_mistakes()
        cluster = self._named("clusters", "cluster", cluster_name, chosen.where("cluster"))
        user = Section(None, "", [])
        if user_name:
            user = self._named("users", "user", user_name, chosen.where("user"))
        found = replace(self._found(name, cluster, user), namespace=chosen.text("namespace"))
        self._stop_at_mistakes()
        return found

    def _stop_at_mistakes(self) -> None:
        """One that follows from another is not told."""
        if self._document.mistakes:
            raise self._document.error(self._document.mistakes)

    def _named(self, items: str, item: str, name: str, where: str) -> Section:
        """Of a list of named things that with this name."""
        for each in self._root.sections(items):
            if each.text("name") == name:
                return each.section(item)
        self._stop_at_mistakes()
        self._root.mistakes.append(Mistake(where, f'Not found: "{name}" in {items}'))
        raise self._document.error(self._document.mistakes)

    def _found(self, name: str, cluster: Section, user: Section) -> Kubeconfig:
        server = _needed(cluster, "server")
        authority = self._source(cluster, "certificate-authority")
        certificate = self._source(user, "client-certificate")
        insecure = cluster.flag("insecure-skip-tls-verify")
        if insecure and authority is not None:
            cluster.wrong("insecure-skip-tls-verify", "must not be true where there is a certificate-authority")
        if server and "://" not in server:
            server = f"{'https' if authority or certificate or insecure else 'http'}://{server}"
        proxy_url, server_name = cluster.text("proxy-url"), cluster.text("tls-server-name")
        _check(cluster, "server", server, http_url)
        _check(cluster, "proxy-url", proxy_url, http_url)
        _check(cluster, "tls-server-name", server_name, check_host)
        user.section("auth-provider")  # a mapping, if it is there: the kubernetes package reads it
        return Kubeconfig(
            file=self._file,
            context=name,
            server=server,
            proxy_url=proxy_url,
            server_name=server_name,
            insecure=insecure,
            authority=authority,
            certificate=certificate,
            key=self._source(user, "client-key"),
            token=self._token(user),
            username=user.text("username"),
            password=user.text("password"),
            plugin=self._plugin(user, cluster, authority) if "exec" in user else None,
            auth_provider="auth-provider" in user,
        )

    def _place(self, section: Section, key: str) -> str:
        return f"kubeconfig {self._document.place(section.where(key))}"

    def _source(self, section: Section, key: str) -> Source | None:
        """`key-data` wins, as in client-go."""
        if encoded := section.text(f"{key}-data"):
            place = self._place(section, f"{key}-data")
            try:
                return Source(place, data=base64.b64decode("".join(encoded.split()), validate=True))
            except (binascii.Error, ValueError) as error:
                section.wrong(f"{key}-data", f"must be base64: {error}")
        if path := section.text(key):
            return Source(self._place(section, key), self._file.parent / path)
        return None

    def _token(self, user: Section) -> Source | None:
        """A file wins over a token that is written out, as in client-go."""
        if path := user.text("tokenFile"):
            return Source(self._place(user, "tokenFile"), self._file.parent / path)
        token = user.text("token")
        return Source(self._place(user, "token"), data=token.encode()) if token else None

    def _plugin(self, user: Section, cluster: Section, authority: Source | None) -> ExecPlugin:
        plugin = user.section("exec")
        command, api_version = _needed(plugin, "command"), _needed(plugin, "apiVersion")
        return ExecPlugin(
            place=self._place(user, "exec"),
            api_version=api_version,
            command=command,
            args=plugin.texts("args"),
            env={each.text("name"): each.text("value") for each in plugin.sections("env")},
            folder=self._file.parent,
            install_hint=plugin.text("installHint"),
            cluster=_told(cluster, authority) if plugin.flag("provideClusterInfo") else None,
        )


def _check(section: Section, key: str, text: str, check: Callable[[str], object]) -> None:
    """Notes a mistake where `check` raises ValueError for a text that is there."""
    try:
        if key in section and text:
            check(text)
    except ValueError as error:
        section.invalid(key, text, str(error))


def _needed(section: Section, key: str) -> str:
    """A text that has to be there; one of another kind is a mistake already."""
    before = len(section.mistakes)
    text = section.text(key)
    if not text and len(section.mistakes) == before:
        section.required(key)
    return text


TOLD = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
EXTENSION = "client.authentication.k8s.io/exec"


def _told(cluster: Section, authority: Source | None) -> dict[str, Any]:
    """What a plugin is told of the cluster. Kubernetes: clientauthentication/v1 Cluster."""
    told = {key: cluster.plain(key) for key in TOLD if key in cluster}
    if authority is not None:
        told["certificate-authority-data"] = base64.b64encode(authority.read()).decode()
    for each in cluster.sections("extensions"):
        if each.text("name") == EXTENSION:
            told["config"] = each.plain("extension")
    return told
