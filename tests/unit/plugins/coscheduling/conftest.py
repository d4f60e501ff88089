"""A gang's world in memory: nodes, pods, and a plugin whose dependencies record what it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import pytest

from extender import metrics
from extender.api import corev1
from extender.api.codec import convert
from extender.api.schedulingv1alpha1 import PodGroup
from extender.client.interface import OwnPodGroup
from extender.config.defaults import planning_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.framework.cycle_state import CycleState
from extender.framework.hint_rows import HintRow
from extender.framework.hypothetical import Cluster, snapshot_of
from extender.framework.interface import WaitingPod
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.status import SUCCESS, Status, unschedulable
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies, Verdict
from extender.plugins.coscheduling.planner import Judge
from extender.plugins.coscheduling.planner.request import Added
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.registry import new_registry
from tests.fakes.planning import nothing_around, planning_judge
from tests.unit.plugins.coscheduling.bookkeeping import wrong_entries

HINT_ROWS = planning_judge().hint_rows()
LABEL = "scheduling.x-k8s.io/pod-group"


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def node(name: str, cpu: str = "4", pods: int = 110, **spec: Any) -> corev1.Node:
    return convert(
        {
            "metadata": {"name": name},
            "spec": spec,
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": str(pods)}},
        },
        corev1.Node,
    )


def in_rack(name: str, rack: str, cpu: str = "4") -> corev1.Node:
    return convert(
        {"metadata": {"name": name, "labels": {"rack": rack}}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}},
        corev1.Node,
    )


def pod(name: str, group: str = "", cpu: str = "1", *, uid: str = "", node_name: str = "", **spec: Any) -> corev1.Pod:
    labels = spec.pop("labels", {LABEL: group} if group else {})
    more: dict[str, Any] = {"ownerReferences": spec.pop("owners", [])}
    if spec.pop("deleting", False):
        more["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": uid or name, "labels": labels, **more},
            "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}], "nodeName": node_name, **spec},
            "status": {"phase": "Pending"},
        },
        corev1.Pod,
    )


def pod_group(name: str, min_member: int, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> PodGroup:
    return convert(
        {
            "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
            "spec": {"minMember": min_member, **spec},
        },
        PodGroup,
    )


class Snapshot:
    """Fulfils NodeInfoLister; no pod in it has affinity."""

    def __init__(self, nodes: Iterable[corev1.Node], pods: Iterable[corev1.Pod]) -> None:
        self.infos = {n.name: NodeInfo(n) for n in nodes}
        for p in pods:
            self.infos[p.node_name].add_pod(PodInfo(p))

    generation = 1

    def list(self) -> Sequence[NodeInfo]:
        return tuple(self.infos.values())

    def get(self, name: str) -> NodeInfo:
        return self.infos[name]

    def have_pods_with_affinity(self) -> Sequence[NodeInfo]:
        return ()

    def have_pods_with_required_anti_affinity(self) -> Sequence[NodeInfo]:
        return ()

    def is_pvc_used_by_pods(self, key: str) -> bool:
        return any(key in info.pvc_ref_counts for info in self.infos.values())


class Waiting(WaitingPod):
    """A waiting pod that only notes the first signal."""

    def __init__(self, waiting: corev1.Pod, node_name: str) -> None:
        self._pod, self._node_name = waiting, node_name
        self.decision = ""

    @property
    def pod(self) -> corev1.Pod:
        return self._pod

    @property
    def node_name(self) -> str:
        return self._node_name

    def pending_plugins(self) -> Iterable[str]:
        return ["Coscheduling"]

    def _decide(self, decision: str) -> bool:
        first = not self.decision
        self.decision = self.decision or decision
        return first

    def allow(self, plugin: str) -> bool:
        return self._decide("allowed")

    def reject(self, plugin: str, message: str) -> bool:
        return self._decide(f"rejected: {message}")

    def preempt(self, plugin: str, message: str) -> bool:
        return self._decide(f"preempted: {message}")


class Room:
    """A judge that knows only room, cordons and names."""

    def begin(self, pod: corev1.Pod, cluster: Cluster) -> RoomFor:
        return RoomFor(pod, snapshot_of(cluster))

    def ties(self, pod: corev1.Pod) -> object:
        return ()


class RoomFor:
    """Of one pod. Fulfils Trial."""

    def __init__(self, judged: corev1.Pod, snapshot: NodeInfoLister) -> None:
        self.pod, self.snapshot = judged, snapshot

    def filter(self, node: NodeInfo) -> Status:
        if node.unschedulable:
            return unschedulable("node(s) were unschedulable")
        selector = self.pod.spec.node_selector or {}
        if any(node.node is None or node.node.labels.get(k) != v for k, v in selector.items()):
            return unschedulable("node(s) didn't match Pod's node affinity/selector")
        if self.pod.spec.topology_spread_constraints and any(
            p.pod.labels == self.pod.labels for p in node.pods
        ):  # one of a kind on each node, to stand for every rule by which members look at each other
            return unschedulable("node(s) didn't match pod topology spread constraints")
        return SUCCESS

    def filter_all(self) -> list[Status]:
        return [self.filter(info) for info in self.snapshot.list()]

    def volumes_on(self, node_name: str) -> Mapping[str, str]:
        return {}

    def add_pods(self, added: Sequence[Added]) -> None:
        """It only looks at the node that it judges."""

    def clone(self) -> RoomFor:
        return self


class Rooms:
    """Such judges, or another. Fulfils Judges."""

    def __init__(self, plans: Judge | None = None, around: FrameworkDependencies | None = None) -> None:
        """around: of the framework that the guard asks."""
        self.plans: Judge = plans or Room()
        self._around = around or nothing_around()

    def new(self) -> Judge:
        return self.plans

    def hint_rows(self) -> Sequence[HintRow]:
        return HINT_ROWS

    def in_tree(self) -> Framework:
        return Framework(planning_profile(), new_registry(), self._around)


class World:
    """The plugin with everything around it; the handle it needs is the world itself."""

    made: ClassVar[list[World]] = []  # in the test that runs

    def __init__(self, nodes: Sequence[corev1.Node], **args: Any) -> None:
        self.made.append(self)
        metrics.impossible_transitions.clear()
        self.nodes = {n.name: n for n in nodes}
        self.on_nodes: dict[str, corev1.Pod] = {}
        self.clock = FakeClock()
        self.waiting: dict[str, Waiting] = {}
        self.steered: list[tuple[str, str]] = []
        self.released: list[str] = []
        self.given_up: list[str] = []
        self.roused: list[str] = []
        self.woken: list[str] = []
        self.ungated: list[str] = []
        self.tasks: dict[str, Callable[[], None]] = {}
        self.verdicts: list[str] = []
        self.told: list[tuple[str, Verdict]] = []  # the same, whole
        self.forgotten: list[str] = []  # keys of groups whose verdicts were forgotten
        self.leading = True
        self.plans = 0
        self._others: dict[str, Any] = {}
        self.nominator: Any = self
        args.setdefault("early_start", False)  # a story about it says so; EarlyStartMachine draws what may happen
        self.starts_early = bool(args["early_start"])
        self.plugin = Coscheduling(CoschedulingArgs(**args), self)  # type: ignore[arg-type]
        self.connect()

    def connect(self, **others: Any) -> None:
        """others: dependencies in place of the world's own and of those given before; before anything has happened."""
        self._others |= others
        own: dict[str, Any] = {
            "newest_snapshot": self.snapshot,
            "judges": Rooms(),
            "steering": self,
            "verdicts": self,
            "submit": self.submit,
            "offload": self._offload,
            "may_commit": lambda: self.leading,
            "hold_limit": lambda members: 100.0,
        }
        self.plugin.connect(CoschedulingDependencies(**{**own, **self._others}))
        if self.starts_early:
            self.plugin.tick()  # it leads before the first pod comes

    def submit(self, name: str, task: Callable[[], None]) -> None:
        self.tasks[name] = task

    def nominated_nodes(self) -> list[str]:
        return []

    def nominated_pods_for_node(self, name: str) -> list[corev1.Pod]:
        return []

    def nominated_pods_but(self, uids: Set[str]) -> list[tuple[str, corev1.Pod]]:
        names = self.nominated_nodes()
        return [(name, pod) for name in names for pod in self.nominated_pods_for_node(name) if pod.uid not in uids]

    def _offload(self, function: Callable[..., object], *args: object) -> object:
        self.plans += 1
        return function(*args)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.nodes.values(), self.on_nodes.values())

    def get_waiting_pod(self, uid: str) -> Waiting | None:
        return self.waiting.get(uid)

    def nominate(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        self.steered += [(p.name, n) for p, n in places]

    def clear_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        self.released += [p.name for p in pods]

    def clear_foreign_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        self.given_up += [p.name for p in pods]

    def activate_by_nomination(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        self.roused += [p.name for p, _ in places]

    def activate(self, pods: Sequence[corev1.Pod]) -> None:
        self.woken += [p.name for p in pods]

    def ungate(self, pods: Sequence[corev1.Pod]) -> None:
        self.ungated += [p.name for p in pods]

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        self.verdicts.append(f"{key} {verdict.reason}: {verdict.message}")
        self.told.append((key, verdict))

    def forget(self, key: str) -> None:
        self.forgotten.append(key)

    def run_tasks(self) -> None:
        tasks = dict(self.tasks)
        self.tasks.clear()
        for task in tasks.values():
            task()

    def create(self, *pods: corev1.Pod) -> None:
        for p in pods:
            self.plugin.on_pod(None, p)

    def filter(self, asked: corev1.Pod, offered: Sequence[str] | None = None) -> str:
        """The planned node, `any`, or the refusal."""
        names = frozenset(self.nodes if offered is None else offered)
        place, status = self.plugin.admission.admit(asked, names)
        return place or "any" if status.success else status.message

    def arrive(self, member: corev1.Pod) -> None:
        """Filter, then Permit on the node that it was given; held from then on."""
        node_name = self.filter(member)
        status, _ = self.plugin.permit(CycleState(), member, node_name)
        if status.wait:
            self.waiting[member.uid] = Waiting(member, node_name)

    def bind(self, bound: corev1.Pod, node_name: str) -> Waiting | str:
        """Assume and Permit: the waiting pod, or `starts`, or the refusal."""
        on_node = convert(
            {
                "metadata": {"name": bound.name, "namespace": "default", "uid": bound.uid, "labels": bound.labels},
                "spec": {
                    "containers": [
                        {"resources": {"requests": {"cpu": bound.spec.containers[0].resources.requests["cpu"].text}}}
                    ],
                    "nodeName": node_name,
                },
            },
            corev1.Pod,
        )
        self.on_nodes[bound.uid] = on_node
        status, _ = self.plugin.gang_permit.permit(bound, node_name, 60.0)
        if status.wait:
            self.waiting[bound.uid] = Waiting(bound, node_name)
            return self.waiting[bound.uid]
        return "starts" if status.success else status.message


def waves(manager: PodGroupManager, key: str = "default/g") -> list[frozenset[str]]:
    """UIDs of the members of a group's gang set that have a slot, wave by wave."""
    keys = manager.gang_set_index.gang_set(key)
    found = sorted((slot.wave, slot.uid) for each in keys for slot in manager.slots.of_group(each))
    return [frozenset(uid for _, uid in wave) for _, wave in groupby(found, key=itemgetter(0))]


@pytest.fixture(autouse=True)
def books_are_in_order() -> Iterator[None]:
    """At the end of every story."""
    World.made.clear()
    yield
    for made in World.made:
        assert list(wrong_entries(made.plugin)) == []


@pytest.fixture
def world() -> Callable[..., World]:
    return World
