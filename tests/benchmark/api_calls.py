"""Our CPU for one patch, one binding and one watch event of a pod, each beside the bare library's; run by the benchmark calls.

`python -m tests.benchmark.api_calls`: a process of its own, patched by gevent as under serve, over TLS to a server in yet
another process that answers as an API server does and decides nothing.
"""

from gevent import monkey

monkey.patch_all()

import json  # noqa: E402
import os  # noqa: E402
import socket  # noqa: E402
import ssl  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import closing, contextmanager, suppress  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402

import msgspec  # noqa: E402
import trustme  # noqa: E402
import urllib3  # noqa: E402

from extender.api import corev1  # noqa: E402
from extender.api.metav1 import ObjectMeta  # noqa: E402
from extender.api.schedulingv1alpha1 import GANG_GATE  # noqa: E402
from extender.client.connection import Connection  # noqa: E402
from extender.client.credentials import Credentials, Pem, Route  # noqa: E402
from extender.client.identity import Identity  # noqa: E402
from extender.client.interface import PODS, Watch  # noqa: E402
from extender.client.shared_parts import SharedParts  # noqa: E402
from extender.client.status_patch import remove_scheduling_gate  # noqa: E402
from tests.benchmark.calls import POD_BYTES, big_pod, row  # noqa: E402

CALLS = 1000
ANSWER = (
    "HTTP/1.1 {status}\r\nAudit-Id: 6c8fd1e0-3a36-4f6c-9d64-2a3d1d0a8b0e\r\nCache-Control: no-cache, private\r\n"
    "Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 0c1b8b8c-8a70-4d6c-b7d6-1f9a4d9f2b54\r\n"
    "X-Kubernetes-Pf-Prioritylevel-Uid: 7c7d7f1e-06cb-4b2d-bb7c-9a0d6b1e9a53\r\n"
    "Date: Mon, 02 Mar 2026 10:00:00 GMT\r\n{length}\r\n"
)
STATUS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
META = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": big_pod("a")["metadata"]}


def _answer(head: bytes) -> bytes:
    if b"watch=true" in head:
        lines = b"".join(
            json.dumps({"type": "MODIFIED", "object": big_pod(f"pod-{number}", version=number)}).encode() + b"\n"
            for number in range(1, CALLS + 1)
        )
        # An API server writes, and its HTTP library sends, one event at a time.
        chunks = b"".join(b"%x\r\n%s\n\r\n" % (len(line) + 1, line) for line in lines.splitlines())
        return ANSWER.format(status="200 OK", length="Transfer-Encoding: chunked\r\n").encode() + chunks + b"0\r\n\r\n"
    post = head.startswith(b"POST")
    body = json.dumps(STATUS if post else META if b"PartialObjectMetadata" in head else big_pod("a")).encode()
    status = "201 Created" if post else "200 OK"
    return ANSWER.format(status=status, length=f"Content-Length: {len(body)}\r\n").encode() + body


def _serve(listener: socket.socket, context: ssl.SSLContext) -> None:
    def one(client: socket.socket) -> None:
        answers: dict[bytes, bytes] = {}
        with suppress(OSError), context.wrap_socket(client, server_side=True) as secure:
            while request := secure.recv(65536):
                head, _, body = request.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                while len(body) < length:
                    body += secure.recv(65536)
                if head not in answers:
                    answers[head] = _answer(head)
                secure.sendall(answers[head])

    while True:
        client, _ = listener.accept()
        threading.Thread(target=one, args=(client,), daemon=True).start()


@dataclass(frozen=True)
class Reached:
    """A server, as a source of credentials that never change."""

    credentials: Credentials
    ca_file: str

    def read(self, refused: bool) -> Credentials:
        return self.credentials


@contextmanager
def _server() -> Iterator[Reached]:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    child = os.fork()
    if not child:
        _serve(listener, context)
        os._exit(0)
    with tempfile.TemporaryDirectory() as folder:
        ca_file = Path(folder) / "ca.pem"
        ca.cert_pem.write_to_path(str(ca_file))
        authority = Pem(str(ca_file), ca_file.read_bytes())
        try:
            yield Reached(Credentials(Route(f"https://127.0.0.1:{port}", authority=authority)), str(ca_file))
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)


def _milliseconds(call: Callable[[], object], calls: int = CALLS) -> float:
    call()
    began = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - began) * 1000 / calls


def _bare(server: Reached) -> None:
    """What the libraries cost that everything rests on, used as their manuals show."""
    context = ssl.create_default_context(cafile=server.ca_file)
    with urllib3.PoolManager(ssl_context=context, retries=False) as http:
        url = f"{server.credentials.route.server}/api/v1/namespaces/default/pods/a"
        row("urllib3 alone: PATCH, 150 bytes", _milliseconds(lambda: http.request("PATCH", url, body=b"x" * 150).data))
        row("urllib3 alone: POST, 150 bytes", _milliseconds(lambda: http.request("POST", url, body=b"x" * 150).data))
    line = json.dumps({"type": "MODIFIED", "object": big_pod("a")}).encode()
    decoder = msgspec.json.Decoder(dict)
    row(f"msgspec alone: a line of {len(line)} bytes, untyped", _milliseconds(lambda: decoder.decode(line)))


def _ours(server: Reached) -> None:
    pod = corev1.Pod(metadata=ObjectMeta(name="a", namespace="default", uid="a" * 36))
    binding = corev1.Binding(metadata=pod.metadata, target=corev1.ObjectReference(kind="Node", name="node-1"))
    with closing(Connection(Identity(server))) as connection:
        row("patch of a gate", _milliseconds(lambda: remove_scheduling_gate(connection, pod, GANG_GATE)))
        row("binding", _milliseconds(lambda: connection.bind(binding)))
        parts = SharedParts()
        with closing_watch(connection) as events:
            began = time.process_time()
            for event in events:
                parts.share(event.object)
            row(f"watch event of a pod, {POD_BYTES}", (time.process_time() - began) * 1000 / CALLS)


@contextmanager
def closing_watch(connection: Connection) -> Iterator[Watch[corev1.Pod]]:
    watch = connection.watch(PODS)
    try:
        yield watch
    finally:
        watch.stop()


if __name__ == "__main__":
    with _server() as found:
        _bare(found)
        _ours(found)
