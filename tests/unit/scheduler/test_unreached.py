"""kube-scheduler says on pods that it does not reach the extender, and no call comes."""

from __future__ import annotations

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.scheduler.unreached import Unreached

REFUSED = 'Post "http://127.0.0.1:8888/filter": dial tcp 127.0.0.1:8888: connect: connection refused'
SECONDS = 5.0


def told(
    name: str, text: str, *, reason: str = "SchedulerError", node: str = "", scheduler: str = "ours"
) -> corev1.Pod:
    condition = {"type": "PodScheduled", "status": "True" if node else "False", "reason": reason, "message": text}
    pod = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "c"}], "nodeName": node, "schedulerName": scheduler},
        "status": {"conditions": [condition]},
    }
    return convert(pod, corev1.Pod)


class World:
    def __init__(self) -> None:
        self.now, self.leads = 100.0, True
        self.unreached = Unreached(lambda: self.leads, lambda name: name == "ours", lambda: self.now)

    def sees(self, pod: corev1.Pod | None, old: corev1.Pod | None = None) -> None:
        self.unreached.on_pod(old, pod)

    def after(self, seconds: float) -> str:
        """The trouble, where a probe asks each second."""
        for _ in range(int(seconds)):
            self.now += 1
            self.unreached.trouble(SECONDS)
        return self.unreached.trouble(SECONDS)


@pytest.fixture
def world() -> World:
    return World()


def test_it_is_trouble_once_it_has_lasted(world: World) -> None:
    assert world.after(60) == "", "a cluster in which nothing is to be done"
    world.sees(told("a", REFUSED))
    assert world.after(SECONDS - 1) == ""
    assert world.after(1) == f"kube-scheduler has not reached the extender for 5s: {REFUSED}"


def test_one_call_that_comes_ends_it_and_it_is_counted_anew(world: World) -> None:
    world.sees(told("a", REFUSED))
    world.after(SECONDS)
    world.unreached.asked()
    assert world.after(60) == ""
    world.sees(told("a", REFUSED))
    assert world.after(SECONDS - 1) == ""
    assert world.after(1) != ""


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            told("a", "0/3 nodes are available", reason="Unschedulable"), id="no node fits: filter is not asked"
        ),
        pytest.param(told("a", "running Bind plugin: boom"), id="another error of kube-scheduler's"),
        pytest.param(told("a", REFUSED.replace("filter", "bind")), id="a bind call that was cut: it had come"),
        pytest.param(told("a", REFUSED, scheduler="other"), id="of another scheduler"),
        pytest.param(told("a", "", node="n1"), id="bound"),
    ],
)
def test_what_says_nothing_of_the_kind(pod: corev1.Pod, world: World) -> None:
    world.sees(pod)
    assert world.after(60) == ""


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(None, id="deleted"),
        pytest.param(told("a", "", node="n1"), id="bound"),
        pytest.param(
            told("a", "0/3 nodes are available", reason="Unschedulable"), id="refused by kube-scheduler itself"
        ),
    ],
)
def test_the_last_pod_that_said_so_is_gone(later: corev1.Pod | None, world: World) -> None:
    pod = told("a", REFUSED)
    world.sees(pod)
    world.sees(later, old=pod)
    assert world.after(60) == ""


def test_a_replica_that_stands_by_is_not_meant_and_counts_from_when_it_leads(world: World) -> None:
    world.leads = False
    world.sees(told("a", REFUSED))
    assert world.after(60) == ""
    world.leads = True
    assert world.after(SECONDS - 1) == ""
    assert world.after(1) != "", "its own kube-scheduler has tried by then"
