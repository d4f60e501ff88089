"""Each event in each state, row by row; what holds of the whole table; and that the drawing in the docs is of this table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from extender.plugins.coscheduling.state.member import (
    TRANSITIONS,
    Effect,
    MemberEvent,
    MemberState,
    Transition,
    _transitions,
)

ARCHITECTURE = (Path(__file__).parents[5] / "docs" / "architecture.md").read_text()

G, Q, U, D, A, W, K, S, B = MemberState
ALL = frozenset(MemberState)
ON_ITS_WAY = ALL - {W, S, B}  # its bind call has not come, or is over

# The sentence; the event; where it leads, and from which states; in which states it cannot happen. In all others it keeps
# the member where it is.
Moves = dict[MemberState, Iterable[MemberState]]
ROWS: list[tuple[str, MemberEvent, Moves, Iterable[MemberState]]] = [
    ("our gate holds what is not sent yet", MemberEvent.GATE_SEEN, {G: {Q, U}}, ()),
    ("a member that another has freed may be asked about", MemberEvent.GATE_GONE, {Q: {G}}, ()),
    ("whatever waits or backs off is sent to its place", MemberEvent.DISPATCHED, {D: {G, Q, U, K}}, {W, S}),
    ("without its nomination it may be asked about", MemberEvent.NOMINATION_WITHDRAWN, {Q: {D}}, {W, S}),
    ("likewise, if another has cleared it", MemberEvent.NOMINATION_CLEARED, {Q: {D}}, {W, S}),
    ("kube-scheduler parks what no gate and no bind call holds", MemberEvent.PARKED, {U: {Q, D, A, K}}, ()),
    ("an answer or an error counts no longer once it is asked about again", MemberEvent.ASKED, {Q: {G, A, K}}, ()),
    ("it has its node until its bind call comes", MemberEvent.ADMITTED, {A: ON_ITS_WAY}, ()),
    ("without a place it is kube-scheduler's, as any pod", MemberEvent.PASSED, {Q: ON_ITS_WAY}, ()),
    ("our refusal parks it", MemberEvent.REFUSED, {U: ON_ITS_WAY}, ()),
    ("without its place it is parked, if no gate holds it", MemberEvent.PLACE_LOST, {U: {Q, D, A, K}}, {W, S}),
    ("the newest bind call counts, whatever became of the last", MemberEvent.HELD, {W: ALL - {B}}, {B}),
    ("only held members start", MemberEvent.START_BEGUN, {S: {W}}, ALL - {W}),
    ("only a start that has begun is called off", MemberEvent.START_CALLED_OFF, {W: {S}}, ALL - {S}),
    ("what is bound is bound", MemberEvent.BINDING_CONFIRMED, {B: ALL}, ()),
    ("after an error it comes back by itself", MemberEvent.BIND_FAILED, {K: ALL - {U, B}}, ()),
    ("the API server's word counts, whatever has bound it", MemberEvent.SEEN_BOUND, {B: ALL}, ()),
    ("only what was seen on a node can be seen without", MemberEvent.SEEN_UNBOUND, {Q: {B}}, ALL - {B}),
]


def expected() -> Iterator[tuple[str, MemberState, MemberEvent, Transition]]:
    for sentence, event, moves, impossible in ROWS:
        for state in MemberState:
            to = next((to for to, origins in moves.items() if state in origins), state)
            yield sentence, state, event, Transition(to, possible=state not in impossible)


@pytest.mark.parametrize(
    ("state", "event", "wanted"),
    [
        pytest.param(state, event, wanted, id=f"{state}, {event}: {sentence}")
        for sentence, state, event, wanted in expected()
    ],
)
def test_every_event_in_every_state(state: MemberState, event: MemberEvent, wanted: Transition) -> None:
    found = TRANSITIONS[state, event]
    assert (found.state, found.possible) == (wanted.state, wanted.possible)


@pytest.mark.parametrize("state", MemberState)
def test_a_member_may_go_at_any_time(state: MemberState) -> None:
    found = TRANSITIONS[state, MemberEvent.GONE]
    assert (found.state, found.possible) == (None, True)


def test_the_table_is_read_the_same_however_often() -> None:
    """It is read once, when the program begins."""
    assert dict(_transitions()) == TRANSITIONS
    assert len(TRANSITIONS) == len(MemberState) * len(MemberEvent)


def test_no_row_is_forgotten() -> None:
    assert {event for _, event, _, _ in ROWS} | {MemberEvent.GONE} == set(MemberEvent)


EFFECTS = {
    (S, MemberEvent.BIND_FAILED): {Effect.KEEP_PLACE},
}


@pytest.mark.parametrize("event", MemberEvent)
@pytest.mark.parametrize("state", MemberState)
def test_what_follows_for_others(state: MemberState, event: MemberEvent) -> None:
    ends = event in (MemberEvent.SEEN_BOUND, MemberEvent.GONE)
    wanted = EFFECTS.get((state, event), {Effect.RELEASE_PLACE} if ends else set())
    assert set(TRANSITIONS[state, event].effects) == wanted


def test_an_impossible_event_has_no_effects() -> None:
    all_of_them = [TRANSITIONS[state, event] for state in MemberState for event in MemberEvent]
    assert not [each for each in all_of_them if not each.possible and each.effects]


def drawn() -> Iterator[tuple[str, str, str]]:
    (drawing,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", ARCHITECTURE, re.DOTALL)
    for line in drawing.splitlines():
        origin, arrow, rest = line.strip().partition(" --> ")
        to, _, events = rest.partition(": ")
        if arrow and origin != "[*]":
            yield from ((origin, event, to) for event in events.split(", "))


def test_the_drawing_is_of_this_table() -> None:
    """Without what keeps a member where it is, and what leads to one end from everywhere: that is said beside it."""
    ends = (MemberEvent.SEEN_BOUND, MemberEvent.BINDING_CONFIRMED, MemberEvent.GONE)
    moves = {
        (state.value, event.value, to.value)
        for state in MemberState
        for event in MemberEvent
        if (to := TRANSITIONS[state, event].state) is not None and to is not state
        if event not in ends or state is MemberState.STARTING
    }
    assert sorted(drawn()) == sorted(moves)
