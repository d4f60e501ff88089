"""Tiny clusters and gangs for the planner, and kube-scheduler's view of its answer: one pod at a time."""

from __future__ import annotations

from collections.abc import Sequence

from extender.config.types import TopologyLevel
from extender.framework.hypothetical import with_pods
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from tests.fakes.planning import planning_judge
from tests.objects import HOSTNAME, ZONE, NodeBuilder, PodBuilder, make_node, make_pod, selector

RACK = "example.com/rack"
LEVELS = (TopologyLevel("zone", ZONE), TopologyLevel("rack", RACK))
GANG = selector({"gang": "g"})
JUDGE = planning_judge()


def node(name: str, cpu: int = 4, zone: str = "", rack: str = "", pods: int = 32) -> NodeBuilder:
    """No label where nothing is said."""
    builder = make_node().name(name).capacity(cpu=cpu, memory="64Gi", pods=pods).label(HOSTNAME, name)
    builder = builder.label(ZONE, zone) if zone else builder
    return builder.label(RACK, rack) if rack else builder


def member(cpu: int = 1) -> PodBuilder:
    return make_pod().label("gang", "g").req(cpu=cpu)


def gang(count: int, builder: PodBuilder, prefix: str = "m") -> list[PodInfo]:
    return [builder.name(f"{prefix}{i}").info() for i in range(count)]


def existing(name: str, node_name: str, cpu: int = 1) -> PodBuilder:
    return make_pod().name(name).node(node_name).req(cpu=cpu)


def plan(nodes: Sequence[NodeInfo], members: Sequence[PodInfo], needed: int | None = None, **request: object) -> Answer:
    wanted = planner.Request(members, len(members) if needed is None else needed, **request)  # type: ignore[arg-type]
    return planner.plan(nodes, wanted, JUDGE)


Answer = planner.Placement | planner.NoPlacement


def topology(required: str = "", preferred: str = "", **more: object) -> planner.Topology:
    return planner.Topology(LEVELS, required, preferred, **more)  # type: ignore[arg-type]


def placed(answer: Answer) -> dict[str, str]:
    """Pod -> node; fails for a verdict."""
    assert isinstance(answer, planner.Placement), answer
    return dict(answer.nodes)


def refused(answer: Answer) -> planner.NoPlacement:
    assert isinstance(answer, planner.NoPlacement), answer
    return answer


def accepts(
    nodes: Sequence[NodeInfo],
    arrived: Sequence[tuple[str, PodInfo]],
    nominated: Sequence[tuple[str, PodInfo]],
    pod: PodInfo,
    node_name: str,
) -> bool:
    """Whether kube-scheduler takes the pod on its node: with the siblings nominated there in place, and without them.

    PreFilter runs anew, so that nothing rests on AddPod but what kube-scheduler itself rests on it.
    """
    snapshot = with_pods(list(nodes), arrived)
    trial = JUDGE.begin(pod.pod, snapshot)
    if not trial.filter(snapshot.get(node_name)).success:
        return False
    with_nominated, there = trial.clone(), snapshot.get(node_name).clone()
    for name, sibling in nominated:
        if name == node_name:
            there.add_pod(sibling)
            with_nominated.add_pods([(sibling, there, {})])
    return with_nominated.filter(there).success


def refused_in_turn(
    nodes: Sequence[NodeInfo], members: Sequence[PodInfo], answer: planner.Placement, arrange: object = None
) -> str:
    """The first member that kube-scheduler would refuse, wave by wave; empty if none. arrange: reorders a wave."""
    infos = {info.pod.uid: info for info in members}
    arrived: list[tuple[str, PodInfo]] = []
    for wave in answer.waves:
        order = sorted(wave)
        if callable(arrange):
            order = arrange(order)
        for number, uid in enumerate(order):
            nominated = [(answer.nodes[other], infos[other]) for other in order[number + 1 :]]
            if not accepts(nodes, arrived, nominated, infos[uid], answer.nodes[uid]):
                return uid
            arrived.append((answer.nodes[uid], infos[uid]))
    return ""
