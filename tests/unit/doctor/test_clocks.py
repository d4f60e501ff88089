"""The doctor on clocks: the API server's is the measure, and what an answer leaves open is no finding."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError
from extender.config.types import ExtenderConfiguration, NamespacedName
from extender.doctor import clocks
from extender.doctor.questions import Questions
from tests.unit.doctor.test_cluster import lease

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEASE = NamespacedName("kube-system", "gang-scheduler")
MACHINE, HOLDER = "this machine's clock", "leases kube-system/gang-scheduler"


class Dated(EmbeddedAPI):
    """date: what its answers have; None: nothing."""

    def __init__(self, date: datetime | None = NOW) -> None:
        super().__init__()
        self._date = date

    def server_time(self) -> datetime | None:
        return self._date


def found(api: EmbeddedAPI, *ticks: datetime, watched: NamespacedName | None = None) -> list[str]:
    """ticks: what this machine's clock shows, one after the other; then the last one."""
    shown = list(ticks)
    ask = Questions(api, ExtenderConfiguration(), "kubeconfig", "")
    told = clocks.examine(ask, watched, lambda: shown.pop(0) if len(shown) > 1 else shown[0])
    return [f"{each.severity.value} {each.code} {each.field}" for each in told]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, [], id="in step"),
        pytest.param(0.999, [], id="parts of the second that the date has not"),
        pytest.param(3, [], id="two seconds ahead"),
        pytest.param(3.5, [f"warning ClocksDiffer {MACHINE}"], id="ahead by more"),
        pytest.param(-2, [], id="two seconds behind"),
        pytest.param(-2.5, [f"warning ClocksDiffer {MACHINE}"], id="behind by more"),
        pytest.param(11, [f"error ClocksDiffer {MACHINE}"], id="ahead by client-go's renewDeadline"),
        pytest.param(-3600, [f"error ClocksDiffer {MACHINE}"], id="an hour behind"),
    ],
)
def test_this_machines_clock(seconds: float, expected: list[str]) -> None:
    assert found(Dated(), NOW + timedelta(seconds=seconds)) == expected


def test_an_answer_that_took_long_is_no_difference() -> None:
    assert found(Dated(), NOW - timedelta(seconds=20), NOW + timedelta(seconds=20)) == []


def test_of_a_lease_that_is_renewed_rarely_the_error_comes_later() -> None:
    api = Dated()
    lease(api, NOW, seconds=60)
    ahead = NOW + timedelta(seconds=30)
    assert found(api, ahead, watched=LEASE) == [f"warning ClocksDiffer {MACHINE}"]


def test_the_lease_is_held_against_the_api_servers_clock() -> None:
    """This machine's is an hour ahead: the Lease has not expired for that."""
    api = Dated()
    lease(api, NOW - timedelta(seconds=3))
    assert found(api, NOW + timedelta(hours=1), watched=LEASE) == [f"error ClocksDiffer {MACHINE}"]


def test_an_expired_lease_is_found_by_a_machine_whose_clock_is_behind() -> None:
    api = Dated()
    lease(api, NOW - timedelta(minutes=1))
    expected = [f"error LeaseExpired {HOLDER}", f"error ClocksDiffer {MACHINE}"]
    assert found(api, NOW - timedelta(minutes=1), watched=LEASE) == expected


def test_a_server_without_a_date_leaves_this_machines_clock_to_go_by() -> None:
    api = Dated(None)
    lease(api, NOW - timedelta(seconds=16))
    assert found(api, NOW, watched=LEASE) == [f"error LeaseExpired {HOLDER}"]


def test_a_clock_that_may_not_be_asked_is_said_once() -> None:
    class Refused(Dated):
        def server_time(self) -> datetime | None:
            raise ForbiddenError("version is forbidden")

    api = Refused()
    lease(api, NOW)
    assert found(api, NOW, watched=LEASE) == ["info NotExamined the API server's clock"]
