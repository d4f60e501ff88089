"""What TLS costs a call: filter and bind of manifests/service beside those of manifests/sidecar, asked in turn.

Two real services on the same embedded cluster, one plain, one that asks for a client certificate; kept-alive connections, as
kube-scheduler's are, and one handshake for each call as its worst case. The median of the times, the tenth percentile, with which a
busy machine interferes least, and CPU of the service.
"""

from __future__ import annotations

import ssl
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trustme

from tests.benchmark.calls import NODES, SERVER_NAME, Caller, big_pod, cluster, ready, request, running
from tests.benchmark.contenders import cpu_seconds
from tests.e2e.processes import eventually, free_port

ROUNDS, CALLS = 10, 100
CLIENT = "gang-extender-client"


class Side:
    """One of the two services."""

    def __init__(self, pid: int, port: int, tls: ssl.SSLContext | None) -> None:
        self.pid, self._port, self._tls = pid, port, tls
        self.times: list[float] = []
        self.cpu = 0.0
        self._kept = self.connect()

    def connect(self) -> Caller:
        return Caller(self._port, self._tls)

    def ask(self, data: bytes, *, anew: bool) -> None:
        began, cpu = time.perf_counter(), cpu_seconds(self.pid)
        for _ in range(CALLS):
            caller = self.connect() if anew else self._kept
            caller.ask(data)
            if anew:
                caller.close()
            now = time.perf_counter()
            self.times.append(now - began)
            began = now
        self.cpu += cpu_seconds(self.pid) - cpu

    def forget(self) -> None:
        self.times.clear()
        self.cpu = 0.0

    def close(self) -> None:
        self._kept.close()


@contextmanager
def _side(folder: Path, file: Path, files: list[str], tls: ssl.SSLContext | None) -> Iterator[Side]:
    port, ops_port = free_port(), free_port()
    command = [
        "extender.cli.main",
        "serve",
        "--cluster",
        str(file),
        f"--port={port}",
        f"--ops-port={ops_port}",
        "-v",
        "1",
    ]
    with running(*command, *files) as pid:
        eventually(lambda: ready(ops_port), within=60, what="the service is ready")
        side = Side(pid, port, tls)
        yield side
        side.close()


def _certificates(folder: Path) -> tuple[list[str], ssl.SSLContext]:
    """Flags of serve, and the client's context."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.crt")
    server = ca.issue_cert(SERVER_NAME)
    server.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    server.private_key_pem.write_to_path(folder / "tls.key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ca.configure_trust(context)
    ca.issue_cert("x", common_name=CLIENT).configure_cert(context)
    flags = [f"--tls-cert-file={folder}/tls.crt", f"--tls-private-key-file={folder}/tls.key"]
    return [*flags, f"--client-ca-file={folder}/ca.crt", f"--allowed-client-name={CLIENT}"], context


def _compare(what: str, sides: dict[str, Side], data: bytes, *, anew: bool = False) -> None:
    for side in sides.values():
        side.ask(data, anew=anew)
        side.forget()
    for _ in range(ROUNDS):
        for side in sides.values():
            side.ask(data, anew=anew)
    shown = {}
    for name, side in sides.items():
        times = sorted(each * 1000 for each in side.times)
        shown[name] = statistics.median(times)
        p10, cpu = times[len(times) // 10], side.cpu * 1000 / len(times)
        print(f"  {what:32s} {name:6s} p10 {p10:6.3f}  p50 {shown[name]:6.3f}  CPU {cpu:6.3f} ms", flush=True)
    print(f"  {what:32s} TLS adds {shown['TLS'] - shown['plain']:+.3f} ms to p50", flush=True)


def _filter(count: int) -> bytes:
    return request("filter", {"Pod": big_pod("gang-a-0"), "NodeNames": [f"node-{number}" for number in range(count)]})


def run() -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        file = cluster(folder)
        flags, context = _certificates(folder)
        contexts: dict[str, tuple[list[str], ssl.SSLContext | None]] = {"plain": ([], None), "TLS": (flags, context)}
        sides = {each: stack.enter_context(_side(folder, file, *of)) for each, of in contexts.items()}
        _compare("filter, 100 names", sides, _filter(100))
        _compare(f"filter, {NODES} names", sides, _filter(NODES))
        bind = request("bind", {"PodName": "a", "PodNamespace": "default", "PodUID": "a", "Node": "node-1"})
        _compare("bind, a pod that is not there", sides, bind)
        _compare("bind, a connection for each", sides, bind, anew=True)


if __name__ == "__main__":
    run()
