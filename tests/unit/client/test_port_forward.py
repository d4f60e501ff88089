"""HTTP calls to a port in a pod, through the API server: what comes of them, whatever is in between and however the answer comes."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
import yaml

from extender.client.connection import Connection
from extender.client.errors import ConnectionFailedError, ForbiddenError, TimedOutError
from tests.fakes.port_forwarding import PortForwarding
from tests.fakes.proxy import FakeProxy

PORT = 8889
FORWARD = "/api/v1/namespaces/kube-system/pods/leader/portforward"


class Pod:
    """Answers each connection with these bytes, and then closes it, or waits until the test is over."""

    def __init__(self) -> None:
        self.answer = b""
        self.silent = False
        self.asked: list[bytes] = []
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (data := connection.recv(65536)):
                    head += data
                self.asked.append(head)
                if self.silent:
                    self._over.wait(10)
                connection.sendall(self.answer)

    def stop(self) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def http_answer(body: bytes, length: int | None = None) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


@pytest.fixture
def pod() -> Iterator[Pod]:
    made = Pod()
    yield made
    made.stop()


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server(pod: Pod, authority: trustme.CA) -> Iterator[PortForwarding]:
    """Over TLS, as every API server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    made = PortForwarding(context)
    made.listening[PORT] = pod.port
    yield made
    made.stop()


Connect = Callable[..., Connection]


@pytest.fixture
def connect(server: PortForwarding, authority: trustme.CA, tmp_path: Path) -> Iterator[Connect]:
    made: list[Connection] = []

    def connect(**cluster: str) -> Connection:
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        document = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": server.url, "certificate-authority": "ca.pem", **cluster}}
            ],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
        made.append(Connection.from_kubeconfig(str(tmp_path / "kubeconfig")))
        return made[-1]

    yield connect
    for each in made:
        each.close()


def call(connection: Connection, port: int = PORT, seconds: float = 10.0) -> tuple[int, bytes]:
    return connection.call_pod("kube-system", "leader", port, "GET", "/gangs", seconds=seconds)


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_an_answer_of_any_size_comes_whole(pod: Pod, connect: Connect, size: int) -> None:
    body = os.urandom(size)
    pod.answer = http_answer(body)
    assert call(connect()) == (200, body)


def test_what_is_sent_comes_whole(pod: Pod, connect: Connect) -> None:
    pod.answer = http_answer(b"{}")
    connection = connect()
    headers = {"Content-Type": "application/json"}
    connection.call_pod("kube-system", "leader", PORT, "POST", "/whatif", headers=headers, body=b'{"pods": []}')
    [asked] = pod.asked
    assert asked.startswith(b"POST /whatif HTTP/1.1\r\n")
    assert b"Content-Type: application/json\r\n" in asked
    assert b"Authorization" not in asked, "the API server's token is none of the pod's business"


def test_by_a_proxy(pod: Pod, connect: Connect) -> None:
    pod.answer = http_answer(b"{}")
    proxy = FakeProxy()
    try:
        assert call(connect(**{"proxy-url": f"http://{proxy.address}"})) == (200, b"{}")
        assert [each.split()[0] for each in proxy.asked] == ["CONNECT"]
    finally:
        proxy.stop()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(http_answer(b"{", length=9), "IncompleteRead", id="half an answer"),
        pytest.param(b"", "Remote end closed connection without response", id="no answer"),
        pytest.param(b"hello\r\n\r\n", "hello", id="no HTTP"),
    ],
)
def test_what_is_no_answer(pod: Pod, connect: Connect, answer: bytes, text: str) -> None:
    pod.answer = answer
    with pytest.raises(ConnectionFailedError, match=f"port {PORT}: .*{text}"):
        call(connect())


def test_a_port_on_which_nothing_listens(connect: Connect) -> None:
    """The kubelet's own words."""
    with pytest.raises(ConnectionFailedError, match="error forwarding port 1 to pod: connection refused"):
        call(connect(), port=1)


def test_a_pod_that_says_nothing(pod: Pod, connect: Connect) -> None:
    pod.silent = True
    with pytest.raises(TimedOutError, match=f"port {PORT}: no answer in time"):
        call(connect(), seconds=0.2)


def test_a_refusal_is_the_api_server_s(server: PortForwarding, connect: Connect) -> None:
    status = {"kind": "Status", "code": 403, "message": 'pods "leader" is forbidden: no pods/portforward'}
    server.objects[FORWARD] = (403, status)
    with pytest.raises(ForbiddenError, match="no pods/portforward"):
        call(connect())


def test_an_api_server_that_is_not_there(server: PortForwarding, connect: Connect) -> None:
    connection = connect(server="https://127.0.0.1:1")
    with pytest.raises(ConnectionFailedError, match="/portforward: "):
        call(connection)


def test_a_client_s_certificate_where_files_in_memory_are_not_to_be_had(
    server: PortForwarding,
    pod: Pod,
    authority: trustme.CA,
    connect: Connect,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "memfd_create")
    pod.answer = http_answer(b"{}")
    connect()
    issued = authority.issue_cert("operator")
    document = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    document["users"][0]["user"] = {"client-certificate": "client.pem", "client-key": "client.pem"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    connection = Connection.from_kubeconfig(str(tmp_path / "kubeconfig"))
    try:
        assert call(connection) == (200, b"{}")
    finally:
        connection.close()
