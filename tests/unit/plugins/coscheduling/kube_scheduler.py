"""kube-scheduler in a few lines around a gang's world: tries pods one by one, parks those that are refused, holds those that are told to
wait, binds those that start; parked pods are tried again when they are woken. Used by the stories of whole gangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from extender.api import corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.framework.binding_annotations import binding_annotations
from extender.framework.cycle_state import CycleState
from extender.framework.node_info import NodeInfo
from extender.framework.permit_rejection import note_rejection
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.scheduling.phases import phase_of
from extender.plugins.coscheduling.state.quorum import needs
from tests.objects import make_pod, make_pod_group
from tests.unit.plugins.coscheduling.bookkeeping import wrong_entries
from tests.unit.plugins.coscheduling.conftest import Waiting, World

PREFIX = "gang-extender.dev"
TIMEOUT = "rejected due to timeout after waiting 60s at plugin Coscheduling"


def member(
    name: str,
    group: str = "g",
    *,
    cpu: int = 1,
    namespace: str = "default",
    role: str = "",
    annotations: Mapping[str, str] | None = None,
    gated: bool = False,
) -> corev1.Pod:
    """Its UID is namespace/name."""
    made = make_pod().namespace(namespace).name(name).uid(f"{namespace}/{name}").req(cpu=cpu)
    made = made.pod_group(group) if group else made
    made = made.label(f"{PREFIX}/role", role) if role else made
    made = made.scheduling_gates("scheduling.x-k8s.io/gang") if gated else made
    for key, value in (annotations or {}).items():
        made = made.annotation(key, value)
    return made.obj()


def members(count: int, group: str = "g", prefix: str = "", **more: Any) -> list[corev1.Pod]:
    return [member(f"{prefix or group}{number}", group, **more) for number in range(count)]


def group(name: str = "g", minimum: int = 2, namespace: str = "default", **annotations: str) -> PodGroup:
    """annotations: by their names below our prefix, with _ for -."""
    made = make_pod_group().namespace(namespace).name(name).min_member(minimum).created("2026-01-01T00:00:00Z")
    for key, value in annotations.items():
        made = made.annotation(f"{PREFIX}/{key.replace('_', '-')}", value)
    return made.obj()


def on_node(pod: corev1.Pod, node_name: str, annotations: Mapping[str, str] | None = None) -> corev1.Pod:
    """annotations: of the binding, which the API server takes over to the pod."""
    merged = {**(pod.metadata.annotations or {}), **(annotations or {})}
    metadata = structs.replace(pod.metadata, annotations=merged)
    return structs.replace(pod, metadata=metadata, spec=structs.replace(pod.spec, node_name=node_name))


class KubeScheduler:
    """pods: as the API has them. active: to be tried. `told`: the last refusal of each pod, by name."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.plugin = world.plugin
        self.pods: dict[str, corev1.Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        self.active: dict[str, None] = {}
        self.told: dict[str, str] = {}
        self._backing_off: set[str] = set()
        self.starts: list[frozenset[str]] = []  # the names of those that started in one go

    # What users do

    def create(self, *pods: corev1.Pod) -> None:
        for pod in pods:
            self.pods[pod.uid] = pod
            self.plugin.on_pod(None, pod)
            if not pod.gated and not pod.node_name:
                self.active[pod.uid] = None
            if pod.node_name:
                self.world.on_nodes[pod.uid] = pod

    def delete(self, *pods: corev1.Pod) -> None:
        for pod in pods:
            known = self.pods.pop(pod.uid)
            self.active.pop(pod.uid, None)
            self.told.pop(pod.name, None)
            if known.node_name:
                self.world.on_nodes.pop(pod.uid)
            self.plugin.on_pod(known, None)
            waiting = self.world.waiting.get(pod.uid)
            if waiting is not None:
                waiting.reject("", "the pod is gone")
            self._settle()

    def apply(self, *groups: PodGroup) -> None:
        for each in groups:
            self.plugin.on_pod_group(self.groups.get(each.key), each)
            self.groups[each.key] = each
            self._settle()

    def remove(self, each: PodGroup) -> None:
        self.plugin.on_pod_group(self.groups.pop(each.key), None)
        self._settle()

    def time_out(self, pod: corev1.Pod) -> None:
        """The hold of one member comes to its end."""
        self.world.waiting[pod.uid].reject("Coscheduling", TIMEOUT)
        self._settle()

    def extender_restarts(self, world: World) -> None:
        """world: that of the new process, which sees what the API server has. Held members hear that the connection broke."""
        held = [each.pod for each in self.world.waiting.values()]
        World.made.remove(self.world)  # its books are as the end has left them
        world.clock.now = self.world.clock.now
        world.on_nodes = {uid: pod for uid, pod in self.pods.items() if pod.node_name}
        self.world, self.plugin = world, world.plugin
        for group in self.groups.values():
            self.plugin.on_pod_group(None, group)
        for pod in self.pods.values():
            self.plugin.on_pod(None, pod)
        for node in world.nodes.values():
            self.plugin.on_node(None, node)
        for pod in held:
            if pod.uid in self.pods:
                self._refused(self.pods[pod.uid], "EOF", "SchedulerError")
        self.plugin.tick()

    # What it does itself

    def run(self) -> None:
        """Until nothing moves; back-offs have ended."""
        self.active.update(dict.fromkeys(self._backing_off & self.pods.keys()))
        self._backing_off.clear()
        for _ in range(1000):
            self.wake()
            if self.world.tasks:
                self.world.run_tasks()
            elif self.active:
                self.attempt(next(iter(self.active)))
            else:
                return
        raise AssertionError("it never comes to rest")

    def wake(self) -> None:
        """What has been decided of those that wait is carried out, and so are patches."""
        self._settle()
        world = self.world
        by_name = {pod.name: pod for pod in self.pods.values() if not pod.node_name}
        for name, node_name in world.steered:
            self._touched(by_name.get(name), node_name)
        for name in (*world.woken, *world.released):
            self._touched(by_name.get(name), "")
        for name in world.ungated:
            self._freed(by_name.get(name))
        for pool in (world.steered, world.woken, world.released, world.ungated):
            pool.clear()

    def _touched(self, pod: corev1.Pod | None, node_name: str) -> None:
        if pod is None or pod.uid in self.world.waiting:
            return
        self._patch(pod.uid, nominated_node_name=node_name)
        if node_name:
            self._freed(self.pods[pod.uid])
        if not self.pods[pod.uid].gated and pod.uid not in self._backing_off:
            self.active[pod.uid] = None

    def _freed(self, pod: corev1.Pod | None) -> None:
        """It comes in when its gate goes, once."""
        if pod is None or not pod.gated:
            return
        self.pods[pod.uid] = structs.replace(pod, spec=structs.replace(pod.spec, scheduling_gates=()))
        self.active[pod.uid] = None
        self.plugin.on_pod(pod, self.pods[pod.uid])

    def _patch(self, uid: str, **status: object) -> None:
        old = self.pods[uid]
        new = structs.replace(old, status=structs.replace(old.status, **status))
        if new != old:
            self.pods[uid] = new
            self.plugin.on_pod(old, new)

    def _refused(self, pod: corev1.Pod, text: str, reason: str = "Unschedulable", nominated: str = "") -> None:
        """Parked; its nomination is cleared, or is that one. After an error it is tried again by itself.

        pod: as it was when its attempt began. A nomination that came since is not touched.
        """
        self.told[pod.name] = text
        if reason != "Unschedulable":
            self._backing_off.add(pod.uid)
        condition = corev1.PodCondition(type="PodScheduled", status="False", reason=reason, message=text)
        changes: dict[str, object] = {"conditions": (condition,)}
        if pod.status.nominated_node_name != nominated:
            changes["nominated_node_name"] = nominated
        if pod.uid in self.pods:
            self._patch(pod.uid, **changes)

    def attempt(self, uid: str) -> None:
        del self.active[uid]
        pod, snapshot = self.pods[uid], self.world.snapshot()
        asked = PodInfo(pod).requests
        fitting = [
            info
            for info in snapshot.list()
            if info.requested.milli_cpu + asked.milli_cpu <= info.allocatable.milli_cpu and not info.unschedulable
        ]
        nominated = [info for info in fitting if info.name == pod.status.nominated_node_name]
        node_name, text = self._ask(pod, nominated or fitting) if fitting else ("", "Insufficient cpu")
        if node_name:
            self._bind(pod, node_name)
        else:
            self._refused(pod, text)

    def filter_call(self, pod: corev1.Pod) -> str:
        """The first half of an attempt: the node that it is to be bound to, with `bind_call`."""
        self.active.pop(pod.uid, None)
        return self.world.filter(pod)

    def bind_call(self, pod: corev1.Pod, node_name: str) -> None:
        self._bind(pod, node_name)

    def _ask(self, pod: corev1.Pod, offered: Sequence[NodeInfo]) -> tuple[str, str]:
        """The node that our filter leaves, or none, and why."""
        state, passing = CycleState(), list[str]()
        result, status = self.plugin.pre_filter(state, pod, offered)
        if status.success or status.skip:
            allowed = result.node_names if result is not None else None
            may_be = (info for info in offered if allowed is None or info.name in allowed)
            passing = [info.name for info in may_be if self.plugin.filter(state, pod, info).success]
        return passing[0] if passing else "", status.message or "reserved"

    def _bind(self, pod: corev1.Pod, node_name: str) -> None:
        self.world.on_nodes[pod.uid] = on_node(pod, node_name)
        status, _ = self.plugin.permit(CycleState(), pod, node_name)
        self.told.pop(pod.name, None)
        if status.wait:
            self.world.waiting[pod.uid] = Waiting(pod, node_name)
            self._settle()
            return
        if status.success:
            self._settle({pod.uid: node_name})
            return
        self._let_go(pod, status.message)
        self._refused(pod, status.message, "SchedulerError")
        self._settle()

    def _settle(self, starting: Mapping[str, str] | None = None) -> None:
        """What was decided of those that wait is carried out; members that start together are bound together."""
        waiting = self.world.waiting
        started = dict(starting or {})
        while decided := [uid for uid, each in waiting.items() if each.decision]:
            for uid in decided:
                if waiting[uid].decision == "allowed":
                    started[uid] = waiting.pop(uid).node_name
                else:
                    self.call_ends(uid)
        if started:
            self._start(started)

    def call_ends(self, uid: str) -> None:
        """The bind call ends of a member whose hold was rejected."""
        each = self.world.waiting.pop(uid)
        cause = each.decision.removeprefix("rejected: ")
        self._let_go(each.pod, cause)
        self._refused(each.pod, cause, "SchedulerError")

    def _start(self, started: Mapping[str, str]) -> None:
        """By UID: the node."""
        names = {self._binding(uid, node_name) for uid, node_name in started.items()} - {""}
        if names:
            self.starts.append(frozenset(names))

    def _binding(self, uid: str, node_name: str) -> str:
        pod = self.pods.get(uid)
        state = CycleState()
        if pod is None or not self.plugin.pre_bind(state, pod, node_name).success:
            return ""
        self.plugin.post_bind(CycleState(), pod, node_name)
        self.pods[uid] = on_node(pod, node_name, binding_annotations(state))
        self.plugin.on_pod(pod, self.pods[uid])
        return pod.name

    def _let_go(self, pod: corev1.Pod, cause: str) -> None:
        self.world.on_nodes.pop(pod.uid, None)
        state = CycleState()
        note_rejection(state, cause)
        self.plugin.unreserve(state, pod, "")

    # What can be seen

    def running(self, prefix: str = "") -> set[str]:
        return {pod.name for pod in self.pods.values() if pod.node_name and pod.name.startswith(prefix)}

    def held(self) -> set[str]:
        return {each.pod.name for each in self.world.waiting.values()}

    def phase(self, key: str = "default/g") -> str:
        manager = self.plugin.manager
        with manager.lock:
            return phase_of(manager, manager.groups[key]).value

    def reason(self, key: str = "default/g") -> str:
        found = self.world.plugin.report.status(key)
        return found.gang.reason if found is not None else "gone"


def broken(kube: KubeScheduler) -> Iterable[str]:
    """What may never be, whatever has happened."""
    with kube.plugin.manager.lock:
        yield from _broken(kube)


def _broken(kube: KubeScheduler) -> Iterable[str]:
    yield from wrong_entries(kube.plugin)
    manager = kube.plugin.manager
    for key, each in manager.groups.items():
        yield from (f"{key}: {uid} is held and does not wait" for uid in each.held.keys() - kube.world.waiting.keys())
    held = {uid for each in manager.groups.values() for uid in each.held}
    yield from (f"{uid} waits and is not held" for uid in kube.world.waiting.keys() - held)
    for place in manager.slots:
        if not place.to_come and (place.uid not in kube.pods or kube.pods[place.uid].node_name):
            yield f"{place.uid} has a place and is gone, or has come"
    for node_name, info in kube.world.snapshot().infos.items():
        if info.requested.milli_cpu > info.allocatable.milli_cpu:
            yield f"{node_name} carries too much"


def lacking(kube: KubeScheduler, key: str) -> bool:
    """Whether the group runs with fewer than it asks for."""
    manager = kube.plugin.manager
    with manager.lock:
        each = manager.groups[key]
        spec = manager.specs.of(each)
        return spec is not None and bool(needs(each, spec, each.assigned))
