"""When a gang may start, in what order, and in which words it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

Make = Callable[..., World]

TWO_OF_THREE = "pre-filter pod p1 cannot find enough sibling pods, current pods number: 2, minMember of group: 3"


def test_two_of_three_are_refused_and_the_third_plans_for_all(world: Make) -> None:
    w = world([node("n1", "2"), node("n2", "2")])
    w.plugin.on_pod_group(None, pod_group("g", 3))
    members = [pod(f"p{i}", "g") for i in range(3)]
    w.create(*members[:2])
    assert w.filter(members[1]) == TWO_OF_THREE
    w.create(members[2])

    assert w.filter(members[2]) in ("n1", "n2")
    assert [name for name, _ in w.steered] == ["p1"]  # only a member that was refused has to be woken
    assert w.plans == 1
    assert {w.filter(m) for m in members} == {"n1", "n2"}
    assert w.plans == 1


def test_a_pod_counts_before_the_watch_has_shown_it(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(pod("p0", "g"))
    assert w.filter(pod("p1", "g")) == "n1"


def test_a_gang_that_does_not_fit_is_refused_in_the_same_words_until_something_helps(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("g", 3))
    members = [pod(f"p{i}", "g") for i in range(3)]
    w.create(*members)
    text = "pod with pgName: default/g last failed in 3s, deny: minMember of 3 does not fit: Insufficient cpu"
    assert {w.filter(m) for m in members} == {text}
    assert w.plans == 1, "a denied group is not planned again"
    w.clock.now += 4
    assert w.filter(members[0]) == text

    w.nodes["n2"] = node("n2", "2")
    w.plugin.on_node(None, w.nodes["n2"])
    w.run_tasks()
    assert sorted(name for name, _ in w.steered) == ["p0", "p1", "p2"]
    assert w.filter(members[0]) in ("n1", "n2")


def test_the_older_gang_is_planned_before_the_younger_that_asks_first(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("old", 2, "2026-01-01T00:00:00Z"))
    w.plugin.on_pod_group(None, pod_group("young", 2, "2026-01-02T00:00:00Z"))
    old = [pod(f"o{i}", "old") for i in range(2)]
    young = [pod(f"y{i}", "young") for i in range(2)]
    w.create(old[0])
    assert "cannot find enough sibling pods" in w.filter(old[0])
    w.create(old[1], *young)
    assert "minMember of 2 does not fit" in w.filter(young[0])
    assert w.steered == [("o0", "n1")]
    assert w.filter(old[1]) == "n1"


def test_a_planned_gang_s_room_is_kept_from_others_of_equal_priority(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("a", 2))
    w.plugin.on_pod_group(None, pod_group("b", 2))
    a, b = [pod(f"a{i}", "a") for i in range(2)], [pod(f"b{i}", "b") for i in range(2)]
    w.create(*a, *b)
    assert w.filter(a[0]) == "n1"
    assert "minMember of 2 does not fit: Insufficient cpu" in w.filter(b[0])


def test_a_gang_of_higher_priority_takes_a_promised_place(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("low", 2))
    w.plugin.on_pod_group(None, pod_group("high", 2))
    low = [pod(f"l{i}", "low", priority=1) for i in range(2)]
    high = [pod(f"h{i}", "high", priority=9) for i in range(2)]
    w.create(*low)
    assert w.filter(low[0]) == "n1"
    w.create(*high)
    assert w.filter(high[0]) == "n1"
    assert "minMember of 2 does not fit" in w.filter(low[0])


def test_a_member_whose_node_is_not_offered_takes_an_alike_sibling_s_place(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"p{i}", "g") for i in range(2)]
    w.create(*members)
    first = w.filter(members[0])
    other = "n2" if first == "n1" else "n1"
    assert w.filter(members[0], [other]) == other
    assert w.filter(members[1]) == first


def test_a_gang_that_fits_only_where_a_call_was_not_offered_is_planned_again_though_nothing_happens(
    world: Make,
) -> None:
    """As with a required rack of which kube-scheduler's sample has no node: all members are parked, and no event would come."""
    w = world([node("n1", "1"), node("n2", "1"), node("small", "500m")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"p{i}", "g") for i in range(2)]
    w.create(*members)
    w.plugin.tick()  # it leads
    for member in members:
        assert "minMember of 2 does not fit" in str(w.filter(member, ["small"]))
    assert w.steered == []
    w.clock.now += 4  # a denial lasts for three seconds
    w.plugin.tick()
    w.run_tasks()
    assert {uid for uid, _ in w.steered} == {"p0", "p1"}


def test_a_place_that_kube_scheduler_refuses_is_planned_anew_among_what_it_offers(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1"), node("n3", "1"), node("n4", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"p{i}", "g") for i in range(2)]
    w.create(*members)
    taken = {w.filter(members[0]), w.filter(members[1])}
    free = sorted(set(w.nodes) - taken)
    assert w.filter(members[0], free) in free


def test_an_extra_member_of_a_running_gang_passes_singly(world: Make) -> None:
    w = world([node("n1", "4")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*(pod(f"p{i}", "g", node_name="n1") for i in range(2)))
    assert w.filter(pod("p2", "g")) == "any"


def test_a_replaced_member_of_a_running_gang_is_planned_alone(world: Make) -> None:
    w = world([node("n1", "4")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    running = [pod(f"p{i}", "g", node_name="n1") for i in range(2)]
    w.create(*running)
    w.plugin.on_pod(running[0], None)
    assert w.filter(pod("p2", "g")) == "n1"


def test_gates_of_others_hold_the_quorum_back_and_our_own_does_not(world: Make) -> None:
    w = world([node("n1", "4")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    foreign = pod("p0", "g", schedulingGates=[{"name": "example.com/wait"}])
    w.create(foreign)
    assert w.filter(pod("p1", "g")) == "pre-filter pod p1 cannot proceed due to gated pods in the same PodGroup"
    w.plugin.on_pod(foreign, pod("p0", "g", schedulingGates=[{"name": "scheduling.x-k8s.io/gang"}]))
    assert w.filter(pod("p1", "g")) == "n1"


def test_a_member_of_another_scheduler_counts_only_once_it_runs(world: Make) -> None:
    w = world([node("n1", "4")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    other = pod("p0", "g", schedulerName="other")
    w.create(other)
    assert "current pods number: 1" in w.filter(pod("p1", "g"))
    w.plugin.on_pod(other, pod("p0", "g", schedulerName="other", node_name="n1"))
    assert w.filter(pod("p1", "g")) == "n1"


def test_min_resources_are_checked_less_what_the_group_holds_already(world: Make) -> None:
    w = world([node("n1", "4")])
    w.plugin.on_pod_group(None, pod_group("g", 2, minResources={"cpu": "6"}))
    members = [pod(f"p{i}", "g") for i in range(2)]
    w.create(*members)
    assert w.filter(members[0]) == "pod with pgName: default/g last failed in 3s, deny: resource gap: cpu"

    w2 = world([node("n1", "4")])
    w2.plugin.on_pod_group(None, pod_group("g", 2, minResources={"cpu": "5"}))
    w2.on_nodes["p0"] = pod("p0", "g", "3", node_name="n1")
    w2.create(w2.on_nodes["p0"])
    assert "resource gap: cpu" in w2.filter(pod("p1", "g"))
    w3 = world([node("n1", "4")])
    w3.plugin.on_pod_group(None, pod_group("g", 2, minResources={"cpu": "4"}))
    w3.on_nodes["p0"] = pod("p0", "g", "3", node_name="n1")
    w3.create(w3.on_nodes["p0"])
    assert w3.filter(pod("p1", "g")) == "n1"


def test_a_pod_without_its_pod_group_waits_for_it_and_is_woken(world: Make) -> None:
    w = world([node("n1")])
    w.create(pod("p0", "g"))
    assert w.filter(pod("p0", "g")) == "PodGroup not found"
    w.plugin.on_pod_group(None, pod_group("g", 1))
    assert w.woken == ["p0"]
    assert w.filter(pod("p0", "g")) == "n1"


def test_lightweight_labels_need_no_pod_group_and_have_to_agree(world: Make) -> None:
    w = world([node("n1")])

    def member(name: str, minimum: str) -> object:
        labels = {
            "pod-group.scheduling.sigs.k8s.io/name": "g",
            "pod-group.scheduling.sigs.k8s.io/min-available": minimum,
        }
        return pod(name, labels=labels)

    assert "current pods number: 1, minMember of group: 2" in w.filter(member("p0", "2"))  # type: ignore[arg-type]
    assert w.filter(member("p1", "2")) == "n1"  # type: ignore[arg-type]
    assert w.filter(member("p2", "3")) == "PodGroupMinAvailables of default/g do not match"  # type: ignore[arg-type]


def test_nonsense_is_refused_by_name(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 0))
    assert "spec.minMember: Invalid value: 0" in w.filter(pod("p0", "g"))


def test_nothing_is_left_of_groups_that_are_gone(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"p{i}", "g") for i in range(2)]
    w.create(*members)
    assert w.filter(members[0]) == "n1"
    for member in members:
        w.plugin.on_pod(member, None)
    w.plugin.on_pod_group(pod_group("g", 2), None)
    manager = w.plugin.manager
    assert (manager.groups, len(manager.slots), len(manager.permitted), len(manager.denied)) == ({}, 0, 0, 0)


def test_a_plan_whose_members_do_not_come_is_given_up(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("a", 2))
    w.plugin.on_pod_group(None, pod_group("b", 2))
    w.create(*(pod(f"a{i}", "a") for i in range(2)), *(pod(f"b{i}", "b") for i in range(2)))
    assert w.filter(pod("a0", "a")) == "n1"
    assert "does not fit" in w.filter(pod("b0", "b"))
    w.clock.now += 61
    w.plugin.tick()
    assert w.filter(pod("b0", "b")) == "n1"


def test_a_late_call_does_not_bring_a_deleted_pod_back(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    gone = pod("p0", "g")
    w.create(gone)
    w.plugin.on_pod(gone, None)
    assert "current pods number: 0" in w.filter(gone)
    assert "current pods number: 1" in w.filter(pod("p1", "g"))


def test_a_pod_that_no_watch_ever_shows_is_forgotten(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    assert "current pods number: 1" in w.filter(pod("only-by-call", "g"))
    w.clock.now += 31
    w.plugin.tick()
    assert "current pods number: 1" in w.filter(pod("p1", "g"))


def test_room_that_comes_free_while_a_denial_is_decided_is_not_overlooked(world: Make) -> None:
    w = world([node("n1", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"p{i}", "g") for i in range(2)]
    w.create(*members)
    plain = w._offload

    def meanwhile(function: Callable[..., object], *args: object) -> object:
        result = plain(function, *args)
        if "n2" not in w.nodes:
            w.nodes["n2"] = node("n2", "1")
            w.plugin.on_node(None, w.nodes["n2"])
        return result

    w._offload = meanwhile  # type: ignore[method-assign]
    w.plugin.connect(replace(w.plugin.dependencies, offload=meanwhile))
    assert "does not fit" in w.filter(members[0])
    w.run_tasks()
    assert w.steered == [("p0", "n1")] or w.steered == [("p0", "n2")]
