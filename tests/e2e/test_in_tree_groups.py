"""PodGroups of kube-scheduler's own API, on a control plane that serves them in the version of its release."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.in_tree import Groups, in_tree_plane, pair
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

UNLISTED = "example.com/unlisted-rack"  # a node label that the extender's configuration does not have


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with in_tree_plane(request, tmp_path_factory.mktemp("in-tree-plane")) as started:
        yield started


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair(plane, tmp_path_factory.mktemp("pair")).running() as started:
        yield started


@pytest.fixture
def groups(cluster: Cluster, module_programs: Pair) -> Iterator[Groups]:
    made = Groups(cluster)
    yield made
    made.end()


def await_gone(cluster: Cluster, *names: str) -> None:
    cluster.recorder.wait(
        lambda: all(cluster.recorder.pod(name) is None for name in names), within=10, what=f"{names} are gone"
    )


def test_the_version_of_the_release_is_found(module_programs: Pair, groups: Groups) -> None:
    """The other one is not served, which no pod has to wait for."""
    _, text = module_programs.extender.ops("/readyz?verbose")
    served = {name: f"informer-{name}.scheduling.k8s.io ok\n" in text for name in ("podgroups", "podgroups.v1alpha2")}
    assert served == {"podgroups": groups.newer, "podgroups.v1alpha2": not groups.newer}, text


def test_min_count_pods_start_together(cluster: Cluster, groups: Groups) -> None:
    """kube-scheduler has no condition for a gang that lacks members, and neither have we."""
    cluster.node("node-1", cpu="3")
    names = groups.members("train", 2)
    cluster.recorder.await_message("train-0", "PodGroup not found", within=5)
    groups.create("train", 3)
    cluster.recorder.await_message("train-1", "current pods number: 2, minMember of group: 3", within=10)
    assert cluster.recorder.bound() == set()
    assert groups.condition("train") == {}
    names += groups.members("train", 1, first=2)
    cluster.recorder.await_bound(*names, within=10)
    groups.await_condition("train", "True", "Scheduled")


def test_what_the_conditions_say_until_it_has_been_scheduled_and_after(cluster: Cluster, groups: Groups) -> None:
    """That it has been is final: a member that finds no room again changes nothing."""
    cluster.node("node-1", cpu="2")
    groups.create("train", 3)
    names = groups.members("train", 3)
    groups.await_condition("train", "False", "Unschedulable", text="Insufficient cpu")
    cluster.node("node-2", cpu="1")
    cluster.recorder.await_bound(*names, within=10)
    groups.await_condition("train", "True", "Scheduled")
    cluster.delete_pod("train-0")
    cluster.pod("other", requests={"cpu": "1"})
    cluster.recorder.await_bound("other", within=10)
    (late,) = groups.members("train", 1, first=3)
    cluster.recorder.await_message(late, "Insufficient cpu", within=10)
    cluster.recorder.settle()
    assert groups.condition("train")["status"] == "True"


def test_min_count_is_raised_and_lowered(cluster: Cluster, groups: Groups) -> None:
    if not groups.newer:
        pytest.skip("in 1.36 minCount is immutable")
    cluster.node("node-1", cpu="8")
    groups.create("train", 2)
    names = groups.members("train", 1)
    cluster.recorder.await_message("train-0", "minMember of group: 2", within=10)
    groups.change_min_count("train", 3)
    names += groups.members("train", 1, first=1)
    cluster.recorder.await_message("train-1", "minMember of group: 3", within=10)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    groups.change_min_count("train", 2)
    cluster.recorder.await_bound(*names, within=10)


def test_all_go_to_nodes_with_one_value_of_a_label_that_is_not_configured(cluster: Cluster, groups: Groups) -> None:
    for rack, cpus in (("a", ("2", "1")), ("b", ("2", "2"))):
        for number, cpu in enumerate(cpus):
            cluster.node(f"{rack}-{number}", cpu=cpu, labels={UNLISTED: rack})
    cluster.node("unlabelled", cpu="16")
    groups.create("train", 4, level=UNLISTED)
    names = groups.members("train", 4)
    cluster.recorder.await_bound(*names, within=10)
    assert {cluster.recorder.node_of(name)[0] for name in names} == {"b"}
    groups.create("later", 2, level=UNLISTED)
    groups.members("later", 2, cpu="2")
    groups.await_condition("later", "False", "Unschedulable", text=UNLISTED)


@pytest.mark.parametrize("preemptor", ["a gang", "a pod"])
@pytest.mark.parametrize("whole", [True, False], ids=["all", "single"])
def test_what_of_it_is_disrupted(cluster: Cluster, groups: Groups, preemptor: str, whole: bool) -> None:
    """Three run where two would do, and room for one is wanted: by our own preemption, and by kube-scheduler's with our guard."""
    for number in range(3):
        cluster.node(f"node-{number}", cpu="1")
    groups.create("low", 2, **groups.disrupted(whole=whole))
    low = groups.members("low", 3)
    cluster.recorder.await_bound(*low, within=10)
    cluster.excused |= {f"default/{name}" for name in low}
    class_name = cluster.priority_class(100)
    if preemptor == "a gang":
        groups.create("vip", 1, priorityClassName=class_name)
        vip = groups.members("vip", 1, priority=100)
    else:
        cluster.pod("vip", requests={"cpu": "1"}, priority=100)
        vip = ["vip"]
    cluster.recorder.await_bound(*vip, within=15)
    if whole:
        await_gone(cluster, *low)
        groups.await_condition("low", "True", "PreemptionByScheduler", "DisruptionTarget")
    cluster.recorder.settle()
    left = [name for name in low if cluster.recorder.pod(name) is not None]
    assert len(left) == (0 if whole else 2)
    if not whole:
        assert groups.condition("low", "DisruptionTarget") == {}


@pytest.mark.parametrize("preempts", [True, False], ids=["PreemptLowerPriority", "Never"])
def test_priority_and_preemption_policy_are_the_group_s(cluster: Cluster, groups: Groups, preempts: bool) -> None:
    """Its pods have no class of their own. The API server has the group say Never itself, where its class does."""
    if not groups.newer:
        pytest.skip("preemptionPolicy is of 1.37")
    for number in range(2):
        cluster.node(f"node-{number}", cpu="1")
        cluster.pod(f"low-{number}", requests={"cpu": "1"})
    low = [f"low-{number}" for number in range(2)]
    cluster.recorder.await_bound(*low, within=10)
    cluster.excused |= {f"default/{name}" for name in low}
    name = cluster.priority_class(100, preempts=preempts)
    said = {} if preempts else {"preemptionPolicy": "Never"}
    groups.create("vip", 2, priorityClassName=name, **said)
    vip = groups.members("vip", 2)
    if preempts:
        cluster.recorder.await_bound(*vip, within=15)
        return
    groups.await_condition("vip", "False", "Unschedulable", text="Insufficient cpu")
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set(low)


def test_a_restart_while_it_waits(cluster: Cluster, groups: Groups, module_programs: Pair) -> None:
    """The condition is not written once more, and the gang starts as soon as there is room."""
    cluster.killed = True
    cluster.node("node-1", cpu="2")
    groups.create("train", 3)
    names = groups.members("train", 3)
    groups.await_condition("train", "False", "Unschedulable")
    before = groups.condition("train")
    module_programs.extender.kill()
    cluster.await_back(module_programs.extender.start)
    eventually(lambda: module_programs.extender.gang("default/train")["told"], within=10, what="it is refused again")
    assert groups.condition("train") == before
    cluster.node("node-2", cpu="1")
    cluster.recorder.await_bound(*names, within=15)
    groups.await_condition("train", "True", "Scheduled")
