"""What wakes parked pods of a kube-scheduler before 1.33: an annotation, once that is seen to be needed.

The right to it, and the guard of that right, are manifests/wake-by-annotation.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, SIDECAR, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.test_gate_manifests import GATE, POD, STRATEGIC, await_guard, gates, is_refused


def test_the_gate_and_the_wake_annotation_are_free_and_nothing_else(cluster: Cluster) -> None:
    plane = cluster.plane
    account = plane.api(SIDECAR)
    for overlay in ("sidecar", "wake-by-annotation", "wake-by-annotation"):
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
    try:
        cluster.pod("web", schedulingGates=[GATE])
        await_guard(account, "web")
        for value in ("1", "2"):
            wake = {"metadata": {"annotations": {"gang-extender.dev/wake": value}}}
            account.call("PATCH", POD.format("web"), wake, STRATEGIC)
        assert is_refused(account, "web", {"metadata": {"annotations": {"other": "1"}}})
        account.call(
            "PATCH", POD.format("web"), {"spec": {"schedulingGates": [{"$patch": "delete", **GATE}]}}, STRATEGIC
        )
        assert gates(cluster, "web") == []
    finally:
        plane.kubectl("delete", "-k", str(MANIFESTS / "wake-by-annotation"))


def test_an_extender_that_was_told_nothing_wakes_the_pods_of_this_kube_scheduler(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """The API server is new; kube-scheduler may be older, as one that was forgotten in an upgrade. So in all stories here."""
    extender = Extender(tmp_path, cluster.plane.kubeconfig())
    scheduler = Scheduler(cluster.plane, tmp_path, extender=extender.url)
    programs.extend((extender, scheduler))
    extender.start()
    scheduler.start()
    cluster.node("node-1")
    cluster.pod_group("web", min_member=2)
    cluster.pod("web-0", group="web")
    cluster.recorder.await_message("web-0", "current pods number: 1", within=5)
    cluster.pod("web-1", group="web")
    cluster.recorder.await_bound("web-0", "web-1", within=10)
    annotations = cluster.api.get(POD.format("web-0"))["metadata"].get("annotations", {})
    assert ("gang-extender.dev/wake" in annotations) is not cluster.plane.wakes_by_status
