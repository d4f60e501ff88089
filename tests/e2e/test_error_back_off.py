"""Holds that time out: all members are rejected together, and each comes back after its own back-off in kube-scheduler.

A bind call that fails puts its pod into a back-off of 1 s and more, which no event ends. The late member is kept back by a proxy in
front of the extender.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.intercepting_proxy import InterceptingProxy
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_gated_gangs import gang

TIMEOUT = "rejected due to timeout after waiting 2s at plugin Coscheduling"
RECENTLY = "podGroup default/web failed recently"
POD_GROUP = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/web"
Start = Callable[[int], "Story"]


class Story:
    """Two of three members are held; the second came when a hold was to last a minute already. The third is at the proxy."""

    def __init__(self, cluster: Cluster, proxy: InterceptingProxy, extender: Extender) -> None:
        self.extender = extender
        self._cluster = cluster
        self._proxy = proxy
        cluster.pod_group("web", min_member=3, scheduleTimeoutSeconds=2)
        proxy.let_pass(1)
        self.names = gang(cluster, "web", 3)
        eventually(lambda: extender.held() == 1, within=10, what="the first is held")
        cluster.api.patch(POD_GROUP, {"spec": {"scheduleTimeoutSeconds": 60}})
        cluster.pod_group("later", min_member=1)
        eventually(lambda: extender.gang("default/later"), within=1, what="the extender knows of both")
        proxy.let_pass(1)
        eventually(lambda: extender.held() == 2, within=10, what="the second is held")

    def saying(self, text: str) -> list[str]:
        return [name for name in self.names if text in self._cluster.recorder.condition(name).get("message", "")]

    def await_timeout(self) -> None:
        """Of the first; then the third is let in at once."""
        self._cluster.recorder.wait(lambda: self.saying(TIMEOUT), within=10, what=f"a member says {TIMEOUT!r}")
        self._proxy.open()


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]) -> Iterator[Start]:
    """How many members the only node has room for."""
    proxy = InterceptingProxy(timeout_seconds=30).start()

    def started(room: int) -> Story:
        pair = Pair.of(cluster.plane, tmp_path, change=proxy.put_in_front)
        programs.extend(pair.start())
        cluster.node("node-1", cpu=str(room))
        return Story(cluster, proxy, pair.extender)

    yield started
    proxy.stop()


def test_the_holds_of_a_gang_end_together_and_it_starts_when_the_last_is_back(cluster: Cluster, start: Start) -> None:
    story = start(3)
    story.await_timeout()
    cluster.recorder.wait(lambda: len(story.saying(TIMEOUT)) == 2, within=5, what="the other hold has ended for it")
    cluster.recorder.wait(lambda: len(story.saying(RECENTLY)) == 1, within=5, what="the third hears why it has to wait")
    cluster.recorder.await_bound(*story.names, within=20)


def test_no_pod_is_kept_out_for_members_that_are_in_back_off(cluster: Cluster, start: Start) -> None:
    story = start(3)
    cluster.pod("other", requests={"cpu": "1"})
    story.await_timeout()
    cluster.recorder.await_bound("other", within=10)
    assert cluster.recorder.bound() == {"other"}
    cluster.delete_pod("other")
    cluster.recorder.await_bound(*story.names, within=20)
