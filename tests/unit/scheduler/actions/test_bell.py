"""The one event that wakes all pods that we have refused: how it is made, and what is done where it may not be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError
from extender.client.interface import CSI_STORAGE_CAPACITIES, PODS
from extender.scheduler.actions.bell import ANNOTATION, NAME, Bell


class Forbidding(EmbeddedAPI):
    def patch(self, resource: Any, name: str, body: Any, **options: Any) -> Any:
        raise ForbiddenError("no such right")


class Belfry:
    def __init__(self, api: EmbeddedAPI, *, leading: bool = True) -> None:
        self.api = api
        self.woken: list[str] = []
        self.bell = Bell(api, "gangs", lambda: leading, self._now, self._one_by_one)

    def _now(self, work: Callable[[], None]) -> None:
        work()

    def _one_by_one(self, pods: Sequence[corev1.Pod]) -> None:
        self.woken += [pod.name for pod in pods]

    def ring(self) -> None:
        self.bell.activate_all(
            [self.api.create(PODS, {"metadata": {"generateName": "p-"}, "spec": {"containers": []}})]
        )

    def rung(self) -> str:
        (found,) = self.api.list_page(CSI_STORAGE_CAPACITIES).items
        assert (found.metadata.namespace, found.metadata.name) == ("gangs", NAME)
        return found.metadata.annotations[ANNOTATION]


def test_the_bell_is_hung_when_it_is_needed_first_and_each_ring_is_another_event() -> None:
    belfry = Belfry(EmbeddedAPI())
    belfry.ring()
    first = belfry.rung()
    belfry.ring()
    assert belfry.rung() != first
    assert not belfry.woken


def test_where_it_may_not_be_rung_the_pods_are_woken_one_by_one() -> None:
    belfry = Belfry(Forbidding())
    belfry.ring()
    assert len(belfry.woken) == 1


def test_a_replica_that_does_not_lead_is_silent() -> None:
    belfry = Belfry(EmbeddedAPI(), leading=False)
    belfry.ring()
    assert not belfry.api.list_page(CSI_STORAGE_CAPACITIES).items
