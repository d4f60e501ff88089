"""Which events are replayed for a pod that comes back, and how long they are kept."""

from __future__ import annotations

import pytest

from extender.backend.queue.in_flight_events import InFlightEvents
from extender.framework.events import NODE_ADD

POP, DONE, EVENT = "pop", "done", "event"


@pytest.mark.parametrize(
    ("story", "replayed", "kept"),
    [
        pytest.param([(EVENT, 1)], {}, [], id="no pod in flight: not recorded"),
        pytest.param([(POP, "a"), (EVENT, 1)], {"a": [1]}, [1], id="recorded for the pod in flight"),
        pytest.param(
            [(POP, "a"), (EVENT, 1), (POP, "b"), (EVENT, 2)], {"a": [1, 2], "b": [2]}, [1, 2], id="only since the pop"
        ),
        pytest.param(
            [(POP, "a"), (EVENT, 1), (POP, "b"), (EVENT, 2), (DONE, "a")],
            {"b": [2]},
            [2],
            id="events that only the oldest needed go with it",
        ),
        pytest.param(
            [(POP, "a"), (EVENT, 1), (POP, "b"), (EVENT, 2), (DONE, "b")],
            {"a": [1, 2]},
            [1, 2],
            id="a younger one that is done frees nothing",
        ),
        pytest.param(
            [(POP, "a"), (EVENT, 1), (DONE, "a"), (EVENT, 2)], {}, [], id="the last one done leaves nothing behind"
        ),
        pytest.param([(DONE, "a"), (POP, "a"), (EVENT, 1)], {"a": [1]}, [1], id="done for a stranger is harmless"),
        pytest.param(
            [(POP, "a"), (EVENT, 1), (POP, "b"), (POP, "a"), (EVENT, 2)],
            {"a": [2], "b": [2]},
            [2],
            id="popped again: it starts anew",
        ),
    ],
)
def test_in_flight_events(story: list[tuple[str, object]], replayed: dict[str, list[int]], kept: list[int]) -> None:
    flying = InFlightEvents()
    for what, value in story:
        if what == POP:
            flying.begin(str(value))
        elif what == DONE:
            flying.done(str(value))
        else:
            flying.record(NODE_ADD, None, value)
    assert set(flying.pods()) == set(replayed)
    for uid, events in replayed.items():
        assert [each.new for each in flying.events_for(uid) or ()] == events
    assert [each.new for each in flying.events()] == kept
    assert flying.events_for("stranger") is None
