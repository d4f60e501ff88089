"""Replicas of the extender elect a leader among themselves, where no kube-scheduler beside them does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from extender.api.coordinationv1 import LeaseSpec
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ConnectionFailedError, NotFoundError
from extender.client.interface import LEASES, ResourceType
from extender.config.types import ExtenderConfiguration, NamespacedName
from extender.scheduler.actions.leader_endpoint import AGAIN_SECONDS, ENDPOINT_SLICES, LeaderEndpoint
from extender.scheduler.election import Elector, Fitness
from extender.scheduler.leadership import RENEW_DEADLINE, Leadership
from tests.unit.scheduler.conftest import running

LEASE = NamespacedName("kube-system", "gang-extender")
DURATION = 15


class Replica:
    """One elector, of which a test takes the steps."""

    def __init__(self, world: World, host_name: str) -> None:
        self.unfit, self.leads, self.elected = "", True, 0
        self.leadership = Leadership(host_name, lambda: world.now, watched=True, share=RENEW_DEADLINE)
        fitness = Fitness(lambda: self.unfit, lambda: self.leads, self._was_elected, self.leadership.gives_up)
        self.elector = Elector(world.api, LEASE, DURATION, host_name, fitness, lambda: world.now)

    def _was_elected(self) -> None:
        self.elected += 1
        self.leadership.elected()

    def steps(self) -> Replica:
        self.elector.step()
        return self


class Flaky(EmbeddedAPI):
    """down: every call fails, as if the API server were away."""

    down = False

    def get(self, resource: ResourceType[Any], name: str, namespace: str = "") -> Any:
        self._answer()
        return super().get(resource, name, namespace)

    def patch(
        self, resource: ResourceType[Any], name: str, body: Mapping[str, Any] | Sequence[Any], **more: Any
    ) -> Any:
        self._answer()
        return super().patch(resource, name, body, **more)

    def _answer(self) -> None:
        if self.down:
            raise ConnectionFailedError("refused")


class World:
    def __init__(self) -> None:
        self.now, self.api = 100.0, Flaky()
        self.a, self.b = Replica(self, "a"), Replica(self, "b")

    def shows(self, *to: Replica) -> None:
        """The Lease as it is now, to the watches of these."""
        for replica in to:
            replica.leadership.on_lease(None, self.api.get(LEASES, LEASE.name, LEASE.namespace))

    @property
    def leading(self) -> list[str]:
        named = {"a": self.a, "b": self.b}
        return [name for name, replica in named.items() if replica.leadership.leading]

    @property
    def lease(self) -> LeaseSpec:
        spec: LeaseSpec = self.api.get(LEASES, LEASE.name, LEASE.namespace).spec
        return spec

    @property
    def holder(self) -> str:
        return self.lease.holder_identity.partition("_")[0]

    def passes(self, seconds: float, *active: Replica) -> None:
        """The active ones take a step each second."""
        for _ in range(int(seconds)):
            self.now += 1
            for replica in active:
                replica.steps()


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_takes_the_lease_and_keeps_it_by_renewing(world: World) -> None:
    world.a.steps()
    assert (world.holder, world.lease.lease_duration_seconds, world.lease.lease_transitions) == ("a", DURATION, 0)
    first = world.lease.renew_time
    world.passes(3 * DURATION, world.a, world.b)
    assert (world.holder, world.b.elected) == ("a", 0)
    assert world.lease.renew_time is not None
    assert first is not None
    assert world.lease.renew_time > first
    assert world.a.elected == 3 * DURATION + 1


def test_the_other_takes_it_when_it_was_not_renewed_for_its_duration(world: World) -> None:
    world.a.steps()
    world.b.steps()
    world.passes(DURATION - 1, world.b)
    assert world.holder == "a"
    world.passes(1, world.b)
    assert (world.holder, world.lease.lease_transitions) == ("b", 1)
    world.a.steps()
    world.passes(DURATION - 1, world.a, world.b)
    assert world.holder == "b", "the first finds that it has lost it, and asks for it as any other"


def test_a_renewal_of_the_other_is_judged_by_our_own_clock(world: World) -> None:
    """Its renewTime may be of any year."""
    spec = {"holderIdentity": "c_1", "leaseDurationSeconds": DURATION, "renewTime": "2001-01-01T00:00:00.000000Z"}
    world.api.create(LEASES, {"metadata": {"name": LEASE.name, "namespace": LEASE.namespace}, "spec": spec})
    world.passes(DURATION, world.a)
    assert world.holder == "c"
    world.passes(1, world.a)
    assert world.holder == "a"


def test_one_that_ends_gives_it_up_and_the_other_need_not_wait(world: World) -> None:
    world.a.steps()
    world.b.steps()
    world.a.elector.stop()
    assert world.holder == ""
    world.b.steps()
    assert world.holder == "b"


def test_a_process_that_takes_the_place_of_another_in_its_pod_goes_on_with_its_lease(world: World) -> None:
    world.a.steps()
    again = Replica(world, "a").steps()
    assert again.elected == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param({"unfit": "every filter call fails"}, "every filter call fails", id="its filter errs"),
        pytest.param({"leads": False}, "it has the Lease, and does not see it", id="its watch of the Lease is cut"),
    ],
)
def test_one_that_is_of_no_use_gives_it_up(
    wrong: Mapping[str, Any], said: str, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.a.steps()
    world.passes(DURATION + 1, world.a)
    for name, value in wrong.items():
        setattr(world.a, name, value)
    world.a.steps()
    assert world.holder == ""
    assert f"Lease given up reason='{said}'" in caplog.text
    world.a.steps()
    assert world.holder == "", "another has time to take it"
    world.passes(1, world.a, world.b)
    assert world.holder == "b"


def test_one_that_is_unfit_comes_back_where_there_is_no_other(world: World) -> None:
    world.a.steps()
    world.a.unfit = "every filter call fails"
    world.passes(DURATION, world.a)
    assert world.holder == ""
    world.a.unfit = ""
    world.passes(DURATION, world.a)
    assert world.holder == "a"


def test_one_that_has_not_seen_the_cluster_does_not_ask(world: World) -> None:
    world.a.unfit = "cache not synced"
    world.a.steps()
    with pytest.raises(NotFoundError):
        world.api.get(LEASES, LEASE.name, LEASE.namespace)
    world.a.unfit = ""
    world.a.steps()
    assert world.holder == "a"  # at once: there was nothing to give up


def test_an_api_server_that_is_away_costs_the_lease_only_when_it_expires(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.a.steps()
    world.b.steps()
    world.api.down = True
    world.passes(5, world.a, world.b)
    world.api.down = False
    world.passes(2 * DURATION, world.a, world.b)
    assert world.holder == "a"
    assert len([line for line in caplog.messages if "the Lease could not be written" in line]) == 2, "once for each"


def test_what_another_has_made_of_the_lease_is_not_written_over(world: World) -> None:
    world.a.steps()
    world.api.patch(LEASES, LEASE.name, {"spec": {"holderIdentity": "b_1"}}, namespace=LEASE.namespace)
    world.a.steps().steps()
    assert world.holder == "b"


def test_the_service_leads_to_the_one_that_leads_and_what_others_write_is_put_right() -> None:
    api, now, leading = EmbeddedAPI(), [0.0], [False]
    service = NamespacedName("kube-system", "gang-extender")
    endpoint = LeaderEndpoint(api, service, "10.1.2.3", 8888, lambda: leading[0], lambda: now[0])

    def written() -> list[Any]:
        stored = [change.object for change in api.changes(0)][-1:]
        return [(each["metadata"]["name"], each["endpoints"][0]["addresses"], each["ports"][0]) for each in stored]

    endpoint.elected()
    assert written() == [], "it has the Lease, and does not lead by it yet"
    leading[0] = True
    endpoint.elected()
    port = {"name": "https", "port": 8888, "protocol": "TCP"}
    assert written() == [("gang-extender-leader", ["10.1.2.3"], port)]
    other = {"endpoints": [{"addresses": ["10.9.9.9"]}]}
    api.patch(ENDPOINT_SLICES, "gang-extender-leader", other, namespace="kube-system")
    now[0] += AGAIN_SECONDS - 1
    endpoint.elected()
    assert written()[0][1] == ["10.9.9.9"]
    now[0] += 1
    endpoint.elected()
    assert written()[0][1] == ["10.1.2.3"]


def test_a_whole_scheduler_elects_itself_and_says_where_it_is() -> None:
    configuration = ExtenderConfiguration(leader_lease=LEASE, leader_service=LEASE)
    api = EmbeddedAPI()
    with running(configuration, api) as bench:
        bench.until(bench.scheduler.keeps_connections, "it leads")
        bench.node("n1")
        pod = bench.pod("single")
        assert bench.filter(pod, "n1").error == ""
        assert bench.bind(pod, "n1").result(5) == ""
        renewed = {"spec": {"holderIdentity": "another_1"}}
        api.patch(LEASES, LEASE.name, renewed, namespace=LEASE.namespace)
        bench.until(lambda: not bench.scheduler.keeps_connections(), "it does not")
        assert bench.filter(pod, "n1").error == "not the leader: another extender holds the Lease"
        free = {"spec": {"holderIdentity": ""}}
        api.patch(LEASES, LEASE.name, free, namespace=LEASE.namespace)
        bench.until(bench.scheduler.keeps_connections, "it leads again")
    assert api.get(LEASES, LEASE.name, LEASE.namespace).spec.holder_identity == ""


def test_one_that_gives_the_lease_up_leads_no_more_whatever_its_watch_shows(world: World) -> None:
    world.a.steps()
    world.shows(world.a, world.b)
    assert world.leading == ["a"]
    world.a.unfit = "every filter call has been answered with an Error for 30s"
    world.a.steps()
    assert world.leading == [], "its watch still shows its own renewal"
    assert world.a.leadership.reason == "we have given the Lease up"
    world.b.steps()
    world.shows(world.b)
    assert world.leading == ["b"]
    world.passes(2, world.b)
    world.shows(world.b)
    assert world.leading == ["b"]


def test_one_that_takes_the_lease_again_leads_again(world: World) -> None:
    world.a.steps()
    world.a.unfit = "no use"
    world.a.steps()
    world.a.unfit = ""
    world.passes(DURATION, world.a)
    world.shows(world.a)
    assert (world.holder, world.leading) == ("a", ["a"])


def test_one_that_cannot_give_the_lease_up_leads_no_more_either(world: World) -> None:
    world.a.steps()
    world.shows(world.a)
    world.a.unfit, world.api.down = "no use", True
    world.a.steps()
    assert (world.leading, world.api.down) == ([], True)
