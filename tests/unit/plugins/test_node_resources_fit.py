"""What has to be free on a node, and what does not count: each rule by itself; whole clusters are the parity tests' matter.

kube-scheduler: pkg/scheduler/framework/plugins/noderesources/fit_test.go
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from extender.config.plugin_args import NodeResourcesFitArgs
from extender.framework.cycle_state import CycleState
from extender.framework.status import SUCCESS, Status, unresolvable, unschedulable
from extender.plugins.node_resources_fit import NodeResourcesFit
from tests.objects import make_node, make_pod

GPU, FPGA, HUGE = "example.com/gpu", "other.org/fpga", "hugepages-2Mi"
ROOM: Mapping[str, str] = {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi", "pods": "2", GPU: "1", HUGE: "4Mi"}


def answered(asked: Mapping[str, str], args: NodeResourcesFitArgs | None = None, **taken: str) -> Status:
    node = make_node().name("n").capacity(ROOM)
    there = [make_pod().name("there").req({key.replace("_", "-"): value for key, value in taken.items()}).obj()]
    plugin, state = NodeResourcesFit(args or NodeResourcesFitArgs()), CycleState()
    pod = make_pod().name("p").req(asked).obj()
    plugin.pre_filter(state, pod, [])
    return plugin.filter(state, pod, node.info(*(there if taken else ())))


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param({}, SUCCESS, id="nothing asked for"),
        pytest.param({"cpu": "2", "memory": "1Gi"}, SUCCESS, id="all that there is"),
        pytest.param({"cpu": "2001m"}, unresolvable("Insufficient cpu"), id="more than the node has"),
        pytest.param(
            {"cpu": "3", "memory": "2Gi", "ephemeral-storage": "2Gi"},
            unresolvable("Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"),
            id="everything that runs short is named",
        ),
        pytest.param({GPU: "1"}, SUCCESS, id="an extended resource"),
        pytest.param({GPU: "2"}, unresolvable(f"Insufficient {GPU}"), id="more of an extended resource"),
        pytest.param({FPGA: "1"}, unresolvable(f"Insufficient {FPGA}"), id="an extended resource that is not there"),
        pytest.param({FPGA: "0"}, SUCCESS, id="none of one that is not there"),
        pytest.param({HUGE: "4Mi"}, SUCCESS, id="huge pages"),
        pytest.param({HUGE: "6Mi"}, unresolvable(f"Insufficient {HUGE}"), id="more huge pages"),
        pytest.param({"hugepages-1Gi": "1Gi"}, unresolvable("Insufficient hugepages-1Gi"), id="of another size"),
        pytest.param(
            {"attachable-volumes-x": "1"}, unresolvable("Insufficient attachable-volumes-x"), id="attachable volumes"
        ),
        pytest.param(
            {"kubernetes.io/odd": "1"}, unresolvable("Insufficient kubernetes.io/odd"), id="a prefixed native one"
        ),
        pytest.param({"requests.example.com/x": "9"}, SUCCESS, id="a quota's name is no resource"),
        pytest.param({"storage": "9"}, SUCCESS, id="a native name that nodes do not count"),
    ],
)
def test_an_empty_node(asked: Mapping[str, str], status: Status) -> None:
    assert answered(asked) == status


@pytest.mark.parametrize(
    ("asked", "taken", "status"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "1"}, SUCCESS, id="what is left"),
        pytest.param({"cpu": "1500m"}, {"cpu": "1"}, unschedulable("Insufficient cpu"), id="others may give it back"),
        pytest.param(
            {"cpu": "1500m", "memory": "2Gi"},
            {"cpu": "1"},
            unresolvable("Insufficient cpu", "Insufficient memory"),
            id="one of the two no victim can give back",
        ),
        pytest.param(
            {HUGE: "4Mi"}, {"hugepages_2Mi": "2Mi"}, unschedulable(f"Insufficient {HUGE}"), id="huge pages in use"
        ),
    ],
)
def test_a_node_in_use(asked: Mapping[str, str], taken: dict[str, str], status: Status) -> None:
    assert answered(asked, None, **taken) == status


def test_the_number_of_pods_can_always_be_cured() -> None:
    node = make_node().name("n").capacity(ROOM).info(*(make_pod().name(name).uid(name).obj() for name in "ab"))
    plugin, state, pod = NodeResourcesFit(NodeResourcesFitArgs()), CycleState(), make_pod().name("p").obj()
    plugin.pre_filter(state, pod, [])
    assert plugin.filter(state, pod, node) == unschedulable("Too many pods")


@pytest.mark.parametrize(
    ("asked", "resources", "groups", "status"),
    [
        pytest.param({FPGA: "9"}, {FPGA}, set(), SUCCESS, id="ignored by name"),
        pytest.param({FPGA: "9"}, set(), {"other.org"}, SUCCESS, id="ignored by group"),
        pytest.param(
            {FPGA: "9"}, {GPU}, {"example.com"}, unresolvable(f"Insufficient {FPGA}"), id="another is ignored"
        ),
        pytest.param({FPGA: "9"}, set(), {"other"}, unresolvable(f"Insufficient {FPGA}"), id="a part of the group"),
        pytest.param(
            {FPGA: "9", GPU: "9"}, set(), {"other.org"}, unresolvable(f"Insufficient {GPU}"), id="the others count"
        ),
        pytest.param({HUGE: "9Mi"}, {HUGE}, set(), unresolvable(f"Insufficient {HUGE}"), id="huge pages always count"),
        pytest.param({"cpu": "9"}, {"cpu"}, set(), unresolvable("Insufficient cpu"), id="so does the cpu"),
        pytest.param(
            {"kubernetes.io/odd": "1"},
            {"kubernetes.io/odd"},
            {"kubernetes.io"},
            unresolvable("Insufficient kubernetes.io/odd"),
            id="and a native name with a prefix",
        ),
    ],
)
def test_ignored_resources(asked: Mapping[str, str], resources: set[str], groups: set[str], status: Status) -> None:
    args = NodeResourcesFitArgs(ignored_resources=frozenset(resources), ignored_resource_groups=frozenset(groups))
    assert answered(asked, args) == status
