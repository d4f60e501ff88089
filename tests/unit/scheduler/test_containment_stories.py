"""One gang at which everything raises, beside others, in a whole scheduler: from its events to its condition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import structs
from prometheus_client import generate_latest

from extender.api import corev1
from extender.client.interface import POD_GROUPS
from extender.metrics import REGISTRY
from extender.plugins.coscheduling import messages, quarantine
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.specs import Specs
from extender.retry import Retry
from tests.unit.scheduler.conftest import GROUP_LABEL, Bench, running

pytestmark = pytest.mark.faults

KINDS = (ValueError, OverflowError, RecursionError, KeyError, AssertionError)


class Fault:
    """What the bad gang asks for cannot be said: `spec`, and with it nearly everything, raises."""

    def __init__(self, kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
        self.armed = True
        spec = Specs.of

        def faulty(specs: Specs, group: Group) -> object:
            if self.armed and group.key == "default/bad":
                raise kind("a fault of ours")
            return spec(specs, group)

        monkeypatch.setattr(Specs, "of", faulty)
        monkeypatch.setattr(quarantine, "BACK_OFF", Retry(0.2, 0.2))


@pytest.fixture(params=KINDS)
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fault:
    return Fault(request.param, monkeypatch)


@pytest.fixture
def bench(fault: Fault) -> Iterator[Bench]:
    with running() as made:
        made.node("n1", "8")
        yield made
        fault.armed = False
        manager = made.scheduler._dependencies.coscheduling.manager
        made.until(lambda: "default/bad" not in manager.quarantine, "its back-off is over")
        made.scheduler._dependencies.informers.catch_up()


def reason_of(bench: Bench, name: str) -> str:
    conditions = bench.api.get(POD_GROUPS, name, "default").status.conditions
    return next((each.reason for each in conditions if each.type == "Scheduled"), "")


def start(bench: Bench, *pods: corev1.Pod) -> list[str]:
    for pod in pods:
        assert bench.filter(pod, "n1").node_names, pod.name
    return [answer.result(5) for answer in [bench.bind(pod, "n1") for pod in pods]]


def test_others_start_and_the_bad_one_says_why_it_does_not(bench: Bench, fault: Fault) -> None:
    bench.pod_group("bad", 2)
    bench.pod_group("good", 2)
    bad = as_member(bench.pod("bad0"))
    manager = bench.scheduler._dependencies.coscheduling.manager
    bench.until(lambda: reason_of(bench, "bad") == "InternalError", "the condition says so")
    bench.until(lambda: "GangQuarantined" in {each["reason"] for each in bench.api.events()}, "so does an event")
    assert start(bench, bench.pod("good0", "good"), bench.pod("good1", "good")) == ["", ""]
    assert start(bench, bench.pod("single")) == [""]
    bench.until(lambda: "default/bad" in manager.quarantine, "it is set aside again")
    answer = bench.filter(bad, "n1")
    assert (answer.error, set(answer.failed_and_unresolvable_nodes.values())) == ("", {messages.INTERNAL_ERROR})
    bench.until(lambda: b"\ngang_extender_quarantined_gangs 1.0\n" in generate_latest(REGISTRY), "the gauge counts it")


def as_member(pod: corev1.Pod) -> corev1.Pod:
    """As kube-scheduler sends it, while our watch has not shown the label."""
    labels = {GROUP_LABEL: "bad"}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


def test_it_starts_by_itself_when_the_fault_has_gone(bench: Bench, fault: Fault) -> None:
    bench.pod_group("bad", 2)
    bench.until(lambda: reason_of(bench, "bad") == "InternalError", "the condition says so")
    fault.armed = False
    pods = [bench.pod(f"bad{number}", "bad") for number in range(2)]
    manager = bench.scheduler._dependencies.coscheduling.manager
    bench.until(lambda: "default/bad" not in manager.quarantine, "its back-off is over")
    assert start(bench, *pods) == ["", ""]
    bench.until(lambda: reason_of(bench, "bad") == "GangScheduled", "and says that it runs")
