"""A cluster that has no PodGroup definition: plain pods and the labels-only gangs do without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_api_server import served

LABELS = {"pod-group.scheduling.sigs.k8s.io/name": "light", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The extender is started where the definition is not there, and it is put back for the other modules."""
    Cluster(plane).remove_crd()
    try:
        with Pair.of(plane, tmp_path_factory.mktemp("without-crd")).running() as pair:
            yield pair
    finally:
        Cluster(plane).install_crd()


def test_plain_pods_are_scheduled(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    cluster.pod("plain")
    cluster.recorder.await_bound("plain", within=2)


def test_a_gang_by_labels_alone_waits_for_its_last_member(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    for name in ("light-0", "light-1"):
        cluster.pod(name, labels=LABELS)
    cluster.recorder.await_message(
        "light-1", "cannot find enough sibling pods, current pods number: 2, minMember of group: 3", within=5
    )
    cluster.pod("light-2", labels=LABELS)
    cluster.recorder.await_bound("light-0", "light-1", "light-2", within=2)


def test_a_gang_by_labels_alone_that_does_not_fit_starts_no_member(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="2")
    for number in range(3):
        cluster.pod(f"light-{number}", labels=LABELS, requests={"cpu": "1"})
    cluster.recorder.await_message("light-2", "nodes are available", within=5)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()


def test_a_definition_that_comes_later_is_noticed(cluster: Cluster, module_programs: Pair, tmp_path: Path) -> None:
    """From here on PodGroups are served."""
    cluster.node("node-1")
    for number in range(3):
        cluster.pod(f"web-{number}", group="web")
    cluster.recorder.await_message("web-0", "PodGroup not found", within=5)
    cluster.install_crd()
    cluster.pod_group("web", min_member=3)
    cluster.recorder.await_bound("web-0", "web-1", "web-2", within=60)


def test_a_definition_that_is_taken_away_and_comes_back(cluster: Cluster, module_programs: Pair) -> None:
    """All PodGroups go with it. Members that ask for one wait, and nothing else does."""
    extender = module_programs.extender
    cluster.node("node-1")
    cluster.pod_group("web", min_member=2)
    eventually(lambda: extender.gang("default/web"), within=15, what="the extender follows PodGroups")
    cluster.remove_crd()
    cluster.pod("plain")
    cluster.pod("web-0", group="web")
    cluster.recorder.await_bound("plain", within=5)
    cluster.recorder.await_message("web-0", "PodGroup not found", within=5)
    eventually(lambda: "podgroups" not in served(extender), within=40, what="the kind counts as absent")
    assert extender.ops("/readyz")[0] == 200
    cluster.install_crd()
    cluster.pod_group("web", min_member=2)
    cluster.pod("web-1", group="web")
    cluster.recorder.await_bound("web-0", "web-1", within=60)
