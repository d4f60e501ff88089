"""The log has one line for each decision about a gang, and none for a call or a plan that decides the same once more."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

Make = Callable[..., World]


class Log:
    """What it says of gangs: the words before the first field, and the reason."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "extender")
        self._caplog = caplog

    def news(self) -> list[str]:
        found = []
        for record in self._caplog.records:
            words, _, rest = record.getMessage().partition(" group=default/g")
            reason = rest.partition("reason=")[2].partition(" ")[0]
            found += [f"{words} {reason}".strip()] if rest or words.startswith("gang ") else []
        self._caplog.clear()
        return found


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def seconds_pass(w: World, seconds: int) -> None:
    for _ in range(seconds):
        w.clock.now += 1.0
        w.plugin.tick()
        w.run_tasks()


def test_a_gang_gathers_is_planned_and_starts(world: Make, said: Log) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    first, second = pod("a", "g"), pod("b", "g")
    w.create(first)
    for _ in range(5):
        w.filter(first)
        seconds_pass(w, 1)
    assert said.news() == ["gang waits QuorumMissing"]
    w.create(second)
    w.filter(second)
    assert said.news() == ["gang planned"]
    for each in (first, second):
        w.filter(each)
        w.bind(each, "n1")
    assert said.news() == ["gang starts"]


def test_a_gang_that_finds_no_room_is_refused_once(world: Make, said: Log) -> None:
    """Though it is planned again with each event that may help it."""
    w = world([node("n1", cpu="1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    pods = [pod(name, "g") for name in ("a", "b")]
    w.create(*pods)
    plans = w.plans
    for number in range(4):
        for each in pods:
            w.filter(each)
        seconds_pass(w, 4)
        tainted = node(f"other-{number}", unschedulable=True)
        w.nodes[tainted.name] = tainted
        w.plugin.on_node(None, tainted)
        w.plugin.manager.queue.move_to_active(["default/g"])
    assert w.plans > plans + 1
    assert said.news() == ["gang refused InsufficientResources"]


def test_a_refusal_after_a_plan_is_news(world: Make, said: Log) -> None:
    w = world([node("n1", cpu="2")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    pods = [pod(name, "g") for name in ("a", "b")]
    w.create(*pods)
    w.filter(pods[0])
    assert said.news() == ["gang planned"]
    w.nodes["n1"] = node("n1", cpu="1")
    w.plugin.on_node(node("n1", cpu="2"), w.nodes["n1"])
    w.plugin.rounds.drop_plan("default/g")
    seconds_pass(w, 4)
    w.filter(pods[0])
    assert "gang refused InsufficientResources" in said.news()


def test_a_gang_whose_hold_ends_steps_back_in_one_line(world: Make, said: Log) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 3))
    pods = [pod(name, "g") for name in ("a", "b", "c")]
    w.create(*pods)
    for each in pods[:2]:
        w.filter(each)
        w.bind(each, "n1")
    said.news()
    for each in pods[:2]:
        w.plugin.gang_permit.unreserve(each, "rejected due to timeout after waiting 60s at plugin Coscheduling")
    assert said.news() == ["gang steps back HoldTimedOut"]


def test_a_standby_says_nothing_of_gangs(world: Make, said: Log) -> None:
    w = world([node("n1")])
    w.leading = False
    w.connect(may_plan=lambda: w.leading)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(pod("a", "g"))
    seconds_pass(w, 4)
    assert said.news() == []
