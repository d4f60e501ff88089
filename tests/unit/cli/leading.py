"""A leader to ask: a scheduler on the embedded cluster, its ops listener on loopback, and an API server with a Lease that tunnels to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from werkzeug.serving import WSGIRequestHandler, make_server

from extender.client.embedded import EmbeddedAPI
from extender.client.interface import PRIORITY_CLASSES
from extender.config.types import ExtenderConfiguration, TopologyLevel
from extender.server.app import create_app
from extender.server.state import state_of
from tests.fakes.port_forwarding import PortForwarding
from tests.unit.scheduler.conftest import Bench, running

OPS_PORT = 8889
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/gang-scheduler"
POD = "/api/v1/namespaces/kube-system/pods/gang-scheduler-7d9-abcde"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
CONFIGURATION = ExtenderConfiguration(topology=(TopologyLevel("rack", "example.com/rack"),))


class _Quiet(WSGIRequestHandler):
    def log_request(self, *args: Any) -> None:
        """Nothing."""


@dataclass
class Leading:
    """kubeconfig: of the API server. ops: URL of the extender's own listener."""

    bench: Bench
    api: PortForwarding
    kubeconfig: Path
    ops: str


@contextmanager
def leading(
    folder: Path, configuration: ExtenderConfiguration = CONFIGURATION, api: EmbeddedAPI | None = None
) -> Iterator[Leading]:
    """api: the embedded cluster, with what is in it already."""
    with running(configuration, api) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        app = create_app(bench.scheduler)
        state_of(app).pages.update(bench.scheduler.pages())
        server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
        server.daemon_threads = False  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        front = PortForwarding()
        try:
            front.listening[OPS_PORT] = server.server_port
            front.objects[LEASE] = lease("gang-scheduler-7d9-abcde_0a1b")
            front.objects[POD] = {"metadata": {"name": "gang-scheduler-7d9-abcde", "namespace": "kube-system"}}
            classes = {
                "metadata": {},
                "items": [priority_class("high", 1000), priority_class("usual", 5, default=True)],
            }
            front.objects[f"/apis/{PRIORITY_CLASSES.api_version}/{PRIORITY_CLASSES.plural}"] = classes
            front.objects[QUOTAS] = {"metadata": {}, "items": []}
            yield Leading(bench, front, kubeconfig(folder, front.url), f"http://127.0.0.1:{server.server_port}")
        finally:
            front.stop()
            server.shutdown()
            thread.join()
            server.server_close()


def lease(holder: str) -> dict[str, Any]:
    return {"metadata": {"name": "gang-scheduler", "namespace": "kube-system"}, "spec": {"holderIdentity": holder}}


def priority_class(name: str, value: int, *, default: bool = False) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value, "globalDefault": default}


def kubeconfig(folder: Path, server: str, namespace: str = "", token: str = "") -> Path:
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "here", "context": context}],
        "current-context": "here",
    }
    file = folder / "kubeconfig.yaml"
    file.write_text(yaml.safe_dump(document))
    return file
