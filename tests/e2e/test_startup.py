"""The extender where the API server is not there yet, or goes away: alive, honest about it, and back by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.link import PASS, REFUSE, Link


@pytest.fixture
def link(cluster: Cluster) -> Iterator[Link]:
    made = Link(cluster.plane.port, mode=REFUSE).start()
    yield made
    made.stop()


def _extender(cluster: Cluster, link: Link, folder: Path) -> Extender:
    """One that sees the API server through the link."""
    return Extender(folder, cluster.plane.kubeconfig(server=f"https://127.0.0.1:{link.port}"))


def test_an_api_server_that_is_down_at_the_start(
    cluster: Cluster, link: Link, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    extender = _extender(cluster, link, tmp_path)
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
    assert "cache not synced" in cluster.recorder.condition("plain")["message"], "and not that it is not known"
    link.set(PASS)
    extender.await_ready()
    cluster.recorder.await_bound("plain", within=30)


def test_an_api_server_that_goes_away_and_comes_back(
    cluster: Cluster, link: Link, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    link.set(PASS)
    extender = _extender(cluster, link, tmp_path)
    scheduler = Scheduler(cluster.plane, tmp_path, extender=extender.url)
    programs.extend((extender, scheduler))
    extender.start()
    scheduler.start()
    cluster.node("node-1")
    cluster.pod_group("web", min_member=2)
    cluster.pod("web-0", group="web")
    cluster.recorder.await_message("web-0", "current pods number: 1", within=5)
    link.set(REFUSE)
    cluster.pod("web-1", group="web")
    assert extender.ops("/livez")[0] == 200
    assert cluster.recorder.bound() == set()
    link.set(PASS)
    cluster.recorder.await_bound("web-0", "web-1", within=40)
    cluster.node("large", cpu="640")
    cluster.pod("late", requests={"cpu": "100"})
    # What came since is watched too: calls name nodes, and do not show them.
    cluster.recorder.await_bound("late", within=40)
