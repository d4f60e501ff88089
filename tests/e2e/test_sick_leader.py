"""The leader's extender fails while its kube-scheduler is well: that one gives the Lease up, and the other replica goes on.

Both replicas run as kubelets run them, by the probes that manifests/sidecar ships (kubelet.py). kube-scheduler by itself would renew
the Lease for ever, and nothing would be scheduled.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Refused
from tests.e2e.cluster import Cluster
from tests.e2e.kubelet import SCALE, Container, Kubelet
from tests.e2e.link import REFUSE, Kind, Link, Mode
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually, free_port
from tests.e2e.test_two_replicas import LEASE, holder, own_host_name

pytestmark = pytest.mark.timeout(120 + 300 * SCALE)  # KUBELET_SCALE=1 measures what is shipped

# Seconds of a kubelet. A kube-scheduler that is restarted may be the first to ask for the Lease again, and is killed once more.
LIVENESS, STARTUP = 45, 30
SLOWER = max(SCALE, 0.6)
DAY = 86400.0  # for which the first of a replica has been there before it ends
START = 60  # real ones, for a replica
PATIENCE = LIVENESS + 4 * STARTUP
PODS = "/api/v1/namespaces/kube-system/pods"
LEASE_SECONDS = 15  # as shipped: for so long a renewal counts that was seen
ERRS = 5  # for so long it errs before anything is made of that
GROUP, NAMES = "default/web", ("web-0", "web-1")
LEADING, READY = "gang_extender_leading", "gang_extender_ready"
Start = Callable[..., Kubelet]


class Cut:
    """A line between a kube-scheduler and its extender, both of one pod."""

    def __init__(self) -> None:
        self.target: int | None = None  # the extender's port
        self.link = Link(lambda: self.target).start()

    def put_between(self, config: dict[str, Any]) -> None:
        """Into a KubeSchedulerConfiguration."""
        for entry in config["extenders"]:
            entry["urlPrefix"] = f"http://127.0.0.1:{self.link.port}"


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path) -> Iterator[Start]:
    """Starts a replica of that name, on a host of that name."""
    cluster.killed = True
    started: list[Kubelet] = []
    try:
        cluster.api.delete(LEASE)
    except Refused as refused:
        assert refused.code == 404  # noqa: PT017 - no earlier test has left one

    def start(
        name: str,
        *,
        server: str = "",
        sick_while: Path | None = None,
        sick: str = "errs",
        cut: Cut | None = None,
        scale: float = SCALE,
    ) -> Kubelet:
        """sick_while: its filter is sick in that way while that file is there. cut: what its kube-scheduler calls in place of it."""
        (tmp_path / name).mkdir()
        pair = Pair.of(
            cluster.plane,
            tmp_path / name,
            as_shipped=True,
            server=server,
            change=cut.put_between if cut else lambda config: None,
        )
        if sick_while is not None or cut is not None:
            command = pair.extender.program.command
            at = command.index("extender.cli.main")
            command[at : at + 1] = ["tests.e2e.sick_extender", str(sick_while or tmp_path / "never"), sick]
        if cut is not None:
            cut.target = pair.extender.port
        for program in pair:
            program.program.command[:0] = own_host_name(name)
        make_pod(cluster, name)
        kubelet = Kubelet(pair, scale=scale)
        kubelet.extender.ended = lambda began, ended: tell_end(
            cluster, name, began if kubelet.extender.restarts else began - DAY, ended
        )
        started.append(kubelet.start())
        return kubelet

    yield start
    for kubelet in started:
        kubelet.stop()
    for name in [each["metadata"]["name"] for each in cluster.api.get(PODS)["items"]]:
        cluster.api.delete(f"{PODS}/{name}", gracePeriodSeconds=0)


def make_pod(cluster: Cluster, name: str) -> None:
    """A replica's own, of the container that matters here."""
    spec = {"schedulerName": "default-scheduler", "containers": [{"name": "extender", "image": "gang-extender"}]}
    cluster.api.create(PODS, {"metadata": {"name": name}, "spec": spec})


def tell_end(cluster: Cluster, name: str, began: float, ended: float) -> None:
    """As a kubelet tells in the pod's status of a container that has ended."""
    first, last = (datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for each in (began, ended))
    terminated = {"startedAt": first, "finishedAt": last, "reason": "OOMKilled", "exitCode": 137}
    status = {"name": "extender", "image": "gang-extender", "imageID": "", "ready": False, "restartCount": 1}
    body = {"status": {"containerStatuses": [{**status, "lastState": {"terminated": terminated}}]}}
    cluster.api.patch(f"{PODS}/{name}/status", body)


def two(start: Start, cluster: Cluster, **of_the_first: Any) -> tuple[Kubelet, Kubelet]:
    """The first leads, the second is ready to. All four containers have started, as a kubelet sees it: from now on liveness counts."""
    first = start("first", **of_the_first)
    eventually(lambda: shows(first, LEADING) == 1 and shows(first, READY) == 1, within=START, what="the first leads")
    second = start("second")
    eventually(lambda: shows(second, READY) == 1, within=START, what="the second stands by")
    assert (holder(cluster), shows(second, LEADING)) == ("first", 0)
    for each in (first, second):
        assert each.extender.startup_passed.wait(START)
        assert each.scheduler.startup_passed.wait(START)
        each.happened.clear()  # of a start that took longer on a busy machine
    return first, second


def shows(kubelet: Kubelet, metric: str) -> float | None:
    """As it is scraped; None where nothing is."""
    try:
        return kubelet.pair.extender.metric(metric)
    except AssertionError:
        return None


def run_a_gang(cluster: Cluster, within: float) -> None:
    cluster.node("node-1")
    cluster.pod_group("web", min_member=2)
    for name in NAMES:
        cluster.pod(name, group="web")
    seconds = cluster.recorder.await_bound(*NAMES, within=within)
    print(f"placed after {seconds:.1f} s, a second of a kubelet being {SCALE:g}")


def freeze(container: Container) -> None:
    container.program.signal_group(signal.SIGSTOP)


def freezes_for_good(extender: Container) -> None:
    """Whenever it is started again too."""
    extender.started = lambda: freeze(extender)
    freeze(extender)


def crashes_in_a_loop(extender: Container) -> None:
    extender.program.command[:] = [sys.executable, "-c", "raise SystemExit(1)"]
    extender.program.kill()


@pytest.mark.parametrize("fails", [freezes_for_good, crashes_in_a_loop])
def test_the_other_replica_places_the_next_gang(
    cluster: Cluster, start: Start, fails: Callable[[Container], None]
) -> None:
    first, second = two(start, cluster)
    fails(first.extender)
    assert shows(second, LEADING) == 0, "no leader has an extender that can be scraped: GangExtenderNobodyLeads"
    run_a_gang(cluster, within=SCALE * PATIENCE + 20)
    assert (second.pair.extender.planned(GROUP), shows(second, LEADING)) == (1, 1)
    assert holder(cluster) == "second"
    assert "kube-scheduler: liveness failed" in first.happened
    assert first.extender.restarts >= 1, "it was tried alone first"
    assert first.happened[0].startswith("extender: ")
    assert second.happened == []


def test_an_extender_that_is_alive_and_errs_for_every_pod_costs_its_kube_scheduler_the_lease(
    cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """Restarted alone it would err again, and each restart would make its kube-scheduler's probe pass for a while."""
    sick = tmp_path / "sick"
    first, second = two(start, cluster, sick_while=sick)
    cluster.node("node-0")
    cluster.pod("before")
    cluster.recorder.await_bound("before", within=10)
    sick.touch()
    singles = [
        cluster.pod(name) and name for name in ("a", "b", "c")
    ]  # one gang's errors alone say nothing of the others
    run_a_gang(cluster, within=SCALE * (ERRS + LIVENESS + STARTUP) + 20)
    cluster.recorder.await_bound(*singles, within=20)
    assert second.pair.extender.planned(GROUP) == 1
    assert holder(cluster) == "second"
    assert "kube-scheduler: liveness failed" in first.happened
    assert second.happened == []
    eventually(lambda: "extender: liveness failed" in first.happened, within=SCALE * 60 + 20, what="it is restarted")


def test_an_extender_whose_event_loop_is_blocked_by_every_call_costs_its_kube_scheduler_the_lease(
    cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """Each restart of the extender makes it well until the next call: that the one before was killed is in its pod's status."""
    sick = tmp_path / "sick"
    first, second = two(start, cluster, sick_while=sick, sick="blocks")
    sick.touch()
    run_a_gang(cluster, within=SCALE * (ERRS + LIVENESS) + 30)
    assert (second.pair.extender.planned(GROUP), holder(cluster)) == (1, "second")
    assert "kube-scheduler: liveness failed" in first.happened
    assert second.happened == []


def test_an_extender_that_ends_with_every_call_costs_its_kube_scheduler_the_lease(
    cluster: Cluster, start: Start, tmp_path: Path
) -> None:
    """It has no memory for a call. Each restart makes it well until the next: that it was killed is in its pod's status."""
    sick = tmp_path / "sick"
    first, second = two(start, cluster, sick_while=sick, sick="dies")
    sick.touch()
    run_a_gang(cluster, within=SCALE * (ERRS + LIVENESS) + 30)
    assert (second.pair.extender.planned(GROUP), holder(cluster)) == (1, "second")
    assert "kube-scheduler: liveness failed" in first.happened
    assert first.happened.index("kube-scheduler: liveness failed") <= 4, "before the back-off alone is longer than that"
    assert second.happened == []


def test_a_kube_scheduler_that_does_not_reach_its_extender_loses_the_lease(cluster: Cluster, start: Start) -> None:
    """Both are well by themselves, and no call comes through."""
    cut = Cut()
    try:
        first, second = two(start, cluster, cut=cut)
        cluster.node("node-0")
        cluster.pod("before")
        cluster.recorder.await_bound("before", within=10)
        cut.link.set(REFUSE)
        run_a_gang(cluster, within=SCALE * (ERRS + LIVENESS + STARTUP) + 30)
        assert (second.pair.extender.planned(GROUP), holder(cluster)) == (1, "second")
        assert "kube-scheduler: liveness failed" in first.happened
        assert not [each for each in first.happened if each.startswith("extender: ")]
        assert second.happened == []
    finally:
        cut.link.stop()


@pytest.mark.parametrize("mode", [REFUSE, Mode(Kind.BLACKHOLE)], ids=str)
def test_an_extender_that_loses_the_api_server_costs_its_kube_scheduler_the_lease(
    mode: Mode, cluster: Cluster, start: Start
) -> None:
    """It alone: its kube-scheduler renews the Lease, and it sees no renewal, so that it refuses every call. A restart would not help it."""
    link = Link(cluster.plane.port).start()
    try:
        first, second = two(start, cluster, server=f"https://127.0.0.1:{link.port}")
        cluster.node("node-0")
        cluster.pod("before")
        cluster.recorder.await_bound("before", within=10)
        link.set(mode)
        run_a_gang(cluster, within=LEASE_SECONDS + SCALE * (ERRS + LIVENESS + STARTUP) + 20)
        assert (second.pair.extender.planned(GROUP), holder(cluster)) == (1, "second")
        assert first.pair.extender.planned(GROUP) == 0
        assert "kube-scheduler: liveness failed" in first.happened
        assert not [each for each in first.happened if each.startswith("extender: ")], "it is alive"
        assert second.happened == []
    finally:
        link.stop()


def test_an_extender_that_never_gets_ready_leaves_the_lease_to_another(cluster: Cluster, start: Start) -> None:
    """It alone does not reach the API server; its kube-scheduler does, and takes the Lease."""
    first = start("first", server=f"https://127.0.0.1:{free_port()}")  # where nothing listens
    eventually(lambda: holder(cluster) == "first", within=START, what="the first leads")
    eventually(lambda: shows(first, READY) == 0, within=START, what="its extender says that it is not ready")
    second = start("second")
    run_a_gang(cluster, within=SCALE * PATIENCE + 20)
    assert second.pair.extender.planned(GROUP) == 1
    assert holder(cluster) == "second"
    assert "kube-scheduler: startup failed" in first.happened
    assert not [each for each in first.happened if each.startswith("extender: ")], (
        "it is alive: a restart would not help"
    )


def test_an_extender_that_hangs_once_is_restarted_alone_and_serves_until_another_leads(
    cluster: Cluster, start: Start
) -> None:
    """The next call might hang as well: its kube-scheduler's patience does not begin anew. A start takes as long here as on a node."""
    first, second = two(start, cluster, scale=SLOWER)
    freeze(first.extender)
    run_a_gang(cluster, within=SLOWER * LIVENESS + 20)
    eventually(lambda: holder(cluster) == "second", within=SLOWER * LIVENESS + 20, what="the other replica leads")
    assert first.happened == ["extender: liveness failed", "kube-scheduler: liveness failed"]
    assert first.extender.restarts == 1
    eventually(lambda: shows(second, LEADING) == 1, within=START, what="its extender knows it")
    assert second.happened == []
