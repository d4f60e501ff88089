"""The kubelet's note of how the extender's container ended before, and what kube-scheduler's probe is told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api.codec import convert
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError, ConnectionFailedError, ForbiddenError, NotFoundError
from extender.client.interface import ResourceType
from extender.config.types import NamespacedName
from extender.scheduler.early_end import OWN_PODS, SOON_SECONDS, UNKNOWN_SECONDS, EarlyEnd, OwnPod

LEASE = NamespacedName("kube-system", "gang-scheduler")
KILLED = "the extender before this one ended 3s after its start: OOMKilled, exit code 137"
UNKNOWN = "how the extender ended before is not known yet"


def pod(lived: int = 3, *, container: str = "extender", **terminated: Any) -> dict[str, Any]:
    """As a kubelet writes it, of a container that has lived for so many seconds; terminated: in place of what is there."""
    times = {"startedAt": "2026-11-23T10:00:00Z", "finishedAt": f"2026-11-23T10:{lived // 60:02}:{lived % 60:02}Z"}
    last = {"terminated": {**times, "reason": "OOMKilled", "exitCode": 137, **terminated}}
    statuses = [{"name": "kube-scheduler"}, {"name": container, "lastState": last}]
    return {"metadata": {"name": "us", "namespace": "kube-system"}, "status": {"containerStatuses": statuses}}


class World(EmbeddedAPI):
    """Its API server knows one pod, or does not answer."""

    def __init__(self, found: dict[str, Any] | ApiError, lease: NamespacedName | None = LEASE) -> None:
        super().__init__()
        self.found, self.now, self.asked = found, 100.0, 0
        self.end = EarlyEnd(self, lease, "us", self.run, lambda: self.now)

    def run(self, work: Callable[[], None]) -> None:
        work()

    def get(self, resource: ResourceType[Any], name: str, namespace: str = "") -> Any:
        self.asked += 1
        assert (resource, name, namespace) == (OWN_PODS, "us", "kube-system")
        if isinstance(self.found, ApiError):
            raise self.found
        return convert(self.found, OwnPod)

    def after(self, seconds: float) -> str:
        self.now += seconds
        self.end.tick()
        return self.end.trouble()


def test_one_that_is_started_in_place_of_one_that_did_not_last_says_so_for_a_minute() -> None:
    world = World(pod())
    assert world.end.trouble() == UNKNOWN
    assert world.after(1) == KILLED
    assert world.after(SOON_SECONDS - 2) == KILLED
    assert world.after(1) == ""
    assert world.asked == 1


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pod(lived=60, reason="Error", exitCode=1), id="one that was there for a minute"),
        pytest.param(pod(container="kube-scheduler"), id="another container"),
        pytest.param(pod(startedAt=None, exitCode=0), id="a status that does not say when"),
        pytest.param(pod(finishedAt="2026-11-23T09:00:00Z", exitCode=2), id="a clock that was set back"),
        pytest.param({"metadata": {"name": "us"}}, id="the first in its pod"),
        pytest.param(NotFoundError("gone"), id="no pod of our name"),
        pytest.param(ForbiddenError("no"), id="no right to read it"),
    ],
)
def test_nothing_is_wrong(found: dict[str, Any] | ApiError) -> None:
    world = World(found)
    assert world.after(1) == ""
    world.after(1)
    assert world.asked == 1


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(pod(lived=600), id="after minutes"),
        pytest.param(pod(startedAt=None), id="of which it is not said when"),
        pytest.param(pod(finishedAt="2026-11-23T09:00:00Z"), id="by a clock that was set back"),
    ],
)
def test_one_that_was_killed_costs_kube_scheduler_the_lease_and_no_extender_its_own(found: dict[str, Any]) -> None:
    """It hung, or had no memory: the next call may cost as much. Where there is no other extender it goes on at once."""
    world = World(found)
    assert world.after(1) == "the extender before this one was killed: OOMKilled, exit code 137"
    assert world.end.reason == ""
    assert world.after(SOON_SECONDS - 1) == ""


def test_one_that_did_not_last_leaves_the_lease_to_another_extender_too() -> None:
    world = World(pod())
    world.after(1)
    assert world.end.reason == KILLED


def test_an_api_server_that_does_not_answer_is_asked_again_and_is_no_reason_for_long() -> None:
    """kube-scheduler is not to end for an outage of the API server."""
    world = World(ConnectionFailedError("down"))
    assert world.after(1) == UNKNOWN
    assert world.after(UNKNOWN_SECONDS) == ""
    world.found = pod()
    assert world.after(1) == KILLED


def test_without_a_lease_none_is_to_take_it() -> None:
    world = World(pod(), lease=None)
    assert (world.end.trouble(), world.after(1), world.asked) == ("", "", 0)
