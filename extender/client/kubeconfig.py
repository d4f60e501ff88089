"""A kubeconfig, of one file or of several as $KUBECONFIG names them: the cluster and the user of its current context.

What is wrong is told with file, line and field. client/identity reads credentials from it, again and again: files that it names may change.
client-go: tools/clientcmd, tools/clientcmd/api/v1/types.go
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from extender.client.credentials import IdentityError, Pem, check_host, http_url
from extender.client.exec_plugin import ExecPlugin
from extender.config.section import Section
from extender.config.yaml_file import ConfigurationError, Document, Mistake, read_document


@dataclass(frozen=True, slots=True)
class KubeconfigFiles:
    """Read as one. The first that names a current context, a context, a cluster or a user says all of it; one that is not there is
    passed over, unless none is there. client-go: tools/clientcmd/loader.go (ClientConfigLoadingRules.Load)"""

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, given: str | Path | KubeconfigFiles) -> KubeconfigFiles:
        """A text or a Path is one file, whatever is in its name. Raises IdentityError for a home that is not known."""
        files = given.paths if isinstance(given, KubeconfigFiles) else (Path(given),)
        try:
            return cls(tuple(file.expanduser() for file in files))
        except RuntimeError as error:
            raise IdentityError(f"kubeconfig {given}: {error}") from error

    def __str__(self) -> str:
        return os.pathsep.join(map(str, self.paths))

    def documents(self) -> Iterator[Document]:
        """Raises ConfigurationError, OSError."""
        there = [file for file in self.paths if file.exists()] if len(self.paths) > 1 else self.paths
        yield from map(read_document, there or self.paths[:1])


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

    files: KubeconfigFiles
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


def read_kubeconfig(given: str | Path | KubeconfigFiles, context: str = "") -> Kubeconfig:
    """context: empty for the files' own current-context. Raises IdentityError, which tells the first mistake."""
    files = KubeconfigFiles.of(given)
    try:
        return _Reader(files).kubeconfig(context)
    except ConfigurationError as error:
        raise IdentityError(f"kubeconfig {str(error).splitlines()[0]}") from error
    except OSError as error:
        raise IdentityError(f"kubeconfig {error.filename or files}: {error.strerror}") from error


class _Reader:
    """Unknown fields are passed over, as client-go does."""

    def __init__(self, files: KubeconfigFiles) -> None:
        """Raises ConfigurationError, OSError."""
        self._files = files
        self._roots = [(document, Section.root(document)) for document in files.documents()]

    def kubeconfig(self, context: str) -> Kubeconfig:
        name, root = context, self._roots[0][1]
        if not name:
            root = next((root for _, root in self._roots if "current-context" in root), root)
            name = _needed(root, "current-context")
        self._stop_at_mistakes()
        chosen = self._named("contexts", "context", name, root, "" if context else "current-context")
        cluster_name, user_name = _needed(chosen, "cluster"), chosen.text("user")
        self._stop_at_mistakes()
        cluster = self._named("clusters", "cluster", cluster_name, chosen, "cluster")
        user = Section(None, "", [])
        if user_name:
            user = self._named("users", "user", user_name, chosen, "user")
        found = replace(self._found(name, cluster, user), namespace=chosen.text("namespace"))
        self._stop_at_mistakes()
        return found

    def _stop_at_mistakes(self) -> None:
        """One that follows from another is not told."""
        for document, _ in self._roots:
            if document.mistakes:
                raise document.error(document.mistakes)

    def _named(self, items: str, item: str, name: str, by: Section, key: str) -> Section:
        """Of the lists of named things that with this name. by: the section that names it, in its field `key`."""
        for _, root in self._roots:
            for each in root.sections(items):
                if each.text("name") == name:
                    return each.section(item)
        self._stop_at_mistakes()
        by.mistakes.append(Mistake(by.where(key) if key else by.path, f'Not found: "{name}" in {items}'))
        document = self._document_of(by)
        raise document.error(document.mistakes)

    def _document_of(self, section: Section) -> Document:
        """All sections of a document note their mistakes in one list."""
        return next(document for document, _ in self._roots if document.mistakes is section.mistakes)

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
            files=self._files,
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
        return f"kubeconfig {self._document_of(section).place(section.where(key))}"

    def _folder(self, section: Section) -> Path:
        """Paths are relative to the file in which they stand."""
        return Path(self._document_of(section).file).parent

    def _source(self, section: Section, key: str) -> Source | None:
        """`key-data` wins, as in client-go."""
        if encoded := section.text(f"{key}-data"):
            place = self._place(section, f"{key}-data")
            try:
                return Source(place, data=base64.b64decode("".join(encoded.split()), validate=True))
            except (binascii.Error, ValueError) as error:
                section.wrong(f"{key}-data", f"must be base64: {error}")
        if path := section.text(key):
            return Source(self._place(section, key), self._folder(section) / path)
        return None

    def _token(self, user: Section) -> Source | None:
        """A file wins over a token that is written out, as in client-go."""
        if path := user.text("tokenFile"):
            return Source(self._place(user, "tokenFile"), self._folder(user) / path)
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
            folder=self._folder(user),
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
