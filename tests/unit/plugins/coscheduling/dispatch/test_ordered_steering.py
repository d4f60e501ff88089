"""Decisions on a pod reach the API server in the order in which they were taken, whatever thread is delayed after its decision."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock, call

import pytest

import extender.plugins.coscheduling
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.preemption import waiting_preemptors
from extender.plugins.coscheduling.preemption.waiting_preemptors import WaitingPreemptors
from extender.plugins.coscheduling.quarantine import Quarantine
from extender.simulation.gangs import NoSteering
from tests.unit.plugins.coscheduling.conftest import World, node, pod
from tests.unit.plugins.coscheduling.kube_scheduler import group, members

Make = Callable[..., World]


class StoppedAfter:
    """The manager's lock. The first thread that gives it back while `is_time` says so stops there until `go_on`."""

    def __init__(self, is_time: Callable[[], bool]) -> None:
        self._lock = threading.RLock()
        self._depth = 0  # of the owner
        self._is_time = is_time
        self.last_diagnosis, self.go_on = threading.Event(), threading.Event()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        stops = not self._depth and not self.last_diagnosis.is_set() and self._is_time()
        if stops:
            self.last_diagnosis.set()
        self._lock.release()
        if stops:
            assert self.go_on.wait(5)


@contextmanager
def stopped_after(made: World, is_time: Callable[[], bool], act: Callable[[], None]) -> Iterator[None]:
    """`act` in a thread of its own, which has taken its decision and stands still; it goes on at the end."""
    lock = StoppedAfter(is_time)
    made.plugin.manager.lock = made.plugin.manager.quarantine._lock = lock  # type: ignore[assignment]
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(act)
        assert lock.last_diagnosis.wait(5)
        try:
            yield
        finally:
            lock.go_on.set()
        done.result(5)


class Heard(NoSteering):
    """Notes what it is asked for, by the pod's name."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}

    def nominate(self, places: object) -> None:
        for each, node_name in places:  # type: ignore[attr-defined]
            self.said.setdefault(each.name, []).append(f"to {node_name}")

    def clear_nominations(self, pods: object) -> None:
        for each in pods:  # type: ignore[attr-defined]
            self.said.setdefault(each.name, []).append("released")

    def activate_by_nomination(self, places: object) -> None:
        for each, node_name in places:  # type: ignore[attr-defined]
            self.said.setdefault(each.name, []).append(f"woken by {node_name}")

    def ungate(self, pods: object) -> None:
        for each in pods:  # type: ignore[attr-defined]
            self.said.setdefault(each.name, []).append("freed")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def planned(world: Make, heard: Heard) -> World:
    """A gang of two that our gate holds, and that the next look plans."""
    made = world([node("n1", "4")])
    made.connect(steering=heard)
    made.plugin.on_pod_group(None, group(minimum=2))
    made.create(*members(2, gated=True))
    return made


def test_a_nomination_does_not_overtake_the_decision_that_takes_it_back(planned: World, heard: Heard) -> None:
    """The planner's thread was delayed after it had decided; what it nominated then was never taken back."""
    plugin = planned.plugin
    gang = plugin.manager.groups["default/g"]
    with stopped_after(planned, lambda: len(gang.nominated()) == 2, plugin.rounds.plan_waiting):
        plugin.rounds.drop_plan("default/g")
        plugin.manager.denied["default/g"] = "no room"  # no other plan follows
        plugin.dispatcher.clear_nominations(gang)
    assert heard.said == {name: ["to n1", "released"] for name in ("g0", "g1")}


def test_a_release_does_not_overtake_the_nomination_of_the_next_plan(planned: World, heard: Heard) -> None:
    plugin = planned.plugin
    gang = plugin.manager.groups["default/g"]
    plugin.rounds.plan_waiting()
    plugin.rounds.drop_plan("default/g")
    with stopped_after(planned, lambda: not gang.nominated(), lambda: plugin.dispatcher.clear_nominations(gang)):
        plugin.rounds.plan_waiting()
    assert {name: said[-1] for name, said in heard.said.items()} == {"g0": "to n1", "g1": "to n1"}


def test_a_preemptor_that_is_tried_again_does_not_overtake_the_nomination_of_its_plan(
    planned: World, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick was delayed after it had decided to wake the member by some node; its gang had places by then."""
    plugin = planned.plugin
    steering = plugin.dispatcher.steering
    preemptors = WaitingPreemptors(plugin.manager, plugin.dependencies, steering, lambda: "n9", lambda: True)
    gang = plugin.manager.groups["default/g"]
    monkeypatch.setattr(waiting_preemptors, "may_preempt", lambda manager, pod: True)
    preemptors.note_extra(next(iter(gang.members.values())).pod, "")
    with stopped_after(planned, lambda: not preemptors._noted, preemptors.tick):
        plugin.rounds.plan_waiting()
    assert heard.said["g0"] == ["woken by n9", "to n1"]


def test_every_writer_of_a_nomination_decides_in_the_line() -> None:
    """The dispatcher alone has the steering that writes; all others have the line that it is behind."""
    room = Path(extender.plugins.coscheduling.__file__).parent
    direct = re.compile(r"(dependencies|_with)\.steering\b")
    found = {str(file.relative_to(room)) for file in room.rglob("*.py") if direct.search(file.read_text())}
    assert found == {"dispatch/dispatcher.py"}


def test_what_many_threads_decide_is_carried_out_in_the_order_of_their_decisions() -> None:
    """Each waits between its decision and the carrying out for all the others to have decided, and some are the last to go on."""
    heard, lock = Heard(), threading.RLock()
    steering = OrderedSteering(heard, Quarantine(lock, lambda: 0.0))
    decided: list[str] = []
    together = threading.Barrier(8)
    one = pod("p")

    def decide(number: int) -> None:
        for turn in range(25):
            with lock:
                decided.append(f"to n{number}-{turn}")
                steering.nominate("g", [(one, f"n{number}-{turn}")])
            together.wait(5)
            steering.carry_out()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(decide, range(8)))
    assert heard.said["p"] == decided


def test_a_thread_that_decides_while_another_carries_out_does_not_wait_for_it(heard: Heard) -> None:
    """The call returns at once; the other thread carries out this as well."""
    lock = threading.RLock()
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Heard):
        def nominate(self, places: object) -> None:
            super().nominate(places)
            begun.set()
            assert go_on.wait(5)

    slow = Slow()
    steering = OrderedSteering(slow, Quarantine(lock, lambda: 0.0))
    with ThreadPoolExecutor(1) as threads:
        with lock:
            steering.nominate("g", [(pod("p"), "n1")])
        carried = threads.submit(steering.carry_out)
        assert begun.wait(5)
        with lock:
            steering.clear_nominations("g", [pod("p")])
        steering.carry_out()
        assert slow.said == {"p": ["to n1"]}
        go_on.set()
        carried.result(5)
    assert slow.said == {"p": ["to n1", "released"]}


@pytest.mark.faults
@pytest.mark.parametrize(
    ("key", "set_aside", "logged"),
    [
        pytest.param("default/g", ["default/g"], "unexpected error where=steering group=default/g", id="of a gang"),
        pytest.param("", [], "unexpected error where=steering", id="of a single pod"),
    ],
)
def test_where_a_decision_cannot_be_carried_out_its_gang_is_set_aside_and_the_next_is_carried_out(
    key: str, set_aside: list[str], logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Fails(Heard):
        def nominate(self, places: object) -> None:
            raise KeyError("a fault of ours")

    fails = Fails()
    quarantine = Quarantine(threading.RLock(), lambda: 0.0)
    steering = OrderedSteering(fails, quarantine)
    steering.nominate(key, [(pod("p"), "n1")])
    steering.clear_nominations("default/h", [pod("q")])
    steering.carry_out()
    assert (list(quarantine), fails.said) == (set_aside, {"q": ["released"]})
    assert [record.getMessage().rstrip() for record in caplog.records] == [logged]


def test_each_decision_is_the_steering_s_of_that_name() -> None:
    inner = Mock(spec_set=NoSteering)
    steering = OrderedSteering(inner, Quarantine(threading.RLock(), lambda: 0.0))
    pods = [pod("p")]
    steering.clear_foreign_nominations("g", pods)
    steering.activate_by_nomination("g", [(pods[0], "n2")])
    steering.activate("g", pods)
    steering.ungate("g", pods)
    steering.clear_nominations("g", pods)
    steering.nominate("g", [(pods[0], "n1")])
    assert inner.mock_calls == []
    steering.carry_out()
    expected = [
        call.clear_foreign_nominations(pods),
        call.activate_by_nomination([(pods[0], "n2")]),
        call.activate(pods),
        call.ungate(pods),
        call.clear_nominations(pods),
        call.nominate([(pods[0], "n1")]),
    ]
    assert inner.mock_calls == expected


def test_nothing_is_decided_of_no_pods(heard: Heard) -> None:
    steering = OrderedSteering(heard, Quarantine(threading.RLock(), lambda: 0.0))
    for decide in (steering.clear_nominations, steering.activate, steering.ungate, steering.clear_foreign_nominations):
        decide("g", [])
    steering.nominate("g", [])
    assert not steering._line
