"""Two of three members are held in their bind calls, and then something goes wrong.

The third is kept out by a second extender in front of ours, so that the holds last as long as a test needs.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.intercepting_proxy import InterceptingProxy
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

NAMES = ("web-0", "web-1", "web-2")
GROUP = "default/web"
Start = Callable[..., Pair]


@pytest.fixture
def proxy() -> Iterator[InterceptingProxy]:
    proxy = InterceptingProxy().start()
    yield proxy
    proxy.stop()


@pytest.fixture
def start(cluster: Cluster, proxy: InterceptingProxy, tmp_path: Path, programs: list[Extender | Scheduler]) -> Start:
    """Starts both programs and a gang of three, and returns when two members are held."""

    def started(timeout_seconds: int = 60, *, last_is_slow: bool = False) -> Pair:
        pair = Pair.of(cluster.plane, tmp_path, change=proxy.put_in_front)
        programs.extend(pair.start())
        hold_two(cluster, proxy, pair.extender, timeout_seconds)
        if not last_is_slow:
            proxy.keep_out(["web-2"])
        return pair

    return started


def hold_two(cluster: Cluster, proxy: InterceptingProxy, extender: Extender, timeout_seconds: int = 60) -> None:
    """The third waits at the proxy.

    No member is asked about before the extender knows all three: none is parked then, and they come in their order. The third is
    refused after that at the earliest: it would keep its siblings from having a plan.
    """
    proxy.keep_waiting(NAMES)
    cluster.node("node-1", cpu="3")
    cluster.pod_group("web", min_member=3, scheduleTimeoutSeconds=timeout_seconds)
    for name in NAMES:
        cluster.pod(name, group="web", requests={"cpu": "1"})
    eventually(lambda: len(extender.places(GROUP)) == 3, within=5, what="the extender knows three members")
    proxy.keep_waiting(NAMES[2:])
    eventually(lambda: extender.held() == 2, within=10, what="two members are held")


def let_in(cluster: Cluster, proxy: InterceptingProxy) -> None:
    """A change of a node wakes every pod that an extender has refused."""
    proxy.keep_out([])
    cluster.api.patch("/api/v1/nodes/node-1", {"metadata": {"annotations": {"proxy": f"opened {time.time()}"}}})


def test_the_last_member_starts_the_gang(cluster: Cluster, proxy: InterceptingProxy, start: Start) -> None:
    extender = start().extender
    assert cluster.recorder.bound() == set()
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=2)
    eventually(lambda: extender.held() == 0, within=2, what="no member is held any more")


def test_a_wait_that_times_out_says_so(cluster: Cluster, proxy: InterceptingProxy, start: Start) -> None:
    """The last member is on its way, and nothing says that it will not come."""
    start(timeout_seconds=2, last_is_slow=True)
    text = "rejected due to timeout after waiting 2s at plugin Coscheduling"
    cluster.recorder.wait(
        lambda: any(text in cluster.recorder.condition(name).get("message", "") for name in NAMES[:2]),
        within=6,
        what=f"a member says {text!r}",
    )
    assert cluster.recorder.bound() == set()
    group = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/web"
    cluster.api.patch(group, {"spec": {"scheduleTimeoutSeconds": 30}})  # longer than kube-scheduler 1.30's back-off
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=30)


def test_a_held_pod_that_is_deleted_ends_the_hold_of_all(
    cluster: Cluster, proxy: InterceptingProxy, start: Start
) -> None:
    extender = start().extender
    cluster.delete_pod("web-0")
    eventually(lambda: extender.held() == 0, within=2, what="a group below its quorum holds no member")
    assert cluster.recorder.bound() == set()
    cluster.pod("web-0", group="web", requests={"cpu": "1"})
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=20)


def test_a_pod_group_that_is_deleted_ends_the_holds(cluster: Cluster, start: Start) -> None:
    extender = start().extender
    cluster.delete_pod_group("web")
    eventually(lambda: extender.held() == 0, within=2, what="a group that is gone holds no member")
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()


def test_a_pod_of_higher_priority_takes_the_room_and_no_pod_is_evicted(cluster: Cluster, start: Start) -> None:
    start()
    members = {cluster.recorder.pod(name)["metadata"]["uid"] for name in NAMES}  # type: ignore[index]
    cluster.pod("vip", requests={"cpu": "2"}, priority=1000)
    cluster.recorder.await_bound("vip", within=5)
    cluster.recorder.settle()
    gone = {change.pod.uid for change in cluster.recorder.history() if change.deleted}
    assert not gone & members, "a held member was deleted, though releasing it was enough"


def test_kube_scheduler_killed_while_binds_are_held(cluster: Cluster, proxy: InterceptingProxy, start: Start) -> None:
    """The last member is on its way: for one that was refused no member would be held again."""
    pair = start(last_is_slow=True)
    extender, scheduler = pair.extender, pair.scheduler
    cluster.killed = True
    scheduler.kill()
    eventually(lambda: extender.held() == 0, within=2, what="a hold ends when its caller is gone")
    assert cluster.recorder.bound() == set()
    cluster.await_back(scheduler.start)
    eventually(lambda: extender.held() == 2, within=15, what="two members are held again")
    assert cluster.recorder.bound() == set()
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=15)


def test_the_extender_killed_while_binds_are_held(cluster: Cluster, proxy: InterceptingProxy, start: Start) -> None:
    extender = start().extender
    cluster.killed = True
    extender.kill()
    for name in NAMES[:2]:
        condition = cluster.recorder.await_message(name, "bind", within=5)
        assert condition["reason"] == "SchedulerError"
    cluster.await_back(extender.start)
    assert cluster.recorder.bound() == set()
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=25)


def test_the_extender_told_to_end_answers_the_binds_that_are_held(
    cluster: Cluster, proxy: InterceptingProxy, start: Start
) -> None:
    extender = start().extender
    cluster.killed = True
    extender.program.signal(signal.SIGTERM)
    for name in NAMES[:2]:  # now: a second later kube-scheduler tries again, and finds none of them
        cluster.recorder.wait(
            lambda name=name: cluster.recorder.condition(name).get("reason") == "SchedulerError",
            within=3,
            what=f"the bind of {name} was answered",
        )
        message = cluster.recorder.condition(name)["message"]
        assert "EOF" not in message
        assert "connection" not in message
    extender.program.wait(5)  # a second or so, with no commit begun; more where the machine has no time
    cluster.await_back(extender.start)
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=25)
