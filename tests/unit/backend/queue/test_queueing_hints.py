"""Which event is worth waking which refused pod for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.backend.queue.in_flight_events import HappenedEvent
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.queueing_hints import EXTENDER, QueueingHints, Strategy, build_hints
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.hint_rows import HintRow
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, EnqueueExtensions, Plugin, QueueingHint
from extender.framework.pod_info import PodInfo
from tests.unit.backend.objects import a_pod

PROFILE = "default-scheduler"
POD_LABEL = ClusterEvent(events.POD, ActionType.UPDATE_POD_LABEL)


def yes(*_: object) -> QueueingHint:
    return QueueingHint.QUEUE


def no(*_: object) -> QueueingHint:
    return QueueingHint.SKIP


def broken(*_: object) -> QueueingHint:
    raise RuntimeError("no")


def refused(unschedulable: Sequence[str], pending: Sequence[str] = ()) -> QueuedPod:
    return QueuedPod(PodInfo(a_pod("p")), 0.0).rejected_by(unschedulable, pending)


@pytest.mark.faults
@pytest.mark.parametrize(
    ("rows", "entry", "event", "strategy"),
    [
        pytest.param([], refused([]), events.NODE_ADD, Strategy.AFTER_BACKOFF, id="no plugin refused it"),
        pytest.param(
            [], refused(["A"]), events.UNSCHEDULABLE_TIMEOUT, Strategy.AFTER_BACKOFF, id="a wildcard wakes every pod"
        ),
        pytest.param(
            [HintRow(events.NODE_ADD, "A", yes)], refused(["A"]), events.NODE_ADD, Strategy.AFTER_BACKOFF, id="a yes"
        ),
        pytest.param(
            [HintRow(events.NODE_ADD, "A")],
            refused(["A"]),
            events.NODE_ADD,
            Strategy.AFTER_BACKOFF,
            id="no function: yes",
        ),
        pytest.param(
            [HintRow(events.NODE_ADD, "A", broken)],
            refused(["A"]),
            events.NODE_ADD,
            Strategy.AFTER_BACKOFF,
            id="a function that fails: yes",
        ),
        pytest.param([HintRow(events.NODE_ADD, "A", no)], refused(["A"]), events.NODE_ADD, Strategy.SKIP, id="a no"),
        pytest.param(
            [HintRow(events.NODE_ADD, "B", yes)], refused(["A"]), events.NODE_ADD, Strategy.SKIP, id="a stranger's yes"
        ),
        pytest.param(
            [HintRow(events.NODE_ADD, "A", yes)], refused(["A"]), events.NODE_DELETE, Strategy.SKIP, id="another event"
        ),
        pytest.param(
            [HintRow(events.NODE_ADD, "A", yes)],
            refused(["A"], ["A"]),
            events.NODE_ADD,
            Strategy.IMMEDIATELY,
            id="a pending plugin's yes",
        ),
        pytest.param(
            [HintRow(events.NODE_ADD, "A", yes), HintRow(events.NODE_ADD, "B", yes)],
            refused(["A"], ["B"]),
            events.NODE_ADD,
            Strategy.IMMEDIATELY,
            id="a pending plugin's yes after another's",
        ),
        pytest.param(
            [HintRow(events.NODE_ADD, "A", yes), HintRow(events.NODE_ADD, "B", no)],
            refused(["A"], ["B"]),
            events.NODE_ADD,
            Strategy.AFTER_BACKOFF,
            id="a pending plugin's no does not undo another's yes",
        ),
    ],
)
def test_is_pod_worth_requeuing(
    rows: Sequence[HintRow], entry: QueuedPod, event: ClusterEvent, strategy: Strategy
) -> None:
    assert QueueingHints({PROFILE: rows}).worth_requeuing(entry, HappenedEvent(event)) is strategy


def test_a_pod_of_an_unknown_profile_is_not_lost() -> None:
    assert QueueingHints({}).worth_requeuing(refused(["A"]), HappenedEvent(events.NODE_ADD)) is Strategy.AFTER_BACKOFF


@pytest.mark.parametrize(
    ("registered", "incoming", "match"),
    [
        pytest.param(
            POD_LABEL, ClusterEvent(events.ASSIGNED_POD, POD_LABEL.action), True, id="Pod means assigned ones"
        ),
        pytest.param(
            POD_LABEL, ClusterEvent(events.UNSCHEDULABLE_POD, POD_LABEL.action), True, id="and unscheduled ones"
        ),
        pytest.param(
            ClusterEvent(events.ASSIGNED_POD, ActionType.ALL),
            ClusterEvent(events.UNSCHEDULABLE_POD, ActionType.ADD),
            False,
            id="an assigned one is no unscheduled one",
        ),
        pytest.param(events.NODE_ADD, events.NODE_DELETE, False, id="another action"),
        pytest.param(
            ClusterEvent(events.NODE, ActionType.ADD),
            ClusterEvent(events.NODE, ActionType.ALL),
            False,
            id="more than asked",
        ),
        pytest.param(
            ClusterEvent(events.WILDCARD, ActionType.ALL), events.NODE_ADD, True, id="a wildcard hears everything"
        ),
        pytest.param(events.NODE_ADD, ClusterEvent(events.CSI_NODE, ActionType.ADD), False, id="another resource"),
    ],
)
def test_match(registered: ClusterEvent, incoming: ClusterEvent, match: bool) -> None:
    assert events.matches(registered, incoming) is match


class Silent(Plugin):
    name = "Silent"


class Registers(EnqueueExtensions):
    name = "Registers"

    def __init__(self, *registered: ClusterEventWithHint) -> None:
        self.registered = registered

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self.registered


def test_a_plugin_that_registers_nothing_is_woken_by_every_resource() -> None:
    rows = build_hints([Silent()], with_extenders=True)
    assert {row.plugin for row in rows} == {"Silent", EXTENDER}
    assert {row.event.resource for row in rows} == set(events.ALL_RESOURCES)


@pytest.mark.parametrize(
    ("mask", "companion"),
    [
        pytest.param(ActionType.ADD, True, id="a plugin that waits for new nodes hears of taints"),
        pytest.param(
            ActionType.ADD | ActionType.UPDATE_NODE_TAINT, False, id="a plugin that hears of taints has its own hint"
        ),
        pytest.param(ActionType.DELETE, False, id="a plugin that does not wait for new nodes"),
    ],
)
def test_node_added_brings_node_taint(mask: int, companion: bool) -> None:
    rows = build_hints([Registers(ClusterEventWithHint(ClusterEvent(events.NODE, mask), no))])
    added = [row for row in rows if row.hint is None]
    assert [row.event for row in added] == (
        [ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT)] if companion else []
    )


def test_only_registered_events_are_of_interest() -> None:
    hints = QueueingHints({PROFILE: [HintRow(events.NODE_ADD, "A")]})
    assert hints.of_interest(events.NODE_ADD)
    assert hints.of_interest(events.UNSCHEDULABLE_TIMEOUT)
    assert not hints.of_interest(events.ASSIGNED_POD_ADD)
