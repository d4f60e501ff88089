"""When filter fails for all pods, by the answers that it has given; and the probes of a whole scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from extender.api.extenderv1 import ExtenderArgs, ExtenderFilterResult
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.scheduler.filter_health import LIVENESS_SECONDS, QUIET_SECONDS, READINESS_SECONDS, FilterHealth
from extender.scheduler.health import Health
from extender.scheduler.interface import Check
from extender.scheduler.leadership import Leadership
from extender.scheduler.scheduler import Scheduler
from tests.unit.plugins.coscheduling.conftest import FakeClock
from tests.unit.scheduler.conftest import Bench, running

Answers = list[tuple[float, str, bool]]


def errors(seconds: float, *askers: str, step: float = 5.0, begin: float = 0.0) -> Answers:
    """One for each asker in turn, every few seconds."""
    names = askers or ("default/a", "default/b")
    times = [begin + step * number for number in range(int((seconds - begin) / step) + 1)]
    return [(at, names[number % len(names)], True) for number, at in enumerate(times)]


@pytest.mark.parametrize(
    ("answers", "now", "ready", "alive"),
    [
        pytest.param([], 1000, True, True, id="no call at all"),
        pytest.param(errors(25), 29, True, True, id="errors for less than 30 s"),
        pytest.param(errors(30), 30, False, True, id="errors for all for 30 s: not ready"),
        pytest.param(errors(85), 89, False, True, id="for less than 90 s: not ready, and alive"),
        pytest.param(errors(90), 90, False, False, id="for 90 s: a new process may mend it"),
        pytest.param([*errors(90), (90, "default/c", False)], 90, True, True, id="one answer that is none ends it"),
        pytest.param([*errors(25), (26, "default/c", False), *errors(55, begin=30)], 55, True, True, id="begun anew"),
        pytest.param(errors(90, "default/gang"), 90, True, True, id="one gang, or one pod, however often"),
        pytest.param(errors(30, step=30), 31, True, True, id="two calls are not enough"),
        pytest.param(errors(90), 90 + QUIET_SECONDS, False, False, id="the last error is fresh enough"),
        pytest.param(errors(90), 91 + QUIET_SECONDS, True, True, id="since when no call has come: nothing is known"),
        pytest.param([*errors(20), *errors(100, begin=90)], 100, True, True, id="old errors count no more"),
    ],
)
def test_errors_for_all_pods(answers: Answers, now: float, ready: bool, alive: bool) -> None:
    clock = FakeClock()
    health, start = FilterHealth(clock), clock.now
    for at, asker, error in answers:
        clock.now = start + at
        health.answered(asker, error=error)
    clock.now = start + now
    assert (not health.trouble(READINESS_SECONDS), not health.trouble(LIVENESS_SECONDS)) == (ready, alive)


class Sick:
    """A scheduler whose Coscheduling raises at every pod, while it is sick."""

    def __init__(self, bench: Bench, clock: FakeClock) -> None:
        self.bench, self.clock = bench, clock
        self.scheduler: Scheduler = bench.scheduler
        self.pods = [bench.pod(name) for name in "ab"]

    def each_pod_asks_for(self, seconds: float) -> list[ExtenderFilterResult]:
        answers = []
        for _ in range(int(seconds / 5)):
            self.clock.now += 5
            answers += [self.scheduler.filter(ExtenderArgs(pod=pod, node_names=("n1",))) for pod in self.pods]
        return answers


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sick(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sick]:
    def raises(*args: object) -> None:
        raise KeyError("a fault of ours")

    with running() as bench:
        bench.node("n1")
        monkeypatch.setattr(bench.scheduler._dependencies.filter_health, "_clock", clock)
        made = Sick(bench, clock)
        with monkeypatch.context() as patched:
            patched.setattr(Coscheduling, "pre_filter", raises)
            yield made


def check_of(checks: Sequence[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


@pytest.mark.faults
def test_a_scheduler_that_errs_for_all_pods_is_first_not_ready_and_then_not_alive(sick: Sick) -> None:
    assert all(answer.error for answer in sick.each_pod_asks_for(30))
    assert check_of(sick.scheduler.readiness(), "filter").ok
    sick.each_pod_asks_for(5)
    ready = check_of(sick.scheduler.readiness(), "filter")
    assert (ready.ok, ready.reason) == (
        False,
        "every filter call has been answered with an Error for 30s; see the log",
    )
    assert check_of(sick.scheduler.liveness(), "filter").ok
    useless = check_of(sick.scheduler.liveness(), "kube-scheduler")
    assert (useless.ok, useless.reason) == (False, ready.reason), "it should leave the Lease to another"
    sick.each_pod_asks_for(60)
    assert not check_of(sick.scheduler.liveness(), "filter").ok


@pytest.mark.faults
def test_errors_of_a_replica_that_does_not_lead_are_not_counted(sick: Sick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Health, "not_ready", lambda self: "not the leader: another kube-scheduler holds the Lease")
    assert all(answer.error for answer in sick.each_pod_asks_for(200))
    assert check_of(sick.scheduler.readiness(), "filter").ok


def test_a_kube_scheduler_that_asks_and_is_refused_should_not_lead(sick: Sick, monkeypatch: pytest.MonkeyPatch) -> None:
    """It alone holds the Lease, so no other replica can schedule: its own probe of /livez fails, one pod is enough for it."""
    del sick.pods[1:]
    monkeypatch.setattr(sick.scheduler._dependencies.refusals, "_clock", sick.clock)
    with monkeypatch.context() as patched:
        patched.setattr(Health, "not_ready", lambda self: "cache not synced")
        sick.each_pod_asks_for(10)
        assert check_of(sick.scheduler.liveness(), "kube-scheduler").ok, "three calls make it so"
        sick.each_pod_asks_for(5)
        failed = check_of(sick.scheduler.liveness(), "kube-scheduler")
        assert failed.reason == "every filter call has been refused for 10s: cache not synced"
        assert [check.name for check in sick.scheduler.liveness() if not check.ok] == ["kube-scheduler"]
    sick.clock.now += QUIET_SECONDS + 1
    assert check_of(sick.scheduler.liveness(), "kube-scheduler").ok, "it asks no more: it has gone"


@pytest.mark.faults
def test_a_kube_scheduler_that_is_answered_is_no_longer_refused(sick: Sick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sick.scheduler._dependencies.refusals, "_clock", sick.clock)
    with monkeypatch.context() as patched:
        patched.setattr(Health, "not_ready", lambda self: "cache not synced")
        sick.each_pod_asks_for(35)
    sick.each_pod_asks_for(5)
    assert check_of(sick.scheduler.liveness(), "kube-scheduler").ok


@pytest.mark.parametrize(
    ("seconds", "ok"),
    [
        pytest.param(0.0, True, id="they are seen"),
        pytest.param(1.0, False, id="they are missing"),
        pytest.param(59.0, False, id="for longer than its probe has patience"),
        pytest.param(61.0, True, id="in an outage for all it is restarted once"),
    ],
)
def test_renewals_that_are_not_seen_are_for_kube_scheduler_to_end(
    seconds: float, ok: bool, sick: Sick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leadership, "unheard_seconds", property(lambda self: seconds))
    failed = [check.name for check in sick.scheduler.liveness() if not check.ok]
    assert failed == ([] if ok else ["kube-scheduler"])
