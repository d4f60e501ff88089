"""Two of three members are held in their bind calls while the API server goes, the extender is frozen, or the clock jumps.

No fraction of the gang is bound by it, and all of it once the fault is over.
"""

from __future__ import annotations

import importlib.util
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.intercepting_proxy import InterceptingProxy
from tests.e2e.link import PASS, REFUSE, Link
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_held_binds import NAMES, hold_two, let_in

HOLD_SECONDS = 3
GROUP = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/web"
Start = Callable[..., Extender]


@pytest.fixture
def proxy() -> Iterator[InterceptingProxy]:
    proxy = InterceptingProxy().start()
    yield proxy
    proxy.stop()


@pytest.fixture
def link(cluster: Cluster) -> Iterator[Link]:
    made = Link(cluster.plane.port).start()
    yield made
    made.stop()


@pytest.fixture
def start(
    cluster: Cluster, proxy: InterceptingProxy, link: Link, tmp_path: Path, programs: list[Extender | Scheduler]
) -> Start:
    """Starts both programs and a gang of three, and returns when two members are held: the extender sees the API server
    through the link."""

    def started(timeout_seconds: int, *, env: Mapping[str, str] | None = None) -> Extender:
        server = f"https://127.0.0.1:{link.port}"
        pair = Pair.of(cluster.plane, tmp_path, server=server, env=env, change=proxy.put_in_front)
        programs.extend(pair.start())
        hold_two(cluster, proxy, pair.extender, timeout_seconds)
        proxy.keep_out(["web-2"])
        return pair.extender

    return started


def said(cluster: Cluster, text: str) -> bool:
    return any(text in cluster.recorder.condition(name).get("message", "") for name in NAMES[:2])


def refused_binds(extender: Extender) -> list[str]:
    """Samples of the metrics that count them."""
    lines = extender.ops("/metrics")[1].splitlines()
    calls = [line for line in lines if line.startswith("gang_extender_requests_total{")]
    return [line for line in calls if 'verb="bind"' in line and 'result="error"' in line]


def hold_for_longer(cluster: Cluster) -> None:
    """From now on, so that the back-off of one member does not outlast the hold of another."""
    cluster.api.patch(GROUP, {"spec": {"scheduleTimeoutSeconds": 60}})


def test_an_api_server_that_is_away_for_longer_than_members_are_held(
    cluster: Cluster, proxy: InterceptingProxy, link: Link, start: Start
) -> None:
    extender = start(HOLD_SECONDS)
    link.set(REFUSE)
    eventually(lambda: extender.held() == 0, within=HOLD_SECONDS + 5, what="the holds end in their time")
    eventually(lambda: said(cluster, "rejected while waiting on permit"), within=5, what="a member says why")
    assert extender.ops("/livez")[0] == 200
    assert cluster.recorder.bound() == set()
    hold_for_longer(cluster)
    link.set(PASS)
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=60)


def test_an_extender_that_is_frozen_beyond_the_end_of_its_holds(
    cluster: Cluster, proxy: InterceptingProxy, start: Start
) -> None:
    """The last member's calls come while it is frozen. They start no gang by holds whose time was up meanwhile."""
    cluster.killed = True
    extender = start(HOLD_SECONDS)
    extender.program.signal_group(signal.SIGSTOP)
    over = time.monotonic() + HOLD_SECONDS + 0.5
    let_in(cluster, proxy)
    eventually(lambda: time.monotonic() > over, within=HOLD_SECONDS + 5, what="the time of the holds is up")
    hold_for_longer(cluster)
    extender.program.signal_group(signal.SIGCONT)
    eventually(lambda: said(cluster, f"timeout after waiting {HOLD_SECONDS}s"), within=10, what="a hold timed out")
    assert cluster.recorder.bound() == set()
    cluster.recorder.await_bound(*NAMES, within=60)


@pytest.mark.parametrize("jump", [pytest.param("+1h", id="an hour ahead"), pytest.param("-1h", id="an hour back")])
def test_a_wall_clock_that_jumps(
    jump: str, cluster: Cluster, proxy: InterceptingProxy, tmp_path: Path, start: Start
) -> None:
    """Holds go on, and the gang starts. Of a Lease: test_a_corrected_clock_costs_no_more_than_the_time_to_the_next_renewal."""
    offset = tmp_path / "offset"
    offset.write_text("+0\n")
    extender = start(60, env=shifted_by(offset))
    offset.write_text(f"{jump}\n")
    shown = extender.log().count("\n")
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=30)
    lines = extender.log().splitlines()
    assert hours_of_the_log(lines[shown:]) - hours_of_the_log(lines[:shown]), "the clock has jumped"
    assert refused_binds(extender) == [], "no hold has ended: each member was asked about once"
    assert "Traceback" not in extender.log()


def shifted_by(offset: Path) -> dict[str, str]:
    """The environment in which a program's wall clock, and that alone, is off by what the file says."""
    found = importlib.util.find_spec("libfaketime")
    assert found is not None
    assert found.origin is not None
    library = Path(found.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def hours_of_the_log(lines: list[str]) -> set[str]:
    return {found[1] for line in lines if (found := re.match(r"[A-Z]\d{4} (\d\d):", line))}
