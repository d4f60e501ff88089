"""Evictions of whole sets of victims: the caller that waits for one learns how it ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError, ForbiddenError, TooManyRequestsError
from extender.client.events import Recorder
from extender.client.interface import PODS, pod_reference
from extender.plugins.coscheduling.dependencies import Eviction
from extender.retry import Retry
from extender.scheduler.actions import evictor as module
from extender.scheduler.actions.evictor import ApiEvictor
from tests.objects import make_pdb, make_pod


@pytest.fixture(autouse=True)
def _one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """But in the stories of several: the order of calls is told then."""
    monkeypatch.setattr(module, "AT_A_TIME", 1)


@pytest.mark.faults
def test_whatever_happens_the_gang_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep its places, and room for no pod, until the victims were overdue."""
    api = EmbeddedAPI()
    told: list[str] = []
    evictor = ApiEvictor(api, Recorder(api), lambda: True, lambda: 0.0, run=lambda job: job())

    def fails(*args: object, **options: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(api, "delete", fails)
    victim = make_pod().name("victim").node("n1").obj()
    evictor.evict(Eviction([victim], "PodGroup default/g", pod_reference(victim), "gang-scheduler"), told.append)
    assert told == ["KeyError: 'a fault of ours'"]


def test_no_victim_goes_for_a_preemptor_that_needs_the_room_no_longer() -> None:
    """Others were told before it, one after the other, and it has found room meanwhile."""
    api = EmbeddedAPI()
    told: list[str] = []
    victims = _victims(api)
    reference = pod_reference(victims[0])
    _evictor(api).evict(
        Eviction(victims, "PodGroup default/g", reference, "gang-scheduler", wanted=lambda: False), told.append
    )
    assert told == ["PodGroup default/g needs the room no longer"]
    assert all(not pod.deleting and not pod.status.conditions for pod in api.list_page(PODS).items)


@pytest.mark.faults
@pytest.mark.parametrize("error", [ApiError("no leader", code=503), KeyError("a fault of ours")])
def test_a_victim_that_cannot_be_told_with_the_others_is_told_a_little_later(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others had gone for nothing: the gang waited for him until it gave up."""
    monkeypatch.setattr(module, "RETRY", Retry(0.001, 0.001, steps=1))
    monkeypatch.setattr(module, "AGAIN", Retry(0.001, 0.001, steps=2))
    api, errors = EmbeddedAPI(), [error] * 2
    told: list[str] = []
    evictor = ApiEvictor(api, Recorder(api), lambda: True, lambda: 0.0, run=lambda job: job())
    containers = {"containers": [{"name": "c"}], "nodeName": "n1"}
    victims = [api.create(PODS, {"metadata": {"name": name}, "spec": containers}) for name in ("a", "b", "c")]
    delete = api.delete

    def failing(resource: Any, name: str, *args: Any, dry_run: bool, **options: Any) -> None:
        if name == "b" and errors and not dry_run:
            raise errors.pop()
        delete(resource, name, *args, dry_run=dry_run, **options)

    monkeypatch.setattr(api, "delete", failing)
    evictor.evict(Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "gang-scheduler"), told.append)
    assert told == [""]
    assert [pod for pod in api.list_page(PODS).items if not pod.deleting] == []


def _evictor(api: EmbeddedAPI, **options: Any) -> ApiEvictor:
    return ApiEvictor(api, Recorder(api), lambda: True, lambda: 0.0, run=lambda job: job(), **options)


def _victims(api: EmbeddedAPI) -> list[corev1.Pod]:
    spec = {"containers": [{"name": "c"}], "nodeName": "n1"}
    return [api.create(PODS, {"metadata": {"name": name}, "spec": spec}) for name in ("a", "b")]


def test_all_are_marked_before_the_first_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    api, calls = EmbeddedAPI(), []
    victims, delete, patch = _victims(api), api.delete, api.patch

    def deleting(resource: Any, name: str, *args: Any, dry_run: bool, **options: Any) -> None:
        calls.append(f"delete {name}{' dry' if dry_run else ''}")
        delete(resource, name, *args, dry_run=dry_run, **options)

    def patching(resource: Any, name: str, *args: Any, **options: Any) -> Any:
        calls.append(f"mark {name}")
        return patch(resource, name, *args, **options)

    monkeypatch.setattr(api, "delete", deleting)
    monkeypatch.setattr(api, "patch", patching)
    told: list[str] = []
    _evictor(api).evict(Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "x"), told.append)
    assert told == [""]
    assert calls == ["delete a dry", "delete b dry", "mark a", "mark b", "delete a", "delete b"]


@pytest.mark.parametrize("error", [TooManyRequestsError("too much"), ApiError("too much", code=503)])
def test_stopping_it_in_the_middle_tells_all_and_waits_for_no_pause(
    error: ApiError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY", Retry(3600.0, 3600.0, steps=2))
    api = EmbeddedAPI()
    told: list[str] = []
    victims, delete, evictor = _victims(api), api.delete, _evictor(api)
    errors = [error] * 2

    def failing(resource: Any, name: str, *args: Any, dry_run: bool, **options: Any) -> None:
        if not dry_run:
            evictor.stop()
            if errors:
                raise errors.pop()
        delete(resource, name, *args, dry_run=dry_run, **options)

    monkeypatch.setattr(api, "delete", failing)
    evictor.evict(Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "x"), told.append)
    assert told == [""]
    assert [pod for pod in api.list_page(PODS).items if not pod.deleting] == []


class _Budgeted(EmbeddedAPI):
    """A budget that is used up protects every pod. forbidden: the verbs that we may not use."""

    def __init__(self, *forbidden: str) -> None:
        super().__init__()
        self._forbidden = forbidden

    def may(self, verb: str, resource: Any, subresource: str = "", **of: str) -> bool:
        return verb not in self._forbidden

    def evict(self, pod: corev1.Pod, *, dry_run: bool = False) -> None:
        raise TooManyRequestsError("Cannot evict pod as it would violate the pod's disruption budget.")


@pytest.mark.parametrize(
    ("despite_budgets", "forbidden", "goes"),
    [
        pytest.param(False, (), False, id="a gang's victims: the budget forbids it"),
        pytest.param(True, (), True, id="the rest of a gang that kube-scheduler evicts"),
        pytest.param(True, ("delete",), False, id="where we may not delete, the budget counts"),
    ],
)
def test_through_the_eviction_api_budgets_forbid_what_kube_scheduler_would_not_do(
    despite_budgets: bool, forbidden: tuple[str, ...], goes: bool
) -> None:
    api = _Budgeted(*forbidden)
    evictor = ApiEvictor(api, Recorder(api), lambda: True, lambda: 0.0, by_eviction_api=True, run=lambda job: job())
    evictor.ask()
    assert evictor.allowed()
    victims, told = _victims(api), list[str]()
    by = pod_reference(victims[0])
    evictor.evict(Eviction(victims, "pod vip", by, "x", despite_budgets=despite_budgets), told.append)
    assert ("disruption budget" not in told[0]) == goes
    assert all(pod.deleting for pod in api.list_page(PODS).items) == goes


class _CountedDown(EmbeddedAPI):
    """As the API server: a dry run counts each pod by itself, an eviction uses the budget up."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self._left = left

    def evict(self, pod: corev1.Pod, *, dry_run: bool = False) -> None:
        ready = bool(pod.status.conditions)
        if ready and self._left <= 0:
            raise TooManyRequestsError("Cannot evict pod as it would violate the pod's disruption budget.")
        self._left -= ready and not dry_run
        self.delete(PODS, pod.name, pod.namespace, dry_run=dry_run)


@pytest.mark.parametrize(
    ("allowed", "ready", "goes"),
    [
        pytest.param(1, "ab", False, id="it allows one of two"),
        pytest.param(2, "ab", True, id="it allows both"),
        pytest.param(1, "a", True, id="one that is not ready uses none up"),
    ],
)
def test_through_the_eviction_api_a_budget_that_is_not_enough_for_all_lets_none_go(
    allowed: int, ready: str, goes: bool
) -> None:
    """The dry run of each passes; the first went, and the others stayed as a fraction."""
    api, told = _CountedDown(allowed), list[str]()
    budget = make_pdb().name("budget").match({"app": "g"}).disruptions_allowed(allowed).obj()
    evictor = _evictor(api, by_eviction_api=True, pdbs=lambda: [budget])
    victims = []
    for name in "ab":
        conditions = [{"type": "Ready", "status": "True"}] if name in ready else []
        body = make_pod().name(name).label("app", "g").node("n1").json() | {"status": {"conditions": conditions}}
        victims.append(api.create(PODS, body))
    evictor.evict(Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "x"), told.append)
    assert [pod.name for pod in api.list_page(PODS).items if not pod.deleting] == ([] if goes else ["a", "b"])
    assert told == [
        ""
        if goes
        else 'pod "default/b" may not be evicted with the others: a disruption budget does not allow all of them'
    ]


@pytest.mark.parametrize(
    "budgeted", [pytest.param(True, id="a budget forbids it"), pytest.param(False, id="none does")]
)
def test_what_goes_within_budgets_goes_through_the_eviction_api_however_else_we_evict(
    budgeted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = _Budgeted() if budgeted else EmbeddedAPI()
    noted: list[tuple[str, ...]] = []
    recorder = Recorder(api)
    monkeypatch.setattr(recorder, "event", lambda about, *texts: noted.append(texts[:4]))
    evictor = ApiEvictor(api, recorder, lambda: True, lambda: 0.0, run=lambda job: job())
    victims, told = _victims(api), list[str]()
    by = pod_reference(victims[0])
    evictor.evict(Eviction(victims, "a gang", by, "x", within_budgets=True, event="Gone", note="whole"), told.append)
    assert ("disruption budget" in told[0]) == budgeted
    assert any(not pod.deleting for pod in api.list_page(PODS).items) == budgeted
    assert noted == ([] if budgeted else [("Normal", "Gone", "Preempting", "whole")] * 2)


class AtWork:
    """How many calls there are at a time; each waits until `together` are, or for a moment."""

    def __init__(self, together: int) -> None:
        self.most = self._now = 0
        self._together = together
        self._changed = threading.Condition()

    def __call__(self, call: Callable[..., None], *args: Any, **options: Any) -> None:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._together, timeout=0.05)
        try:
            call(*args, **options)
        finally:
            with self._changed:
                self._now -= 1


@pytest.mark.parametrize(
    ("through_api", "budget", "most"),
    [
        pytest.param(False, "web", 4, id="deleted: no budget is asked"),
        pytest.param(True, "", 4, id="through the Eviction API, and there is no budget"),
        pytest.param(True, "other", 4, id="through the Eviction API, and the budget is of other pods"),
        pytest.param(True, "web", 1, id="through the Eviction API: evictions of one budget keep each other waiting"),
    ],
)
def test_victims_go_several_at_a_time_where_no_budget_is_asked(
    through_api: bool, budget: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_A_TIME", 4)
    api, told = EmbeddedAPI(), list[str]()
    spec = {"containers": [{"name": "c"}], "nodeName": "n1"}
    labels = {"app": "web"}
    victims = [
        api.create(PODS, {"metadata": {"name": f"v{number}", "labels": labels}, "spec": spec}) for number in range(6)
    ]
    call = "evict" if through_api else "delete"
    at_work = AtWork(4)
    monkeypatch.setattr(api, call, partial(at_work, getattr(api, call)))
    pdb = make_pdb().name("budget").match({"app": budget}).disruptions_allowed(6).obj()
    evictor = _evictor(api, by_eviction_api=through_api, pdbs=lambda: [pdb] if budget else [])
    try:
        evictor.evict(Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "x"), told.append)
    finally:
        evictor.stop()
    assert told == [""]
    assert at_work.most == most
    assert [pod for pod in api.list_page(PODS).items if not pod.deleting] == []


@pytest.mark.parametrize("refused", ["v0", "v1", "v2", "v3"])
def test_the_victim_that_may_not_go_is_named_whether_a_budget_counts_it_or_not(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with even numbers are counted, and asked about after the others."""
    api, told = EmbeddedAPI(), list[str]()
    labels = [{"app": "web" if number % 2 == 0 else "other"} for number in range(4)]
    victims = [
        api.create(PODS, {"metadata": {"name": f"v{number}", "labels": each}, "spec": {"containers": [{"name": "c"}]}})
        for number, each in enumerate(labels)
    ]

    def evict(pod: corev1.Pod, *, dry_run: bool = False) -> None:
        if pod.name == refused:
            raise ForbiddenError("not this one")

    monkeypatch.setattr(api, "evict", evict)
    pdb = make_pdb().name("budget").match({"app": "web"}).disruptions_allowed(4).obj()
    evictor = _evictor(api, by_eviction_api=True, pdbs=lambda: [pdb])
    try:
        evictor.evict(Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "x"), told.append)
    finally:
        evictor.stop()
    assert told == [f'pod "default/{refused}" cannot be deleted: not this one']


@pytest.mark.faults
def test_where_no_other_thread_can_be_had_one_tells_all_victims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_A_TIME", 4)
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    api, told = EmbeddedAPI(), list[str]()
    victims = _victims(api)
    _evictor(api).evict(Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "x"), told.append)
    assert told == [""]
    assert [pod for pod in api.list_page(PODS).items if not pod.deleting] == []
