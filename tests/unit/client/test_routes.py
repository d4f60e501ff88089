"""The ways to an API server: below a path, through a proxy, over TLS with certificates that change while we run."""

from __future__ import annotations

import logging
import ssl
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trustme
import urllib3

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.client import identity
from extender.client.connection import Connection
from extender.client.errors import ConnectionFailedError
from extender.client.interface import NODES, Watch
from tests.fakes.api_server import Answer, FakeAPIServer, event, node, page, status_of
from tests.fakes.proxy import FakeProxy
from tests.unit.client.test_exec_plugin import VERSION, Plugin
from tests.unit.client.test_kubeconfig import written

BINDING = corev1.Binding(ObjectMeta(name="p", namespace="ns"), corev1.ObjectReference(kind="Node", name="n1"))


class Certs:
    """A CA, and files that it has signed, replaced as cert-manager and kubelets do: by another file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = trustme.CA()
        self.trust(self.ca)
        self.show("first")

    def trust(self, *authorities: trustme.CA) -> None:
        self._replace("ca.crt", b"".join(each.cert_pem.bytes() for each in authorities))

    def show(self, name: str) -> None:
        issued = self.ca.issue_cert(f"{name}.example", common_name=name)
        self._replace("client.key", issued.private_key_pem.bytes())
        self._replace("client.crt", issued.cert_chain_pems[0].bytes())

    def _replace(self, name: str, data: bytes) -> None:
        (self.folder / "new").write_bytes(data)
        (self.folder / "new").replace(self.folder / name)

    def server(self, authority: trustme.CA | None = None) -> ssl.SSLContext:
        """Its context; a client may show a certificate, and has to be of this CA if it does."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (authority or self.ca).issue_cert("127.0.0.1").configure_cert(context)
        self.ca.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "KEPT_SECONDS", 0.0)


@pytest.fixture
def certs(tmp_path: Path) -> Certs:
    return Certs(tmp_path)


@pytest.fixture
def secure(certs: Certs) -> Iterator[FakeAPIServer]:
    fake = FakeAPIServer(certs.server())
    fake.others.append(Answer(body=node("n1")))
    yield fake
    fake.stop()


@pytest.fixture
def proxy() -> Iterator[FakeProxy]:
    fake = FakeProxy()
    yield fake
    fake.stop()


Connect = Callable[..., Connection]


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """By a kubeconfig with these fields of its cluster and its user."""
    made: list[Connection] = []

    def with_fields(cluster: dict[str, Any], user: dict[str, Any] | None = None) -> Connection:
        made.append(Connection.from_kubeconfig(str(written(tmp_path, cluster, user or {}))))
        return made[-1]

    yield with_fields
    for each in made:
        each.close()


def over_tls(server: FakeAPIServer, **more: Any) -> dict[str, Any]:
    return {"server": server.url, "certificate-authority": "ca.crt", **more}


BY_CERTIFICATE = {"client-certificate": "client.crt", "client-key": "client.key"}


# The path


def test_everything_is_asked_for_below_the_server_s_path(server: FakeAPIServer, connect: Connect) -> None:
    """Rancher and other proxies serve many clusters, each below a path of its own."""
    server.lists.append(page())
    connection = connect({"server": f"{server.url}/k8s/clusters/c-1/"})
    connection.list_page(NODES)
    connection.watch(NODES).stop()
    connection.bind(BINDING)
    connection.version()
    paths = [path.partition("?")[0] for _, path, _, _ in server.seen]
    prefix = "/k8s/clusters/c-1"
    assert paths == [
        f"{prefix}/api/v1/nodes",
        f"{prefix}/api/v1/nodes",
        f"{prefix}/api/v1/namespaces/ns/pods/p/binding",
        f"{prefix}/version",
    ]


# Proxies


def test_a_server_with_tls_is_reached_through_a_tunnel(
    secure: FakeAPIServer, proxy: FakeProxy, connect: Connect
) -> None:
    connection = connect(over_tls(secure, **{"proxy-url": f"http://me:p%40ss@{proxy.address}"}), BY_CERTIFICATE)
    assert [connection.get(NODES, "n1").name for _ in range(3)] == ["n1"] * 3
    assert proxy.asked == [f"CONNECT {secure.url.removeprefix('https://')}"]
    assert proxy.authorizations == ["proxy-authorization: Basic bWU6cEBzcw=="]
    assert secure.callers == ["first"] * 3, "the tunnel ends at the server: the client's certificate is shown to it"
    assert "Proxy-Authorization" not in secure.seen[0][2]


def test_a_watch_goes_through_the_proxy_too(secure: FakeAPIServer, proxy: FakeProxy, connect: Connect) -> None:
    secure.watches.append(Answer(lines=[event("ADDED", node("n1"))]))
    connection = connect(over_tls(secure, **{"proxy-url": f"http://{proxy.address}"}))
    assert len(list(connection.watch(NODES))) == 1
    assert len(proxy.asked) == 1


def test_a_server_without_tls_is_asked_for_by_its_whole_url(
    server: FakeAPIServer, proxy: FakeProxy, connect: Connect
) -> None:
    server.others.append(Answer(body=node("n1")))
    connection = connect({"server": f"{server.url}/prefix", "proxy-url": f"http://{proxy.address}"})
    assert connection.get(NODES, "n1").name == "n1"
    assert proxy.asked == [f"GET {server.url}/prefix/api/v1/nodes/n1"]
    assert server.seen[0][1] == "/prefix/api/v1/nodes/n1"


def test_a_proxy_that_is_not_there_is_named(secure: FakeAPIServer, connect: Connect) -> None:
    connection = connect(over_tls(secure, **{"proxy-url": "http://127.0.0.1:1"}))
    with pytest.raises(ConnectionFailedError, match="proxy"):
        connection.get(NODES, "n1")


def test_the_proxy_of_the_environment(
    secure: FakeAPIServer, proxy: FakeProxy, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never for a server on this machine: that the name is resolved to it is not looked at."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
    connect(over_tls(secure)).get(NODES, "n1")
    assert proxy.asked == []
    with pytest.raises(ConnectionFailedError):
        connect({"server": "https://api.invalid:6443"}).get(NODES, "n1")
    assert proxy.asked == ["CONNECT api.invalid:6443"]


# Certificates that change


def test_a_client_certificate_that_was_replaced_is_shown_from_then_on(
    secure: FakeAPIServer, certs: Certs, connect: Connect
) -> None:
    secure.watches.append(Answer(lines=[event("ADDED", node("n1"))], hang=True))
    connection = connect(over_tls(secure), BY_CERTIFICATE)
    connection.get(NODES, "n1")
    watch: Watch[corev1.Node] = connection.watch(NODES)
    events = iter(watch)
    assert next(events).type.value == "ADDED"

    certs.show("second")
    for _ in range(2):
        connection.get(NODES, "n1")
    connection.bind(BINDING)

    assert secure.callers == ["first", "first", "second", "second", "second"]
    with closing(watch_again := connection.watch(NODES)._response):  # type: ignore[attr-defined]
        assert watch_again.status == 200
    watch.stop()
    assert list(events) == [], "what was under way went on until it was stopped"


def test_a_certificate_without_its_key_yet_changes_nothing(
    secure: FakeAPIServer, certs: Certs, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """The two files are replaced one after the other."""
    connection = connect(over_tls(secure), BY_CERTIFICATE)
    key = (certs.folder / "client.key").read_bytes()
    certs.show("second")
    new_key = (certs.folder / "client.key").read_bytes()
    (certs.folder / "client.key").write_bytes(key)
    connection.get(NODES, "n1")
    assert "credentials could not be read, the last ones stay" in caplog.text
    (certs.folder / "client.key").write_bytes(new_key)
    connection.get(NODES, "n1")
    assert secure.callers == ["first", "second"]


def test_a_ca_that_was_replaced_is_trusted_from_then_on(certs: Certs, connect: Connect) -> None:
    other = trustme.CA()
    moved = FakeAPIServer(certs.server(other))
    moved.others.append(Answer(body=node("n1")))
    try:
        connection = connect(over_tls(moved))
        with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
            connection.get(NODES, "n1")
        certs.trust(certs.ca, other)
        assert connection.get(NODES, "n1").name == "n1"
        certs.trust(certs.ca)
        with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
            connection.get(NODES, "n1")
    finally:
        moved.stop()


def test_a_token_that_was_replaced_is_shown_without_a_refusal(
    server: FakeAPIServer, connect: Connect, token_file: Path
) -> None:
    server.others.append(Answer(body=node("n1")))
    connection = connect({"server": server.url}, {"tokenFile": token_file.name})
    connection.get(NODES, "n1")
    token_file.write_text("second")
    connection.get(NODES, "n1")
    assert [headers["Authorization"] for _, _, headers, _ in server.seen] == ["Bearer first", "Bearer second"]


def test_a_plugin_s_certificate_that_was_refused_is_asked_for_anew(
    secure: FakeAPIServer, certs: Certs, tmp_path: Path
) -> None:
    """The connections of the old one are not used again."""
    plugin = Plugin(tmp_path)

    def answers_with_the_files() -> None:
        files = {"clientCertificateData": "client.crt", "clientKeyData": "client.key"}
        plugin.answer({field: (tmp_path / name).read_text() for field, name in files.items()})

    answers_with_the_files()
    file = written(tmp_path, over_tls(secure), {"exec": {"apiVersion": VERSION, "command": "./plugin"}})
    secure.others.appendleft(status_of(401, "Unauthorized"))
    secure.others.appendleft(Answer(body=node("n1")))
    connection = Connection.from_kubeconfig(str(file))
    try:
        connection.get(NODES, "n1")
        certs.show("second")
        answers_with_the_files()
        connection.get(NODES, "n1")
    finally:
        connection.close()
    assert secure.callers == ["first", "first", "second"]


def test_connections_are_kept_where_nothing_has_changed(secure: FakeAPIServer, certs: Certs, connect: Connect) -> None:
    connection = connect(over_tls(secure), BY_CERTIFICATE)
    connection.get(NODES, "n1")
    pools = dict(connection._transport._pools)
    certs._replace("ca.crt", (certs.folder / "ca.crt").read_bytes())
    connection.get(NODES, "n1")
    assert dict(connection._transport._pools) == pools


# No verification


def test_that_nothing_is_verified_is_said_once(
    secure: FakeAPIServer, certs: Certs, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """In the form of all other lines; urllib3's own warning is one for each request."""
    caplog.set_level(logging.WARNING)
    connection = connect({"server": secure.url, "insecure-skip-tls-verify": True}, BY_CERTIFICATE)
    with warnings.catch_warnings(record=True) as warned:
        for name in ("first", "second", "third"):
            certs.show(name)
            connection.get(NODES, "n1")
    assert caplog.messages == [f"the API server's certificate is not verified server={secure.url}"]
    assert not [each for each in warned if each.category is urllib3.exceptions.InsecureRequestWarning]
    assert secure.callers == ["first", "second", "third"]
