"""Pods and PodGroups come, change and go in any order, the watch is behind or has missed the half of it, and calls come late or
before it. Whatever the order: the books are in order after each step, and nothing is left of what is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from extender.api import corev1
from extender.api.corev1.pod import PodSchedulingGroup
from extender.api.quantity import parse_quantity
from extender.api.schedulingv1alpha1 import LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL, PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling.preemption.terminating_victims import TerminatingVictims
from extender.plugins.coscheduling.state.group_members import UNSEEN_SECONDS
from tests.unit.plugins.coscheduling.bookkeeping import wrong_entries
from tests.unit.plugins.coscheduling.conftest import LABEL, Waiting, World, node
from tests.unit.plugins.coscheduling.kube_scheduler import PREFIX, group, member, on_node
from tests.unit.plugins.coscheduling.stories.test_in_tree_groups import in_tree

KOORDINATOR = "gang.scheduling.koordinator.sh"
GROUPS = ("a", "b")
STEPS = {
    "initializer": {"jobset.sigs.k8s.io/replicatedjob-name": "initializer"},
    "worker": {"training.kubeflow.org/job-role": "worker"},
    "driver": {"spark-role": "driver"},
}
KINDS = ("object", "labels", "annotations", "in-tree", "names another", "", *STEPS)
PODS = tuple(f"p{number}" for number in range(5))
REFUSED = corev1.PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="Insufficient cpu")


def belonging(pod: corev1.Pod, kind: str, name: str) -> corev1.Pod:
    """The pod as a member of that group, by one of the ways to say so; of none for the empty kind."""
    labels: Mapping[str, str] = {}
    annotations: dict[str, str] = {}
    named: PodSchedulingGroup | None = None
    match kind:
        case "object":
            labels = {LABEL: name}
        case "initializer" | "worker" | "driver":
            labels = {LABEL: name, **STEPS[kind]}
        case "labels":
            labels = {LIGHTWEIGHT_NAME_LABEL: name, LIGHTWEIGHT_MIN_AVAILABLE_LABEL: "2"}
        case "annotations":
            annotations = {f"{KOORDINATOR}/name": name, f"{KOORDINATOR}/min-available": "1"}
        case "names another":
            labels = {LIGHTWEIGHT_NAME_LABEL: name, LIGHTWEIGHT_MIN_AVAILABLE_LABEL: "1"}
            annotations = {f"{PREFIX}/groups": ",".join(GROUPS)}
        case "in-tree":
            named = PodSchedulingGroup(pod_group_name=name)
    metadata = structs.replace(pod.metadata, labels=dict(labels), annotations=annotations)
    return structs.replace(pod, metadata=metadata, spec=structs.replace(pod.spec, scheduling_group=named))


class LifetimesMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World([node("n1", "3"), node("n2", "2")], in_tree_pod_groups=True, pod_group_backoff_seconds=1)
        self.plugin = self.world.plugin
        self.terminating = TerminatingVictims(self.plugin.manager, self.plugin.events, self.world)
        self.api: dict[str, corev1.Pod] = {}  # by name, as the API server has them
        self.shown: dict[str, corev1.Pod] = {}  # as the watch has shown them
        self.ever: list[corev1.Pod] = []  # every version that there has been
        self.objects: dict[str, PodGroup] = {}
        self.in_tree: dict[str, InTreePodGroup] = {}
        self.count = 0

    # What happens at the API server

    @rule(
        name=st.sampled_from(PODS),
        kind=st.sampled_from(KINDS),
        of=st.sampled_from(GROUPS),
        gated=st.booleans(),
        runs=st.sampled_from((False, False, True)),
    )
    def pod_is_created(self, name: str, kind: str, of: str, gated: bool, runs: bool) -> None:
        if name not in self.api:
            self.count += 1
            made = member(name, "", gated=gated and not runs)
            made = structs.replace(made, metadata=structs.replace(made.metadata, uid=f"{name}-{self.count}"))
            self._now(on_node(belonging(made, kind, of), "n1" if runs else ""))

    @precondition(lambda self: self.api)
    @rule(data=st.data(), kind=st.sampled_from(KINDS), of=st.sampled_from(GROUPS))
    def pod_says_it_is_of_another_group(self, data: st.DataObject, kind: str, of: str) -> None:
        self._now(belonging(self._any(data), kind, of))

    @precondition(lambda self: self.api)
    @rule(data=st.data())
    def pod_is_bound_by_another_replica(self, data: st.DataObject) -> None:
        self._now(on_node(self._any(data), "n1"))

    @precondition(lambda self: self.api)
    @rule(data=st.data())
    def pod_is_told_to_go(self, data: st.DataObject) -> None:
        pod = self._any(data)
        stamp = group().metadata.creation_timestamp
        self._now(structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_timestamp=stamp)))

    @precondition(lambda self: self.api)
    @rule(data=st.data(), phase=st.sampled_from(("Succeeded", "Failed")))
    def pod_ends(self, data: st.DataObject, phase: str) -> None:
        pod = self._any(data)
        self._now(structs.replace(pod, status=structs.replace(pod.status, phase=phase)))

    @precondition(lambda self: self.api)
    @rule(data=st.data(), refused=st.booleans())
    def pod_s_status_changes(self, data: st.DataObject, refused: bool) -> None:
        pod = self._any(data)
        self._now(structs.replace(pod, status=structs.replace(pod.status, conditions=(REFUSED,) if refused else ())))

    @precondition(lambda self: self.api)
    @rule(data=st.data())
    def pod_is_gone(self, data: st.DataObject) -> None:
        del self.api[self._any(data).name]

    # What the watch shows of it

    @rule(data=st.data(), twice=st.booleans())
    def watch_shows_a_pod(self, data: st.DataObject, twice: bool) -> None:
        """As it is now, whatever lay between: a relist does so. Twice where a handler has raised the first time."""
        for name in [data.draw(st.sampled_from(PODS))] * (1 + twice):
            self._shows(name)

    @rule()
    def watch_catches_up(self) -> None:
        for name in PODS:
            self._shows(name)

    @rule(
        name=st.sampled_from(GROUPS),
        minimum=st.integers(0, 4),
        names=st.sampled_from(("", "", "a,b")),
        cpu=st.sampled_from(("", "3", "4", "9")),
    )
    def object_is_applied(self, name: str, minimum: int, names: str, cpu: str) -> None:
        """cpu: of its minResources, which may speak of members that are still to be made."""
        asked = group(name, minimum, **({"groups": names} if names else {}))
        resources = {"cpu": parse_quantity(cpu)} if cpu else {}
        asked = structs.replace(asked, spec=structs.replace(asked.spec, min_resources=resources))
        self.plugin.on_pod_group(self.objects.get(name), asked)
        self.objects[name] = asked

    @precondition(lambda self: self.objects)
    @rule(data=st.data())
    def object_is_gone(self, data: st.DataObject) -> None:
        self.plugin.on_pod_group(self.objects.pop(data.draw(st.sampled_from(sorted(self.objects)))), None)

    @rule(name=st.sampled_from(GROUPS), minimum=st.integers(1, 3))
    def in_tree_object_is_applied(self, name: str, minimum: int) -> None:
        asked = in_tree(name, minimum)
        self.plugin.on_pod_group(self.in_tree.get(name), asked)
        self.in_tree[name] = asked

    @precondition(lambda self: self.in_tree)
    @rule(data=st.data())
    def in_tree_object_is_gone(self, data: st.DataObject) -> None:
        self.plugin.on_pod_group(self.in_tree.pop(data.draw(st.sampled_from(sorted(self.in_tree)))), None)

    # Calls, for a pod as it is or as it was at any time

    @precondition(lambda self: self.ever)
    @rule(data=st.data())
    def filter_is_called(self, data: st.DataObject) -> None:
        pod = data.draw(st.sampled_from(self.ever))
        self.plugin.pre_filter(CycleState(), pod, self.world.snapshot().list())

    @precondition(lambda self: self.ever)
    @rule(data=st.data(), node_name=st.sampled_from(("n1", "n2")), is_bound=st.booleans())
    def bind_is_called(self, data: st.DataObject, node_name: str, is_bound: bool) -> None:
        pod = data.draw(st.sampled_from(self.ever))
        if pod.uid in self.world.waiting or pod.uid in self.world.on_nodes:
            return
        self.world.on_nodes[pod.uid] = on_node(pod, node_name)
        status, _ = self.plugin.permit(CycleState(), pod, node_name)
        if status.wait:
            self.world.waiting[pod.uid] = Waiting(pod, node_name)
        elif status.success:
            self._goes_on(pod, node_name, is_bound)
        else:
            self._lets_go(pod, node_name)

    @precondition(lambda self: self.world.waiting)
    @rule(data=st.data())
    def hold_ends(self, data: st.DataObject) -> None:
        self.world.waiting[data.draw(st.sampled_from(sorted(self.world.waiting)))].reject("", "the caller has hung up")

    @precondition(lambda self: self.world.waiting)
    @rule(is_bound=st.booleans())
    def calls_that_were_decided_end(self, is_bound: bool) -> None:
        while decided := [uid for uid, each in self.world.waiting.items() if each.decision]:
            each = self.world.waiting.pop(decided[0])
            if each.decision == "allowed":
                self._goes_on(each.pod, each.node_name, is_bound)
            else:
                self._lets_go(each.pod, each.node_name)

    # And else

    @precondition(lambda self: self.shown)
    @rule(data=st.data(), stays=st.booleans())
    def pod_is_chosen_for_a_victim(self, data: st.DataObject, stays: bool) -> None:
        pod = self.shown[data.draw(st.sampled_from(sorted(self.shown)))]
        if not pod.deleting and not pod.terminal:
            self.terminating.go([pod])
            if stays:
                self.terminating.stay([pod.uid])

    @rule(seconds=st.sampled_from((1.0, UNSEEN_SECONDS + 1, 61.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.clock.now += seconds
        self.plugin.tick()
        self.terminating.tick()

    @rule()
    def plans_are_made(self) -> None:
        self.world.run_tasks()

    @invariant()
    def books_are_in_order(self) -> None:
        assert list(wrong_entries(self.plugin)) == []

    def teardown(self) -> None:
        self.api.clear()
        self.watch_catches_up()
        while self.world.waiting:
            for each in self.world.waiting.values():
                each.reject("", "draining")
            self.calls_that_were_decided_end(is_bound=False)
        for name in GROUPS:
            if name in self.objects:
                self.plugin.on_pod_group(self.objects.pop(name), None)
            if name in self.in_tree:
                self.plugin.on_pod_group(self.in_tree.pop(name), None)
        self.time_passes(UNSEEN_SECONDS + 1)
        self.plans_are_made()
        self.books_are_in_order()
        manager = self.plugin.manager
        assert manager.groups == {}
        assert (len(manager.slots), bool(manager.gang_set_index.named)) == (0, False)
        assert (manager._pods._unseen, manager.terminating, manager.nodes_of_victims) == ({}, {}, {})

    # How

    def _any(self, data: st.DataObject) -> corev1.Pod:
        return self.api[data.draw(st.sampled_from(sorted(self.api)))]

    def _now(self, pod: corev1.Pod) -> None:
        self.api[pod.name] = pod
        self.ever.append(pod)

    def _shows(self, name: str) -> None:
        """As PodHandlers pass it on."""
        old, new = self.shown.get(name), self.api.get(name)
        if old is not None and new is not None and old.uid != new.uid:
            self._told(old, None)
            old = None
        if old is not None or new is not None:
            self._told(old, new)

    def _told(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        self.plugin.on_pod(old, new)
        self.terminating.on_pod(old, new)
        pod = new or old
        assert pod is not None
        if new is not None:
            self.shown[pod.name] = new
        else:
            del self.shown[pod.name]
        if new is not None and new.node_name and not new.terminal:
            self.world.on_nodes[pod.uid] = new
        elif (new is None or new.terminal) and pod.uid not in self.world.waiting:
            self.world.on_nodes.pop(pod.uid, None)
        waiting = self.world.waiting.get(pod.uid)
        if waiting is not None and (new is None or (new.deleting and not new.node_name)):
            waiting.reject("", "removed")

    def _goes_on(self, pod: corev1.Pod, node_name: str, is_bound: bool) -> None:
        there = self.api.get(pod.name)
        fits = there is not None and there.uid == pod.uid and not there.node_name and not there.terminal
        if self.plugin.pre_bind(CycleState(), pod, node_name).success and is_bound and fits:
            self._now(on_node(self.api[pod.name], node_name))
            self.plugin.post_bind(CycleState(), pod, node_name)
        else:
            self._lets_go(pod, node_name)

    def _lets_go(self, pod: corev1.Pod, node_name: str) -> None:
        state = CycleState()
        self.plugin.unreserve(state, pod, node_name)
        self.world.on_nodes.pop(pod.uid, None)


LifetimesMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
TestLifetimesMachine = LifetimesMachine.TestCase
