"""What a request leaves out and what it keeps beside the members: refused nodes, nominations, own places, other schedulers' members."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.refutations import How
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, part, trees

__all__ = ["trees"]
NAME = member("x").spec.scheduler_name


class Nominating(World):
    """Other schedulers have nominated pods to nodes."""

    def __init__(self, nodes: Sequence[corev1.Node]) -> None:
        self.nominations: dict[str, list[corev1.Pod]] = {}
        super().__init__(nodes)

    def nominated_nodes(self) -> list[str]:
        return list(self.nominations)

    def nominated_pods_for_node(self, name: str) -> list[corev1.Pod]:
        return self.nominations[name]


class Asked(KubeScheduler):
    """A gang of two of priority 5."""

    world: Nominating

    def __init__(self, world: Nominating) -> None:
        super().__init__(world)
        self.apply(group())
        self.create(*(with_priority(pod, 5) for pod in members(2)))

    def question(
        self, key: str = "default/g", scheduler_name: str = NAME, allowed: Any = None, **more: Any
    ) -> PlanQuestion:
        manager = self.plugin.manager
        with manager.lock:
            gang_set = gang_set_of(manager, manager.groups[key])
            snapshot = self.world.snapshot()
            return self.plugin.rounds.requests.question(gang_set, scheduler_name, snapshot, allowed, **more)

    def has_a_place(self, key: str, uid: str, node_name: str, *, firm: bool = False, priority: int | None = 5) -> None:
        info = self.plugin.manager.groups[key].members[uid].info
        self.plugin.manager.slots.reserve(Slot(info, key, node_name, math.inf, firm=firm, gang_priority=priority))


def with_priority(pod: corev1.Pod, priority: int) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


def names(places: Sequence[tuple[str, PodInfo]]) -> list[tuple[str, str]]:
    return [(where, info.pod.name) for where, info in places]


@pytest.fixture
def kube() -> Asked:
    return Asked(Nominating([node("n1", "8"), node("n2", "8")]))


@pytest.mark.parametrize(
    ("pod", "counts"),
    [
        pytest.param(with_priority(member("other", ""), 5), True, id="of the same priority"),
        pytest.param(with_priority(member("other", ""), 6), True, id="of a higher one"),
        pytest.param(with_priority(member("other", ""), 4), False, id="of a lower one"),
        pytest.param(with_priority(member("g0"), 5), False, id="a member of its own"),
    ],
)
def test_a_pod_that_is_nominated_by_others_counts(pod: corev1.Pod, counts: bool, kube: Asked) -> None:
    kube.world.nominations = {"n2": [pod]}
    found = kube.question()
    assert names(found.request.promised) == ([("n2", "other")] if counts else [])
    assert found.others is counts


def test_a_member_of_another_gang_that_we_have_sent_is_counted_by_its_place_alone(kube: Asked) -> None:
    kube.apply(group("o"))
    kube.create(*(with_priority(pod, 5) for pod in members(2, "o")))
    kube.has_a_place("default/o", "default/o0", "n1")
    kube.plugin.manager.groups["default/o"].members["default/o1"].nomination = "n1"
    kube.world.nominations = {"n1": [kube.pods["default/o0"], kube.pods["default/o1"]]}
    found = kube.question()
    assert names(found.request.promised) == []
    assert [info.pod.name for info in found.cluster.get("n1").pods] == ["o0"]
    kube.plugin.manager.groups["default/o"].members["default/o1"].nomination = None


def test_its_own_places_are_in_the_cluster_and_those_that_hold_against_none_beside_it(kube: Asked) -> None:
    """Its lowest member may have a place that any gang may take."""
    kube.has_a_place("default/g", "default/g0", "n1")
    kube.has_a_place("default/g", "default/g1", "n2", priority=1)
    found = kube.question()
    assert names(found.own) == [("n1", "g0"), ("n2", "g1")]
    in_cluster = [info.pod.name for name in ("n1", "n2") for info in found.cluster.get(name).pods]
    assert (names(found.request.promised), in_cluster) == ([("n2", "g1")], ["g0"])
    assert not found.others
    without = found.without_others()
    assert (names(without.request.promised), without.cluster, without.others) == (
        [("n1", "g0"), ("n2", "g1")],
        found.snapshot,
        False,
    )


def test_places_of_others_are_those_that_hold_against_it(kube: Asked) -> None:
    kube.apply(group("o", 3))
    kube.create(*(with_priority(pod, 3) for pod in members(3, "o")))
    kube.has_a_place("default/o", "default/o0", "n1", priority=5)
    kube.has_a_place("default/o", "default/o1", "n1", priority=3, firm=True)
    kube.has_a_place("default/o", "default/o2", "n1", priority=3)
    kube.has_a_place("default/g", "default/g0", "n2")
    manager, requests = kube.plugin.manager, kube.plugin.rounds.requests
    with manager.lock:
        gang_set = gang_set_of(manager, manager.groups["default/g"])
        found = {slot.pod.name for slot in requests.places_of_others(gang_set)}
    assert "o1" in found, "it finishes a start"
    assert "o2" not in found, "of lower priority"
    assert "g0" not in found, "its own"
    assert kube.question().others
    manager.slots.release("default/o1")


def test_nodes_that_kube_scheduler_refused_are_left_out(kube: Asked) -> None:
    manager = kube.plugin.manager
    gang = manager.groups["default/g"]
    gang.refuted.add("default/g0", "n1", How.REFUSED, manager.clock())
    gang.refuted.stays_out("default/g1", manager.notes.cluster_epoch)
    found = kube.question(allowed={"default/g0": frozenset(("n2",))}).request
    assert found.excluded == {("default/g0", "n1")}
    assert found.allowed == {"default/g0": {"n2"}, "default/g1": frozenset()}
    again = kube.question(allowed={"default/g1": frozenset(("n1",))}).request
    assert again.allowed == {"default/g1": {"n1"}}, "kube-scheduler asks about it now"
    kube.world.clock.now += 1000
    assert kube.question().request.excluded == frozenset(), "after a while it may be given them again"
    manager.notes.cluster_epoch += 1
    assert dict(kube.question().request.allowed) == {}, "the cluster has changed"


def test_pods_that_may_be_evicted_open_the_nodes_of_the_last_preempt_call(kube: Asked) -> None:
    gang = kube.plugin.manager.groups["default/g"]
    gang.refuted.sleeps("default/g0", 0)
    gang.refuted.may_preempt("default/g0", frozenset(("n2",)))
    assert kube.question().request.allowed == {"default/g0": frozenset()}
    assert kube.question(evicting=True).request.allowed == {"default/g0": {"n2"}}


def test_members_of_another_scheduler_and_those_that_others_gates_hold_are_not_planned(kube: Asked) -> None:
    kube.create(structs.replace(member("s"), spec=structs.replace(member("s").spec, scheduler_name="another")))
    held = member("h")
    gate = corev1.PodSchedulingGate("other")
    kube.create(structs.replace(held, spec=structs.replace(held.spec, scheduling_gates=(gate,))))
    assert [info.pod.name for info in kube.question().request.members] == ["g0", "g1"]
    assert [info.pod.name for info in kube.question(scheduler_name="another").request.members] == ["s"]


def test_a_gang_that_needs_none_still_asks_for_its_extra_members(kube: Asked) -> None:
    for name in ("g0", "g1"):
        pod = kube.pods[f"default/{name}"]
        kube.plugin.on_pod(pod, on_node(pod, "n1"))
    kube.create(member("extra"))
    found = kube.question().request
    assert ([info.pod.name for info in found.members], found.needed, found.minima) == (["extra"], 0, ())


def test_members_of_a_role_of_which_none_lacks_are_no_minimum(kube: Asked) -> None:
    kube.apply(group(minimum=3, roles="master=1,worker=1"))
    kube.create(on_node(member("m", role="master"), "n1"), member("w", role="worker"))
    minima = kube.question().request.minima
    assert [(each.name, each.needed, sorted(each.uids)) for each in minima] == [
        ("role worker", 1, ["default/w"]),
        ("minMember", 2, ["default/g0", "default/g1", "default/w"]),
    ]


def test_members_that_are_settled_count_for_no_batch(kube: Asked) -> None:
    """With only-waiting a member that has started before is asked for, and fills no minimum."""
    kube.apply(group(minimum=2, match_policy="only-waiting"))
    manager = kube.plugin.manager
    gang = manager.groups["default/g"]
    kube.create(*(on_node(pod, "n1") for pod in members(2, prefix="r")))
    gang.started.add("default/g0")
    minima = kube.question().request.minima
    assert [(each.needed, sorted(each.uids)) for each in minima] == [(2, ["default/g1"])]
    gang.started.discard("default/g0")


# Trees


def test_each_group_of_a_tree_is_a_leaf_with_what_it_needs(trees: Callable[[int], Trees]) -> None:
    kube = trees(8)
    kube.composite(composite("top", 1))
    kube.parts(part("a", "top"), part("b", "top", 3))
    kube.members("a", "b")
    manager = kube.plugin.manager
    with manager.lock:
        gang_set = gang_set_of(manager, manager.groups["default/a"])
        found = kube.plugin.rounds.requests.question(gang_set, NAME, kube.world.snapshot()).request
    assert found.tree is not None
    leaves = [child for child in found.tree.children if isinstance(child, planner.Leaf)]
    assert [(each.name, each.needed, sorted(each.uids)) for each in leaves] == [
        ("default/a", 2, ["default/a-0", "default/a-1"]),
        ("default/b", 3, ["default/b-0", "default/b-1"]),
    ]
    assert [[each.name for each in leaf.minima] for leaf in leaves] == [
        ["minMember of default/a"],
        ["minMember of default/b"],
    ]
    assert (found.needed, found.foreseen) == (2, None)


# Whether a member needs a plan


def needs_plan(kube: Asked, uid: str, key: str = "default/g") -> bool:
    manager = kube.plugin.manager
    with manager.lock:
        return kube.plugin.rounds.requests.needs_plan(manager.groups[key], uid)


def test_a_member_needs_a_plan_as_long_as_its_gang_needs_it(kube: Asked) -> None:
    assert needs_plan(kube, "default/g0")
    for name in ("g0", "g1"):
        kube.has_a_place("default/g", f"default/{name}", "n1")
    assert needs_plan(kube, "default/g0"), "without it one would be missing"
    kube.create(member("extra"))
    assert not needs_plan(kube, "default/extra")


def test_one_needs_a_plan_too_where_a_group_that_it_starts_with_lacks_a_place(kube: Asked) -> None:
    kube.apply(group(groups="b"), group("b", 1))
    kube.create(member("b0", "b"), member("extra"))
    for name in ("g0", "g1"):
        kube.has_a_place("default/g", f"default/{name}", "n1")
    assert needs_plan(kube, "default/extra")
    kube.has_a_place("default/b", "default/b0", "n1")
    assert not needs_plan(kube, "default/extra")


def test_one_that_schedules_alone_and_one_of_a_group_without_an_object_need_none(kube: Asked) -> None:
    kube.apply(group(match_policy="once-satisfied"))
    gang = kube.plugin.manager.groups["default/g"]
    gang.once_whole = True
    assert not needs_plan(kube, "default/g0")
    gang.once_whole = False
    assert needs_plan(kube, "default/g0")
    kube.remove(kube.groups["default/g"])
    assert not needs_plan(kube, "default/g0")
