"""manifests/wake-by-annotation, for kube-scheduler before 1.33: the right to wake by a patch of the pod, and its guard."""

from __future__ import annotations

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, SIDECAR
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
