"""Verdicts on gangs reach their users once each, as an event and a condition."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sized
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ConnectionFailedError, ForbiddenError, TooManyRequestsError
from extender.client.events import Recorder
from extender.client.interface import POD_GROUPS
from extender.plugins.coscheduling.dependencies import REJECTED, SCHEDULED, WAITING, Verdict
from extender.scheduler.actions.verdicts import START_SECONDS, WAITING_SECONDS, GroupVerdicts
from tests.objects import make_pod

NO_ROOM = Verdict(False, REJECTED, "minMember of 3 does not fit: Insufficient cpu")
TOO_FEW = Verdict(False, WAITING, "fewer pods exist than minMember of 3")
STARTS = Verdict(True, SCHEDULED, "minMember of 3 is complete: the gang starts")


class Told:
    def __init__(self, api: EmbeddedAPI, *, leading: bool = True) -> None:
        self.api = api
        self.recorder = Recorder(api)
        self.recorder.start()
        self.now = 100.0
        self.leading = leading
        self.verdicts = GroupVerdicts(api, self.recorder, lambda: self.leading, lambda: self.now)
        self.group = api.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 3}})

    def say(self, *verdicts: Verdict) -> None:
        for verdict in verdicts:
            self.verdicts.decided(self.group, "default/g", verdict)
        self.verdicts.flush()
        assert self.recorder.flush(5)

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.verdicts.tick()
        self.verdicts.flush()

    def conditions(self) -> list[tuple[str, str, str]]:
        group = self.api.get(POD_GROUPS, "g", "default")
        return [(c.type, c.status, c.reason) for c in group.status.conditions]

    def stop(self) -> None:
        self.verdicts.stop()
        self.recorder.stop()


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told(EmbeddedAPI())
    yield made
    made.stop()


def test_a_verdict_is_an_event_and_a_condition_and_is_told_once(told: Told) -> None:
    told.say(NO_ROOM, NO_ROOM, NO_ROOM)
    assert told.conditions() == [("Scheduled", "False", "GangRejected")]
    (event,) = told.api.events()
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "GangRejected", NO_ROOM.message)
    assert event["regarding"]["kind"] == "PodGroup"


def test_another_verdict_takes_its_place(told: Told) -> None:
    told.say(NO_ROOM, STARTS)
    assert told.conditions() == [("Scheduled", "True", "GangScheduled")]
    assert [event["reason"] for event in told.api.events()] == ["GangRejected", "GangScheduled"]


def test_a_crd_without_conditions_leaves_the_events(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def pruned(*args: Any, **kwargs: Any) -> Any:
        return told.group

    monkeypatch.setattr(told.api, "patch", pruned)
    told.say(NO_ROOM, STARTS)
    assert not told.verdicts.writer.conditions_kept
    assert len(told.api.events()) == 2


def test_a_verdict_that_waits_when_another_leads_is_not_written(told: Told) -> None:
    wait, began = threading.Event(), threading.Event()

    def blocks() -> None:
        began.set()
        wait.wait(5)

    told.verdicts.writer.pool.submit(blocks, "default")
    assert began.wait(5)
    told.verdicts.decided(told.group, "default/g", NO_ROOM)
    told.leading = False
    wait.set()
    told.verdicts.flush()
    assert told.conditions() == []


def test_a_replica_that_does_not_lead_says_nothing() -> None:
    told = Told(EmbeddedAPI(), leading=False)
    told.say(NO_ROOM)
    told.stop()
    assert told.api.events() == []
    assert told.conditions() == []


def test_what_was_told_before_a_restart_is_not_told_again(told: Told) -> None:
    told.say(NO_ROOM)
    told.group = told.api.get(POD_GROUPS, "g", "default")
    again = GroupVerdicts(told.api, told.recorder, lambda: True)
    again.decided(told.group, "default/g", NO_ROOM)
    again.flush()
    assert told.recorder.flush(5)
    assert told.api.get(POD_GROUPS, "g", "default") == told.group
    assert len(told.api.events()) == 1
    again.decided(told.group, "default/g", STARTS)
    again.flush()
    again.stop()
    assert told.conditions() == [("Scheduled", "True", "GangScheduled")]


def test_to_a_gang_without_an_object_each_verdict_is_told_once_until_another_comes_or_it_starts(told: Told) -> None:
    """A start is not told; the refusal that came after it was the last that had been told."""
    member = make_pod().name("a").uid("a").obj()
    for verdict, to in (
        (NO_ROOM, member),
        (NO_ROOM, member),
        (STARTS, None),
        (STARTS, None),
        (NO_ROOM, member),
        (TOO_FEW, member),
        (NO_ROOM, None),
        (NO_ROOM, member),
    ):
        told.verdicts.decided(None, "default/labels", verdict, to)
    assert told.recorder.flush(5)
    notes = [(event["note"], event.get("series", {}).get("count", 1)) for event in told.api.events()]
    assert notes == [(NO_ROOM.message, 3), (TOO_FEW.message, 1)]


def test_a_gang_without_an_object_that_is_gone_is_forgotten_with_what_it_was_told(told: Told) -> None:
    member = make_pod().name("a").uid("a").obj()
    for _ in range(2):
        told.verdicts.decided(None, "default/labels", NO_ROOM, member)
        told.verdicts.forget("default/labels")
    assert told.recorder.flush(5)
    assert [event["series"]["count"] for event in told.api.events()] == [2]


class Failing:
    """The API server, as often as it is told to, at patches."""

    def __init__(self, told: Told, monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> None:
        self.errors = list(errors)
        patch = told.api.patch

        def failing(*args: Any, **kwargs: Any) -> Any:
            if self.errors:
                raise self.errors.pop(0)
            return patch(*args, **kwargs)

        monkeypatch.setattr(told.api, "patch", failing)


@pytest.mark.faults
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ConnectionFailedError("refused"), id="no answer"),
        pytest.param(TooManyRequestsError("later"), id="too many requests"),
        pytest.param(KeyError("a fault of ours"), id="a fault of ours"),
    ],
)
def test_a_condition_that_could_not_be_written_is_written_later(
    told: Told, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A gang that runs is not decided of again: it said for ever that it did not."""
    told.say(NO_ROOM)
    Failing(told, monkeypatch, error, error)
    told.say(STARTS)
    for seconds in (0.5, 0.5, 1.0):
        assert told.conditions() == [("Scheduled", "False", "GangRejected")]
        told.passes(seconds)
    told.passes(1.0)
    assert told.conditions() == [("Scheduled", "True", "GangScheduled")]
    assert [event["reason"] for event in told.api.events()] == ["GangRejected", "GangScheduled"]


def test_what_the_server_refuses_is_given_up(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(told, monkeypatch, ForbiddenError("no"))
    told.say(NO_ROOM)
    told.passes(60.0)
    assert (failing.errors, told.conditions()) == ([], [])


def test_something_newer_is_not_undone_by_what_is_written_later(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    Failing(told, monkeypatch, ConnectionFailedError("refused"))
    told.say(NO_ROOM)
    told.say(STARTS)
    told.passes(60.0)
    assert told.conditions() == [("Scheduled", "True", "GangScheduled")]


def test_a_replica_that_leads_again_says_it_again_where_another_has_said_something_else(told: Told) -> None:
    """It was what it had said last itself."""
    told.say(NO_ROOM)
    told.leading = False
    told.passes(1.0)
    other = GroupVerdicts(told.api, told.recorder, lambda: True)
    other.decided(told.group, "default/g", STARTS)
    other.flush()
    other.stop()
    told.leading = True
    told.group = told.api.get(POD_GROUPS, "g", "default")
    told.say(NO_ROOM)
    assert told.conditions() == [("Scheduled", "False", "GangRejected")]


class _Gated(EmbeddedAPI):
    """Notes whose conditions are written, and writes none before `open`."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.written = threading.Event(), list[str]()

    def patch(self, resource: Any, name: str, body: Any, *args: Any, **options: Any) -> Any:
        assert self.open.wait(5)
        self.written.append(options["namespace"])
        return super().patch(resource, name, body, *args, **options)


def test_the_conditions_of_a_tenant_with_many_gangs_keep_another_s_waiting_for_one_turn() -> None:
    api = _Gated()
    told = Told(api)
    try:
        made = {
            space: [
                api.create(POD_GROUPS, {"metadata": {"name": f"g{i}", "namespace": space}, "spec": {"minMember": 3}})
                for i in range(count)
            ]
            for space, count in (("loud", 300), ("quiet", 3))
        }
        for group in (*made["loud"], *made["quiet"]):
            told.verdicts.decided(group, group.key, NO_ROOM)
        api.open.set()
        told.verdicts.flush()
        assert (len(api.written), api.written[:8].count("quiet")) == (303, 3)
    finally:
        api.open.set()
        told.stop()


DISRUPTED = Verdict(False, "GangPreempted", "preempted by default/big", disrupted=True)


def decide(told: Told, *verdicts: Verdict) -> None:
    """Without waiting for what is written later."""
    for verdict in verdicts:
        told.verdicts.decided(told.group, "default/g", verdict)
    told.verdicts._pool.flush()


@pytest.mark.parametrize(
    ("verdict", "seconds"),
    [
        pytest.param(NO_ROOM, 0.0, id="a refusal at once"),
        pytest.param(STARTS, START_SECONDS, id="a start with what is bound by then"),
        pytest.param(TOO_FEW, WAITING_SECONDS, id="that members are waited for once most gangs would be complete"),
        pytest.param(DISRUPTED, 0.0, id="that it is preempted at once"),
    ],
)
def test_when_a_verdict_is_written(told: Told, verdict: Verdict, seconds: float) -> None:
    decide(told, verdict)
    if seconds:
        assert told.conditions() == []
        told.now += seconds - 0.1
        told.verdicts.tick()
        told.verdicts._pool.flush()
        assert told.conditions() == []
        told.now += 0.1
        told.verdicts.tick()
        told.verdicts._pool.flush()
    assert len(told.conditions()) == 1
    assert told.verdicts.writer.awaited == set()


@pytest.mark.parametrize(
    ("verdicts", "conditions"),
    [
        pytest.param((TOO_FEW, NO_ROOM), [("Scheduled", "False", "GangRejected")], id="a refusal is written alone"),
        pytest.param(
            (STARTS, DISRUPTED),
            [("Scheduled", "True", "GangScheduled"), ("DisruptionTarget", "True", "PreemptionByScheduler")],
            id="a start comes before that it is preempted",
        ),
    ],
)
def test_something_newer_is_not_kept_waiting(
    told: Told, verdicts: tuple[Verdict, ...], conditions: list[tuple[str, str, str]]
) -> None:
    decide(told, *verdicts)
    assert told.conditions() == conditions
    assert told.verdicts.writer.awaited == set()


def test_a_gang_that_starts_is_not_written_as_one_that_waited(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    patch = told.api.patch

    def counted(*args: Any, **kwargs: Any) -> Any:
        written.append(args[2])
        return patch(*args, **kwargs)

    monkeypatch.setattr(told.api, "patch", counted)
    decide(told, TOO_FEW)
    told.now += WAITING_SECONDS - 1
    decide(told, STARTS)
    told.passes(START_SECONDS)
    assert told.conditions() == [("Scheduled", "True", "GangScheduled")]
    assert len(written) == 1


def test_what_is_to_be_written_is_left_to_the_next_leader(told: Told) -> None:
    decide(told, STARTS)
    told.leading = False
    told.verdicts.tick()
    told.leading = True
    told.now += 60
    told.verdicts.tick()
    told.verdicts._pool.flush()
    assert told.conditions() == []
    assert told.verdicts.writer.awaited == set()


def kept(told: Told) -> int:
    """What is remembered of PodGroups."""
    verdicts, writer = told.verdicts, told.verdicts.writer
    collections: tuple[Sized, ...] = (
        verdicts._last,
        verdicts._started,
        verdicts._unwritten,
        writer._newest,
        writer._written,
        writer.awaited,
    )
    return sum(map(len, collections))


def test_of_a_pod_group_that_has_gone_nothing_is_kept_and_nothing_more_is_written(told: Told) -> None:
    told.say(STARTS, replace(NO_ROOM, disrupted=True))
    decide(told, TOO_FEW)
    assert kept(told) > 4
    told.verdicts.on_pod_group(told.group, None)
    assert kept(told) == 0
    before = told.conditions()
    told.passes(WAITING_SECONDS)
    assert told.conditions() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(False, True, id="it is seen first"),
        pytest.param(True, True, id="it changes"),
    ],
)
def test_of_one_that_is_there_what_was_said_is_kept(told: Told, *, old: bool, new: bool) -> None:
    told.say(STARTS)
    before = kept(told)
    told.verdicts.on_pod_group(told.group if old else None, told.group if new else None)
    assert kept(told) == before > 0


def test_one_made_anew_under_its_name_is_another(told: Told) -> None:
    told.say(STARTS)
    meta = structs.replace(told.group.metadata, uid="another")
    told.verdicts.on_pod_group(told.group, structs.replace(told.group, metadata=meta))
    assert kept(told) == 0
