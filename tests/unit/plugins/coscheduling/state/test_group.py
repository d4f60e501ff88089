"""What a group keeps of its members' states: which members are in which, which are held where, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unittest.mock import Mock

import pytest

from extender import metrics
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.counts.standing import Standing
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Effect, Member, MemberEvent, MemberState
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.conftest import pod, pod_group

HELD, BEGUN, CONFIRMED = MemberEvent.HELD, MemberEvent.START_BEGUN, MemberEvent.BINDING_CONFIRMED
Event = tuple[MemberEvent, str]
"""With the node that comes with it."""


@pytest.fixture(autouse=True)
def no_impossible_transitions_yet() -> Iterator[None]:
    metrics.impossible_transitions.clear()
    yield
    metrics.impossible_transitions.clear()


@pytest.fixture
def group() -> Group:
    made = Group("default/g")
    join(made, "a")
    return made


def join(group: Group, uid: str, node_name: str = "") -> None:
    pod = make_pod().name(uid).uid(uid).node(node_name).obj()
    group.add(uid, Member(PodInfo(pod), GroupRef("default/g")))


def happen(group: Group, *events: Event) -> None:
    for event, node_name in events:
        group.happened("a", event, node_name)


@pytest.mark.parametrize(
    ("events", "state", "held"),
    [
        pytest.param([], MemberState.QUEUED, {}, id="a new one may be asked about"),
        pytest.param([(HELD, "n1")], MemberState.WAITING, {"a": "n1"}, id="held on a node"),
        pytest.param([(HELD, "n1"), (HELD, "n2")], MemberState.WAITING, {"a": "n2"}, id="held anew, on another"),
        pytest.param(
            [(HELD, "n1"), (BEGUN, "")], MemberState.STARTING, {"a": "n1"}, id="it keeps its node at the start"
        ),
        pytest.param([(HELD, "n1"), (MemberEvent.BIND_FAILED, "")], MemberState.BACKING_OFF, {}, id="let go"),
        pytest.param([(HELD, "n1"), (BEGUN, ""), (CONFIRMED, "n1")], MemberState.BOUND, {}, id="bound"),
        pytest.param(
            [(HELD, "n1"), (MemberEvent.REFUSED, "")], MemberState.WAITING, {"a": "n1"}, id="a hold outlasts a refusal"
        ),
    ],
)
def test_a_member_is_counted_in_one_state(
    group: Group, events: Sequence[Event], state: MemberState, held: dict[str, str]
) -> None:
    happen(group, *events)
    assert {each: set(group._by_state[each]) for each in MemberState if group._by_state[each]} == {state: {"a"}}
    assert group.held == held


def test_what_is_bound_is_on_its_node_before_the_watch_says_so(group: Group) -> None:
    happen(group, (HELD, "n1"), (BEGUN, ""), (CONFIRMED, "n1"))
    assert (group.members["a"].node_name, group.assigned, group.on_node()) == ("n1", {"a"}, set())
    happen(group, (MemberEvent.GONE, ""))
    assert group.unconfirmed == set()


def test_a_binding_that_the_watch_has_shown_first_is_not_waited_for() -> None:
    made = Group("default/g")
    join(made, "a", "n1")
    happen(made, (MemberEvent.SEEN_BOUND, ""), (CONFIRMED, "n1"))
    assert (made.unconfirmed, made.on_node()) == (set(), {"a"})


def test_a_start_is_forgotten_with_the_state(group: Group) -> None:
    happen(group, (HELD, "n1"), (BEGUN, ""))
    assert group.happened("a", MemberEvent.BIND_FAILED) == (Effect.KEEP_PLACE,)
    member = group.members["a"]
    assert "a" not in group.starting
    assert member.node == ""


def test_an_impossible_event_is_counted_and_changes_nothing(group: Group) -> None:
    group.happened("a", BEGUN)
    assert group._by_state[MemberState.QUEUED] == {"a"}
    (metric,) = metrics.impossible_transitions.collect()
    assert {(*each.labels.values(), each.value) for each in metric.samples} == {("Queued", "StartBegun", 1.0)}


def test_what_happens_to_no_member_is_nothing(group: Group) -> None:
    assert group.happened("other", MemberEvent.REFUSED) == ()
    assert group.refused == set()


def test_a_held_member_that_goes_is_held_until_its_call_ends_and_may_come_back(group: Group) -> None:
    happen(group, (HELD, "n1"), (MemberEvent.GONE, ""))
    assert (group.members, group.waiting(), group.held) == ({}, set(), {"a": "n1"})
    join(group, "a")
    assert (group.waiting(), group.members["a"].node) == ({"a"}, "n1")


def test_nothing_is_left_of_a_member_that_goes_while_it_starts(group: Group) -> None:
    happen(group, (HELD, "n1"), (BEGUN, ""), (MemberEvent.GONE, ""))
    assert (group.members, group.held, group.starting) == ({}, {}, set())


@pytest.mark.parametrize(
    ("gated", "state"),
    [
        pytest.param(True, MemberState.GATED, id="its gate still holds it"),
        pytest.param(False, MemberState.UNSCHEDULABLE, id="it was free"),
    ],
)
def test_a_member_that_was_sent_and_lost_its_place(group: Group, gated: bool, state: MemberState) -> None:
    if gated:
        group.gated.add("a")
    happen(group, (MemberEvent.DISPATCHED, ""))
    group.place_lost("a")
    assert group.members["a"].state is state


def test_a_member_that_moves_leaves_the_others_where_they_are(group: Group) -> None:
    join(group, "b")
    happen(group, (HELD, "n1"))
    assert (group._by_state[MemberState.QUEUED], group._by_state[MemberState.WAITING]) == ({"b"}, {"a"})


ASKED: dict[str, list[MemberState]] = {
    "refused": [MemberState.UNSCHEDULABLE],
    "admitted": [MemberState.ADMITTED],
    "starting": [MemberState.STARTING],
    "assigned": [MemberState.BOUND],
    "waiting": [MemberState.WAITING, MemberState.STARTING],
    "pending": [state for state in MemberState if state is not MemberState.BOUND],
}


@pytest.mark.parametrize(
    "events", [[], [MemberEvent.REFUSED], [MemberEvent.ADMITTED], [HELD], [HELD, BEGUN], [CONFIRMED]]
)
def test_each_question_is_answered_by_the_states(group: Group, events: list[MemberEvent]) -> None:
    happen(group, *((event, "n1") for event in events))
    answers = {
        "refused": group.refused,
        "admitted": group.admitted,
        "starting": group.starting,
        "assigned": group.assigned,
        "waiting": group.waiting(),
        "pending": {info.pod.uid for info in group.pending()},
    }
    state = group.members["a"].state
    assert {question: bool(found) for question, found in answers.items()} == {
        question: state in states for question, states in ASKED.items()
    }


def test_which_were_sent_and_which_were_refused_in_tree(group: Group) -> None:
    join(group, "b")
    assert (group.nominated(), group.rejected_in_tree()) == ([], {})
    group.members["a"].nomination, group.members["b"].rejected_in_tree = "", 0
    assert (group.nominated(), group.rejected_in_tree()) == (["a"], {"b": 0})


def test_a_group_waits_for_room_while_one_is_refused_or_gated(group: Group) -> None:
    assert not group.waits_for_room()
    group.gated.add("a")
    assert group.waits_for_room()
    group.gated.clear()
    happen(group, (MemberEvent.REFUSED, ""))
    assert group.waits_for_room()


def test_a_group_that_asks_for_something_else_has_another_standing(group: Group) -> None:
    """Its age is that of the quorum, and the quorum may be another."""
    group.spec = group.current = GroupSpec("default/g", 2)
    group.standing = Standing(0, None)
    group.asks_anew()
    assert [group.spec, group.current, group.standing] == [None, None, None]


def test_a_stop_knows_the_one_before(group: Group) -> None:
    stops = [Mock(), Mock()]
    for stop in stops:
        group.stop(stop)
    stops[0].after.assert_called_once_with(None)
    stops[1].after.assert_called_once_with(stops[0].after.return_value)
    assert group.last_diagnosis is stops[1].after.return_value


def test_which_members_count_towards_the_quorum_of_a_scheduler(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 2))
    manager.pod_changed(pod("a", "g", node_name="n1", schedulerName="theirs"))
    manager.pod_changed(pod("b", "g", schedulerName="theirs"))
    manager.pod_changed(pod("c", "g", schedulerName="ours"))
    assert group.siblings("ours") == {"a", "c"}
    assert group.siblings("nobodys") == {"a"}
