"""The extender where the API server is not there yet, or goes away: alive, honest about it, and back by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.relay import Relay


@pytest.fixture
def relay(cluster: Cluster) -> Iterator[Relay]:
    made = Relay(cluster.plane.port)
    yield made
    made.shut()


def _extender(cluster: Cluster, relay: Relay, folder: Path) -> Extender:
    """One that sees the API server through the relay."""
    return Extender(folder, cluster.plane.kubeconfig(server=f"https://127.0.0.1:{relay.port}"))


def test_an_api_server_that_is_down_at_the_start(
    cluster: Cluster, relay: Relay, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    extender = _extender(cluster, relay, tmp_path)
    scheduler = Scheduler(cluster.plane, tmp_path, extender=extender.url)
    programs.extend((extender, scheduler))
    extender.start(wait=False)
    extender.program.await_ready(lambda: extender.ops("/livez")[0] == 200, within=30)
    status, text = extender.ops("/readyz")
    assert status == 503
    assert "[-]" in text
    scheduler.start()
    cluster.node("node-1")
    cluster.pod("plain")
    cluster.recorder.wait(
        lambda: cluster.recorder.condition("plain").get("reason") == "SchedulerError",
        within=10,
        what="a pod hears that the extender is not ready",
    )
    relay.open()
    extender.await_ready()
    cluster.recorder.await_bound("plain", within=30)


def test_an_api_server_that_goes_away_and_comes_back(
    cluster: Cluster, relay: Relay, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    relay.open()
    extender = _extender(cluster, relay, tmp_path)
    scheduler = Scheduler(cluster.plane, tmp_path, extender=extender.url)
    programs.extend((extender, scheduler))
    extender.start()
    scheduler.start()
    cluster.node("node-1")
    cluster.pod_group("web", min_member=2)
    cluster.pod("web-0", group="web")
    cluster.recorder.await_message("web-0", "current pods number: 1", within=5)
    relay.shut()
    cluster.pod("web-1", group="web")
    assert extender.ops("/livez")[0] == 200
    assert cluster.recorder.bound() == set()
    relay.open()
    cluster.recorder.await_bound("web-0", "web-1", within=40)
