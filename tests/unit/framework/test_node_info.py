"""What a node has, and what its pods take of it, as pods come and go; and which host ports are in each other's way.

kube-scheduler: pkg/scheduler/framework/types_test.go
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from extender.framework.node_info import HostPortInfo, NodeInfo
from extender.framework.pod_info import PodInfo
from tests.unit.backend.objects import a_node, a_pod

Port = tuple[str, str, int]


@pytest.mark.parametrize(
    ("used", "asked", "conflict"),
    [
        pytest.param(("127.0.0.1", "TCP", 80), ("127.0.0.1", "TCP", 80), True, id="the same"),
        pytest.param(("127.0.0.1", "TCP", 80), ("127.0.0.1", "TCP", 81), False, id="another port"),
        pytest.param(("127.0.0.1", "TCP", 80), ("127.0.0.1", "UDP", 80), False, id="another protocol"),
        pytest.param(("127.0.0.1", "TCP", 80), ("127.0.0.2", "TCP", 80), False, id="another address"),
        pytest.param(("127.0.0.1", "TCP", 80), ("", "TCP", 80), True, id="any address is every one"),
        pytest.param(("127.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True, id="however it is spelt"),
        pytest.param(("", "TCP", 80), ("127.0.0.1", "TCP", 80), True, id="the other way round"),
        pytest.param(("", "TCP", 80), ("", "TCP", 80), True, id="any and any"),
        pytest.param(("", "TCP", 80), ("", "UDP", 80), False, id="any address, of another protocol"),
        pytest.param(("", "TCP", 80), ("", "TCP", 81), False, id="any address, another port"),
        pytest.param(("", "", 80), ("", "TCP", 80), True, id="the protocol is TCP where none is said"),
        pytest.param(("127.0.0.1", "TCP", 80), ("127.0.0.1", "", 80), True, id="asked without one, too"),
        pytest.param(("", "TCP", 0), ("", "TCP", 0), False, id="no port is in no pod's way"),
        pytest.param(("", "TCP", -1), ("", "TCP", -1), False, id="nor one that is none"),
        pytest.param(("", "TCP", 1), ("", "TCP", 1), True, id="the lowest is one"),
    ],
)
def test_ports_in_each_others_way(used: Port, asked: Port, conflict: bool) -> None:
    ports = HostPortInfo()
    ports.add(*used)
    assert ports.conflicts(*asked) is conflict
    clone = ports.clone()
    ports.remove(*used)
    assert not ports.conflicts(*asked)
    assert clone.conflicts(*asked) is conflict


def test_ports_are_a_set() -> None:
    ports = HostPortInfo([("0.0.0.0", "TCP", 80)])
    ports.add("", "", 80)
    assert (len(ports), list(ports)) == (1, [("0.0.0.0", "TCP", 80)])
    ports.remove("", "UDP", 80)
    assert len(ports) == 1
    ports.remove("", "", 80)
    assert len(ports) == 0


def test_a_node_without_its_object_has_nothing() -> None:
    info = NodeInfo()
    assert (info.node, info.name, info.unschedulable) == (None, "", False)
    assert (info.allocatable.milli_cpu, info.requested.milli_cpu) == (0, 0)
    assert (info.non_zero_milli_cpu, info.non_zero_memory, info.image_states, info.pvc_ref_counts) == (0, 0, {}, {})
    assert (info.pods, info.pods_with_affinity, info.pods_with_required_anti_affinity) == ([], [], [])
    assert len(info.used_ports) == 0


def test_a_node_has_what_its_object_says_until_that_is_gone() -> None:
    node = a_node("n1", cpu="4")
    info = NodeInfo(node, [PodInfo(a_pod("p", "n1"))])
    assert (info.name, info.allocatable.milli_cpu, info.unschedulable) == ("n1", 4000, False)
    info.set_node(replace(a_node("n1", cpu="8"), spec=replace(node.spec, unschedulable=True)))
    assert (info.allocatable.milli_cpu, info.unschedulable) == (8000, True)
    info.remove_node()
    assert (info.name, info.unschedulable, len(info.pods)) == ("", False, 1)


def names(infos: list[PodInfo]) -> list[str]:
    return [info.pod.name for info in infos]


PODS = [
    a_pod("plain", "n1", cpu="100m", requests={"memory": "1Gi"}),
    a_pod("near", "n1", cpu="200m", affinity="podAffinity", port=80, claim="data"),
    a_pod("far", "n1", cpu="300m", affinity="podAntiAffinity", port=81, claim="data"),
    a_pod("last", "n1", cpu="400m", affinity="podAntiAffinity", claim="more"),
]


def test_what_pods_take_adds_up() -> None:
    info = NodeInfo(a_node("n1"), [PodInfo(pod) for pod in PODS])
    assert names(info.pods) == ["plain", "near", "far", "last"]
    assert names(info.pods_with_affinity) == ["near", "far", "last"]
    assert names(info.pods_with_required_anti_affinity) == ["far", "last"]
    assert (info.requested.milli_cpu, info.requested.memory) == (1000, 1 << 30)
    assert (info.non_zero_milli_cpu, info.non_zero_memory) == (1000, (1 << 30) + 3 * (200 << 20))
    assert info.pvc_ref_counts == {"default/data": 2, "default/more": 1}
    assert sorted(port for _, _, port in info.used_ports) == [80, 81]


def test_what_goes_is_given_back_and_the_last_pod_takes_its_place() -> None:
    info = NodeInfo(a_node("n1"), [PodInfo(pod) for pod in PODS])
    assert info.remove_pod(PODS[1]) is True
    assert names(info.pods) == ["plain", "last", "far"]
    assert names(info.pods_with_affinity) == ["last", "far"]
    assert names(info.pods_with_required_anti_affinity) == ["far", "last"]
    assert (info.requested.milli_cpu, info.non_zero_milli_cpu) == (800, 800)
    assert info.pvc_ref_counts == {"default/data": 1, "default/more": 1}
    assert [port for _, _, port in info.used_ports] == [81]
    for pod in (PODS[2], PODS[3], PODS[0]):
        assert info.remove_pod(pod) is True
    assert (info.pods, info.pods_with_affinity, info.pods_with_required_anti_affinity) == ([], [], [])
    assert (info.requested.milli_cpu, info.requested.memory) == (0, 0)
    assert (info.non_zero_milli_cpu, info.non_zero_memory, info.pvc_ref_counts) == (0, 0, {})


def test_a_pod_that_is_not_here_cannot_go() -> None:
    info = NodeInfo(a_node("n1"), [PodInfo(PODS[0])])
    generation = info.generation
    assert info.remove_pod(PODS[1]) is False
    assert (names(info.pods), info.generation) == (["plain"], generation)


def test_every_change_is_a_later_generation() -> None:
    info, seen = NodeInfo(), []
    for change in (
        lambda: info.set_node(a_node("n1")),
        lambda: info.add_pod(PodInfo(PODS[0])),
        lambda: info.remove_pod(PODS[0]),
        lambda: info.remove_node(),
    ):
        seen.append(info.generation)
        change()
        assert info.generation > seen[-1]


def test_a_copy_says_the_same_and_is_changed_alone() -> None:
    info = NodeInfo(a_node("n1", images={"web:1": 1}), [PodInfo(pod) for pod in PODS])
    info.image_states = {}
    copy = info.clone()

    def said(of: NodeInfo) -> list[object]:
        return [
            *(of.node, of.allocatable.milli_cpu, of.requested.milli_cpu, of.non_zero_milli_cpu, of.non_zero_memory),
            *(names(of.pods), names(of.pods_with_affinity), names(of.pods_with_required_anti_affinity)),
            *(sorted(of.used_ports), of.image_states, dict(of.pvc_ref_counts), of.generation),
        ]

    before = said(info)
    assert said(copy) == before
    for pod in PODS:
        copy.remove_pod(pod)
    assert said(info) == before


def test_a_node_is_shown_with_its_pods_number() -> None:
    assert repr(NodeInfo(a_node("n1"), [PodInfo(PODS[0])])).startswith("NodeInfo('n1', pods=1, requested=")
