"""Never a gang that would fit is left asleep: after each of many random events, no gang that is denied has a plan.

The true judge and cache, small clusters, gangs of all kinds of members; each seed is one history.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.scheduler.event_handlers import NodeHandlers, PodHandlers
from tests.fakes.planning import planning_judge
from tests.objects import HOSTNAME, ZONE, NodeBuilder, PodBuilder, make_node, make_pod, make_pod_group, selector
from tests.unit.plugins.coscheduling.conftest import Rooms, World

EVENTS = 30
JUDGE = planning_judge()
APPS = ("x", "y", "g0", "g1")
Change = Callable[[PodBuilder], PodBuilder]


class History:
    """A cluster to which things happen, with gated gangs that wait in it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World([])
        self.cache = Cache()
        self.world.connect(newest_snapshot=self.cache.snapshot, judges=Rooms(JUDGE))
        self.plugin = self.world.plugin
        observers: Any = (self.plugin,)
        self.on_nodes = NodeHandlers(self.cache, self.plugin.on_node)
        self.on_pods = PodHandlers(self.cache, Nominator(), observers, lambda pod: False)
        self.nodes: dict[str, corev1.Node] = {}
        self.pods: dict[str, corev1.Pod] = {}
        self.gangs: dict[str, list[corev1.Pod]] = {}
        self.made = 0

    def serial(self) -> int:
        self.made += 1
        return self.made

    # Nodes

    def node(self, name: str) -> corev1.Node:
        rng = self.rng
        made: NodeBuilder = make_node().name(name).label(HOSTNAME, name)
        made = made.capacity(cpu=rng.choice((1, 2, 2, 3)), memory="8Gi", pods=rng.choice((1, 2, 5)))
        if zone := rng.choice(("", "a", "a", "b")):
            made = made.label(ZONE, zone)
        if rng.random() < 0.3:
            made = made.label("hat", rng.choice(("red", "blue")))
        if rng.random() < 0.2:
            made = made.taint("t", "", rng.choice(("NoSchedule", "NoExecute")))
        return (made.unschedulable() if rng.random() < 0.15 else made).obj()

    def node_comes(self) -> None:
        if len(self.nodes) < 4:
            name = f"n{self.serial()}"
            self.nodes[name] = self.node(name)
            self.on_nodes.on_add(self.nodes[name])

    def node_changes(self) -> None:
        """All of it, or one thing of it."""
        if not self.nodes:
            return
        name = self.rng.choice(sorted(self.nodes))
        old, other = self.nodes[name], self.node(name)
        new = self.rng.choice(
            (
                other,
                structs.replace(old, metadata=other.metadata),
                structs.replace(old, status=other.status),
                structs.replace(old, spec=other.spec),
            )
        )
        self.nodes[name] = new
        self.on_nodes.on_update(old, new)

    def node_goes(self) -> None:
        if self.nodes and self.rng.random() < 0.5:
            self.on_nodes.on_delete(self.nodes.pop(self.rng.choice(sorted(self.nodes))))

    # Pods that run

    def pod_comes(self) -> None:
        if not self.nodes:
            return
        made = make_pod().name(f"p{self.serial()}").node(self.rng.choice(sorted(self.nodes)))
        made = self.rng.choice(RUNNING)(made.label("app", self.rng.choice(APPS)).req(cpu=self.rng.choice((1, 1, 2))))
        pod = made.obj()
        self.pods[pod.uid] = pod
        self.on_pods.on_add(pod)

    def pod_goes(self) -> None:
        if self.pods:
            self.on_pods.on_delete(self.pods.pop(self.rng.choice(sorted(self.pods))))

    def pod_changes(self) -> None:
        if not self.pods:
            return
        uid = self.rng.choice(sorted(self.pods))
        old = self.pods[uid]
        labels = {**old.metadata.labels, "app": self.rng.choice(APPS)}
        relabelled = structs.replace(old.metadata, labels=labels)
        deleting = make_pod().terminating().obj().metadata.deletion_timestamp
        new = self.rng.choice(
            (
                structs.replace(old, metadata=relabelled),
                structs.replace(old, metadata=structs.replace(old.metadata, deletion_timestamp=deleting)),
                structs.replace(old, status=structs.replace(old.status, phase="Succeeded")),
            )
        )
        if new.terminal:  # the watch leaves out what has ended
            self.on_pods.on_delete(self.pods.pop(uid))
            return
        self.pods[uid] = new
        self.on_pods.on_update(old, new)

    # Gangs

    def gang_comes(self) -> None:
        name = f"g{self.serial()}"
        group = make_pod_group().name(name).min_member(self.rng.choice((1, 2, 2, 3))).obj()
        self.plugin.on_pod_group(None, group)
        change = self.rng.choice(MEMBERS)
        base = make_pod().pod_group(name).label("app", self.rng.choice(APPS)).scheduling_gates(GATE)
        base = change(base.req(cpu=self.rng.choice((1, 1, 2, 3))))
        self.gangs[name] = [base.name(f"{name}-{number}").obj() for number in range(group.spec.min_member)]
        for member in self.gangs[name]:
            self.plugin.on_pod(None, member)

    def tasks(self) -> None:
        for _ in range(10):
            if not self.world.tasks:
                return
            self.world.run_tasks()
        raise AssertionError("it never comes to an end")

    def settle(self) -> None:
        """What was planned goes to its end: members are gone, and with them their places."""
        manager = self.plugin.manager
        self.tasks()
        while planned := [name for name in self.gangs if manager.groups[f"default/{name}"].planned]:
            for member in self.gangs.pop(planned[0]):
                self.plugin.on_pod(member, None)
            manager.notes.on_capacity_freed()
            self.plugin.rounds.schedule_planning()
            self.tasks()

    def asleep_though_they_fit(self) -> Mapping[str, object]:
        manager, found = self.plugin.manager, {}
        for name in self.gangs:
            group = manager.groups[f"default/{name}"]
            if group.planned:
                continue
            assert group.key in manager.denied, name
            gang_set, snapshot = gang_set_of(manager, group), self.cache.snapshot()
            question = self.plugin.rounds.requests.question(gang_set, "default-scheduler", snapshot)
            alone = replace(question.request, promised=())  # what is promised is to come, and is told when it does
            plans = [
                planner.plan(question.cluster, question.request, JUDGE),
                planner.plan(snapshot, alone, JUDGE),
            ]
            if all(isinstance(plan, planner.Placement) for plan in plans):
                found[name] = plans
        return found


GATE = "scheduling.x-k8s.io/gang"
X, OWN = selector({"app": "x"}), selector({"app": "g0"})
RUNNING: tuple[Change, ...] = (
    lambda pod: pod,
    lambda pod: pod,
    lambda pod: pod.pod_anti_affinity(ZONE, OWN),
    lambda pod: pod.pod_anti_affinity(HOSTNAME, X),
    lambda pod: pod.host_port(80),
)
MEMBERS: tuple[Change, ...] = (
    lambda pod: pod,
    lambda pod: pod.node_selector({"hat": "red"}),
    lambda pod: pod.node_affinity_in(ZONE, ("a",)),
    lambda pod: pod.toleration("t", operator="Exists"),
    lambda pod: pod.toleration(operator="Exists"),
    lambda pod: pod.host_port(80),
    lambda pod: pod.pod_affinity(ZONE, X),
    lambda pod: pod.pod_affinity(ZONE, OWN),
    lambda pod: pod.pod_anti_affinity(HOSTNAME, X),
    lambda pod: pod.pod_anti_affinity(ZONE, OWN),
    lambda pod: pod.spread_constraint(1, ZONE, label_selector=X),
    lambda pod: pod.spread_constraint(1, HOSTNAME, label_selector=OWN).node_selector({"hat": "blue"}),
    lambda pod: pod.spread_constraint(1, ZONE, label_selector=OWN, node_taints_policy="Honor"),
)


@pytest.mark.parametrize("seed", range(40))
def test_no_gang_that_would_fit_is_left_asleep(seed: int) -> None:
    history = History(seed)
    happens = (
        *(history.node_comes, history.node_changes, history.node_changes, history.node_goes),
        *(history.pod_comes, history.pod_comes, history.pod_goes, history.pod_changes),
    )
    for _ in range(3):
        history.node_comes()
    for _ in range(EVENTS):
        history.settle()
        for _ in range(3 - len(history.gangs)):
            history.gang_comes()
            history.settle()
        event = history.rng.choice(happens)
        event()
        history.tasks()
        assert not history.asleep_though_they_fit(), event.__name__
