"""PodGroups of kube-scheduler's own alpha API, on a control plane of their own that serves them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.conftest import BINARIES
from tests.e2e.control_plane import (
    IN_TREE_API,
    MANIFESTS,
    SCHEDULER_NAME,
    SIDECAR,
    WITH_IN_TREE_GROUPS,
    ControlPlane,
)
from tests.e2e.pair import Pair

COUNTED = {
    "profiles": [
        {
            "schedulerName": SCHEDULER_NAME,
            "pluginConfig": [{"name": "Coscheduling", "args": {"inTreePodGroups": True}}],
        }
    ]
}


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """In place of the one that all others share."""
    if BINARIES not in request.config.stash:
        pytest.skip("no control plane")
    started = ControlPlane(request.config.stash[BINARIES], tmp_path_factory.mktemp("alpha-plane"), WITH_IN_TREE_GROUPS)
    try:
        started.start()
        by_annotation = () if started.wakes_by_status else ("wake-by-annotation",)
        for overlay in ("crd", "rbac", "in-tree-groups", *by_annotation):
            started.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """With the rights that the manifests give, and no others."""
    with Pair.of(plane, tmp_path_factory.mktemp("pair"), token=SIDECAR, settings=COUNTED).running() as pair:
        yield pair


def test_min_count_pods_start_together(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="3")
    member: dict[str, Any] = {"requests": {"cpu": "1"}, "schedulingGroup": {"podGroupName": "train"}}
    names = [f"train-{number}" for number in range(3)]
    for name in names[:2]:
        cluster.pod(name, **member)
    cluster.recorder.await_message("train-0", "PodGroup not found", within=5)
    group = {"metadata": {"name": "train"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    body = {"apiVersion": IN_TREE_API, "kind": "PodGroup", **group}
    cluster.api.create(f"/apis/{IN_TREE_API}/namespaces/default/podgroups", body)
    cluster.recorder.await_message("train-1", "current pods number: 2, minMember of group: 3", within=10)
    assert cluster.recorder.bound() == set()
    cluster.pod(names[2], **member)
    cluster.recorder.await_bound(*names, within=10)
