"""manifests/preemption: without the right to evict, gangs preempt no pod and say so; with it they do."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import EXTENDER_ALONE, EXTENDER_USER, MANIFESTS, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.processes import eventually
from tests.e2e.test_manifests import bind_roles_to_the_extender_alone, is_forbidden
from tests.e2e.test_preemption import full, gang, there

OFF = "preemption for whole gangs is off: no permission to evict pods"


def grant(cluster: Cluster) -> None:
    """The overlay's role for the user that has the extender's own role and no other."""
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "preemption"))
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{EXTENDER_USER}-preemption"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "gang-extender-preemption",
        },
        "subjects": [{"kind": "User", "name": EXTENDER_USER, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    cluster.plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(binding))


def revoke(cluster: Cluster) -> None:
    cluster.plane.kubectl("delete", "--ignore-not-found", f"clusterrolebinding/{EXTENDER_USER}-preemption")


def test_a_gang_evicts_no_pod_until_the_overlay_is_applied(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    revoke(cluster)
    bind_roles_to_the_extender_alone(cluster.plane)
    alone = cluster.plane.api(EXTENDER_ALONE)
    eventually(lambda: not is_forbidden(alone, "/api/v1/nodes"), within=10, what="the roles are in force")
    extender = Extender(tmp_path, cluster.plane.kubeconfig(EXTENDER_ALONE))
    scheduler = Scheduler(cluster.plane, tmp_path, extender=extender.url)
    programs.extend((extender, scheduler))
    extender.start()
    scheduler.start()
    low = full(cluster, 0, 0)
    names = gang(cluster, "vip", 2, priority=100)
    eventually(lambda: OFF in page(extender), within=10, what="the group's page says that it is off")
    assert there(cluster, *low)
    try:
        grant(cluster)
        cluster.recorder.await_bound(*names, within=30)  # the permission is asked for anew from time to time
    finally:
        revoke(cluster)
    assert "is forbidden" not in extender.log(), "a right is missing"


def page(extender: Extender) -> str:
    status, text = extender.ops("/gangs/default/vip")
    return json.dumps(json.loads(text)) if status == 200 else ""
