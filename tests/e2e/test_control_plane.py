"""The test bed itself: the real kube-scheduler alone, without an extender."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.intercepting_proxy import InterceptingProxy


def test_a_plain_pod_is_bound_by_the_stock_scheduler(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    scheduler = Scheduler(cluster.plane, tmp_path, extender=None)
    programs.append(scheduler)
    scheduler.start()
    cluster.node("node-1")
    cluster.pod("plain")
    cluster.recorder.await_bound("plain", within=5)


def test_without_an_extender_the_checker_sees_the_fraction_of_a_gang(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """The bed can fail: what the extender is for does not come by itself."""
    scheduler = Scheduler(cluster.plane, tmp_path, extender=None)
    programs.append(scheduler)
    scheduler.start()
    cluster.node("node-1", cpu="2")
    cluster.pod_group("web", min_member=3)
    for number in range(3):
        cluster.pod(f"web-{number}", group="web", requests={"cpu": "1"})
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 2, within=5, what="two of three are bound")
    (found,) = cluster.violations()
    assert "default/web: 2 of minMember 3 bound" in found
    cluster.judged = True


def test_a_pod_kept_out_by_the_intercepting_proxy_comes_in_when_the_door_opens(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    proxy = InterceptingProxy().start()
    try:
        scheduler = Scheduler(cluster.plane, tmp_path, extender=None, change=proxy.put_in_front)
        programs.append(scheduler)
        scheduler.start()
        proxy.keep_out(["late"])
        cluster.node("node-1")
        cluster.pod("late")
        cluster.pod("prompt")
        cluster.recorder.await_bound("prompt", within=5)
        condition = cluster.recorder.await_message("late", "kept out by the intercepting proxy", within=5)
        assert condition["reason"] == "Unschedulable"
        proxy.keep_out([])
        cluster.api.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"proxy": "open"}}})
        cluster.recorder.await_bound("late", within=2)
    finally:
        proxy.stop()
