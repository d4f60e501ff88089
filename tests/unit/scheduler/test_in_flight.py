"""Of two bind calls for one pod the newer wins, after the older has ended."""

from __future__ import annotations

import threading

import pytest

from extender.scheduler.in_flight import SUPERSEDED, DrainingError, InFlight, TooManyHeldBindsError


def test_a_newer_call_ends_the_older_and_goes_on_after_it() -> None:
    in_flight = InFlight(limit=10)
    story: list[str] = []
    held = threading.Event()
    ended = threading.Event()

    def older() -> None:
        with in_flight.enter("uid") as call:
            call.on_abort(lambda reason: (story.append(reason), ended.set())[-1])  # type: ignore[func-returns-value]
            held.set()
            ended.wait()
            story.append("older is gone")

    thread = threading.Thread(target=older)
    thread.start()
    held.wait()
    with in_flight.enter("uid"):
        story.append("newer is in")
    thread.join()
    assert story == [SUPERSEDED, "older is gone", "newer is in"]
    assert len(in_flight) == 0


def test_a_third_call_waits_for_the_second_and_not_for_the_first_alone() -> None:
    """The end of the first must not take the second out of the line."""
    in_flight = InFlight(limit=10)
    story: list[str] = []
    inside = {name: threading.Event() for name in ("first", "second")}
    leave = {name: threading.Event() for name in ("first", "second")}
    told = threading.Event()

    def call(name: str) -> None:
        with in_flight.enter("uid") as entered:
            story.append(f"{name} is in")
            if name == "second":
                entered.on_abort(lambda reason: told.set())
            inside[name].set()
            leave[name].wait()
            story.append(f"{name} is gone")

    threads = [threading.Thread(target=call, args=(name,)) for name in ("first", "second")]
    threads[0].start()
    inside["first"].wait()
    threads[1].start()
    leave["first"].set()
    threads[0].join()
    inside["second"].wait()
    third = threading.Thread(target=lambda: _note_entry(in_flight, story))
    third.start()
    assert told.wait(5), "it has the second told to end"
    leave["second"].set()
    for thread in (threads[1], third):
        thread.join()
    assert story == ["first is in", "first is gone", "second is in", "second is gone", "third is in"]


def _note_entry(in_flight: InFlight, story: list[str]) -> None:
    with in_flight.enter("uid"):
        story.append("third is in")


def test_over_the_cap_a_call_is_answered_at_once() -> None:
    in_flight = InFlight(limit=1)
    with (
        in_flight.enter("a"),
        pytest.raises(TooManyHeldBindsError, match=r"too many waiting binds \(1\)"),
        in_flight.enter("b"),
    ):
        pass


def test_a_drain_ends_those_that_wait_and_takes_no_more() -> None:
    in_flight = InFlight(limit=10)
    reasons: list[str] = []
    with in_flight.enter("a") as call:
        call.on_abort(reasons.append)
        in_flight.drain("draining")
        assert reasons == ["draining"]
        with pytest.raises(DrainingError, match="draining"), in_flight.enter("b"):
            pass


def test_an_abort_before_a_listener_is_there_is_not_lost() -> None:
    with InFlight(limit=1).enter("a") as call:
        call.abort("the caller has hung up")
        call.abort("a later reason")
        reasons: list[str] = []
        call.on_abort(reasons.append)
        assert reasons == ["the caller has hung up"]


def test_a_call_has_to_be_answered_so_long_after_it_came() -> None:
    times = iter([110.0, 111.0])
    in_flight = InFlight(limit=2, deadline=lambda: next(times))
    with in_flight.enter("a") as first, in_flight.enter("b") as second:
        assert (first.deadline, second.deadline) == (110.0, 111.0)
