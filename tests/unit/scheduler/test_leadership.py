"""Only the extender beside the kube-scheduler that holds the Lease acts, and only while that one renews it."""

from __future__ import annotations

import logging
import socket
import time
from datetime import UTC, datetime

import pytest

from extender.api.codec import convert
from extender.api.coordinationv1 import Lease
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import LEASES
from extender.config.types import ExtenderConfiguration, NamespacedName
from extender.scheduler.leadership import CLOCK_SKEW_SECONDS, Leadership
from tests.unit.scheduler.conftest import SECONDS, running

LEASE_SECONDS = 15
NOON = 1_800_000_000.0  # a time of day
EXPIRED = "the Lease has expired"
NOT_RENEWED = "the Lease has not been renewed since it was first read"


class World:
    """Both clocks, and what was told of the Lease. A pause stops neither clock; a correction changes the time of day alone."""

    def __init__(self) -> None:
        self._clock, self._wall = 100.0, NOON
        self._lease: Lease | None = None
        self.leadership = Leadership("me", lambda: self._clock, watched=True, wall=lambda: self._wall)

    def passes(self, seconds: float) -> None:
        self._clock += seconds
        self._wall += seconds

    def corrects(self, seconds: float) -> None:
        self._wall += seconds

    def reads(self, holder: str = "me_1", *, renewed: float | None = 0.0, seconds: int = LEASE_SECONDS) -> None:
        """renewed: how long ago by our time of day; None for a Lease that does not say."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds}
        if renewed is not None:
            spec["renewTime"] = datetime.fromtimestamp(self._wall - renewed, UTC).isoformat()
        new = convert({"metadata": {}, "spec": spec}, Lease)
        self.leadership.on_lease(self._lease, new)
        self._lease = new

    def reads_it_again(self) -> None:
        self.leadership.on_lease(self._lease, self._lease)

    @property
    def reason(self) -> str:
        assert self.leadership.leading is (self.leadership.reason == "")
        return self.leadership.reason


@pytest.fixture
def world() -> World:
    return World()


def test_without_a_lease_to_watch_we_always_lead() -> None:
    assert Leadership("me", lambda: 0.0, watched=False).leading


def test_the_holder_is_known_by_its_host_name(world: World) -> None:
    assert world.reason == "the Lease has no holder"
    world.reads("me_1")
    assert world.reason == ""
    world.reads("me-too_1")
    assert world.reason == "another kube-scheduler holds the Lease"
    world.reads("")
    assert world.reason == "the Lease has no holder"
    world.reads("me_2")
    world.leadership.on_lease(None, None)
    assert world.reason == "the Lease has no holder"


@pytest.mark.parametrize(
    ("renewed", "reason"),
    [
        pytest.param(0.0, "", id="just renewed: it counts"),
        pytest.param(LEASE_SECONDS - 0.1, "", id="renewed within its duration: it counts"),
        pytest.param(LEASE_SECONDS + CLOCK_SKEW_SECONDS - 0.1, "", id="the clocks may differ by as much"),
        pytest.param(LEASE_SECONDS + CLOCK_SKEW_SECONDS, EXPIRED, id="and by no more"),
        pytest.param(3600.0, EXPIRED, id="not renewed for an hour: it is void"),
        pytest.param(-CLOCK_SKEW_SECONDS, "", id="renewed in the future, as far as the clocks may differ"),
        pytest.param(-3600.0, NOT_RENEWED, id="renewed in an hour: proves nothing"),
        pytest.param(None, NOT_RENEWED, id="does not say when it was renewed: proves nothing"),
    ],
)
def test_the_lease_as_it_is_found_at_the_start(world: World, renewed: float | None, reason: str) -> None:
    world.reads(renewed=renewed)
    assert world.reason == reason
    world.passes(0.5)
    world.reads(renewed=0)
    assert world.reason == "", "a renewal that is seen counts"


def test_it_counts_for_its_duration_from_the_renewal(world: World) -> None:
    world.reads(renewed=10)
    world.passes(5 + CLOCK_SKEW_SECONDS - 0.1)
    assert world.reason == ""
    world.passes(0.2)
    assert world.reason == EXPIRED


def test_it_counts_for_no_more_than_its_duration_from_the_reading(world: World) -> None:
    """However far the clock of its writer is ahead."""
    world.reads(renewed=0)
    world.reads(renewed=-60)
    world.passes(LEASE_SECONDS - 0.1)
    assert world.reason == ""
    world.passes(0.1)
    assert world.reason == EXPIRED


def test_a_lease_that_does_not_say_when_it_was_renewed_counts_from_the_reading_of_a_change(world: World) -> None:
    world.reads("me_1", renewed=None)
    world.reads("me_2", renewed=None)
    assert world.reason == ""
    world.passes(LEASE_SECONDS)
    assert world.reason == EXPIRED


def test_what_was_in_the_socket_over_a_pause_makes_no_leader(world: World) -> None:
    """The process was stopped for 58 s; another holder is not seen yet."""
    world.reads(renewed=0)
    world.passes(58)
    for ago in (56, 54, 52):
        assert world.reason == EXPIRED
        world.reads(renewed=ago)
    assert world.reason == EXPIRED
    world.reads("other_1", renewed=40)
    assert world.reason == "another kube-scheduler holds the Lease"


def test_a_machine_that_was_suspended_does_not_lead(world: World) -> None:
    """Its monotonic clock stood still."""
    world.reads(renewed=0)
    world.corrects(60)
    assert world.reason == EXPIRED


def test_a_lease_that_is_read_again_is_not_renewed_by_it(world: World) -> None:
    """As after every list. By the time of day alone it would still count: that was put back."""
    world.reads(renewed=0)
    world.corrects(-3600)
    world.passes(LEASE_SECONDS - 1)
    world.reads_it_again()
    assert world.reason == ""
    world.passes(1)
    assert world.reason == EXPIRED


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_corrected_clock_costs_no_more_than_the_time_to_the_next_renewal(world: World, step: float) -> None:
    world.reads(renewed=0)
    world.corrects(step)
    world.passes(2)
    world.reads(renewed=0)
    assert world.reason == ""


def test_a_duration_of_nothing_is_client_go_s_own(world: World) -> None:
    world.reads(renewed=0, seconds=0)
    world.passes(LEASE_SECONDS - 0.1)
    assert world.reason == ""
    world.passes(0.1)
    assert world.reason == EXPIRED


def test_none_of_the_verbs_acts_by_a_lease_that_was_not_renewed_for_an_hour() -> None:
    """A whole scheduler on an API server where the Lease names its host."""
    hour_ago = datetime.fromtimestamp(time.time() - 3600, UTC).isoformat()
    spec = {"holderIdentity": f"{socket.gethostname()}_1", "leaseDurationSeconds": LEASE_SECONDS, "renewTime": hour_ago}
    api = EmbeddedAPI()
    api.create(LEASES, {"metadata": {"name": "gang-scheduler", "namespace": "kube-system"}, "spec": spec})
    with running(ExtenderConfiguration(leader_lease=NamespacedName("kube-system", "gang-scheduler")), api) as bench:
        bench.node("n1")
        bench.node("n2")
        pod, victim = bench.pod("single"), bench.pod("victim", node="n1")
        refusal = f"not the leader: {EXPIRED}"
        assert bench.filter(pod, "n1").error == refusal
        assert {each.score for each in bench.prioritize(pod, "n1", "n2")} == {0}
        assert bench.preempt(pod, {"n1": [victim]}) == {}
        assert bench.bind(pod, "n1").result(SECONDS) == refusal
        renewed = {"spec": {"renewTime": datetime.now(UTC).isoformat()}}
        api.patch(LEASES, "gang-scheduler", renewed, namespace="kube-system")
        bench.until(lambda: bench.filter(pod, "n1").error == "", "the renewal counts")
        assert {each.score for each in bench.prioritize(pod, "n1", "n2")} != {0}
        assert bench.bind(pod, "n1").result(SECONDS) == ""


def test_the_log_says_when_leadership_is_gained_and_lost_and_why(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "extender")
    world.leadership.tick()
    world.reads()
    for _ in range(3):
        world.leadership.tick()
    world.passes(LEASE_SECONDS + 2)
    world.leadership.tick()
    world.reads("other_1")
    world.leadership.tick()
    world.reads("me_1")
    world.leadership.tick()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "not the leader reason='the Lease has no holder'"),
        ("INFO", "leadership gained"),
        ("WARNING", f"leadership lost reason='{EXPIRED}'"),
        ("INFO", "not the leader reason='another kube-scheduler holds the Lease'"),
        ("INFO", "leadership gained"),
    ]


def test_nothing_is_said_of_a_leadership_that_no_lease_decides(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "extender")
    Leadership("me", lambda: 0.0, watched=False).tick()
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("holder", "seconds", "unheard"),
    [
        pytest.param("me_1", 7.0, 0.0, id="a renewal may be late"),
        pytest.param("me_1", 12.5, 5.0, id="half the duration, and more"),
        pytest.param("me_1", 100.0, 92.5, id="also when it has expired"),
        pytest.param("other_1", 100.0, 0.0, id="of another's Lease nothing is said"),
    ],
)
def test_for_how_long_our_kube_scheduler_s_renewals_were_not_seen(
    holder: str, seconds: float, unheard: float, world: World
) -> None:
    world.reads(holder)
    world.passes(seconds)
    assert world.leadership.unheard_seconds == unheard
    world.reads("me_1")
    assert world.leadership.unheard_seconds == 0.0


def test_without_a_lease_no_renewal_is_missing(world: World) -> None:
    world.passes(100)
    assert world.leadership.unheard_seconds == 0.0
