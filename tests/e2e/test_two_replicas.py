"""Two replicas of the sidecar's shape, each a kube-scheduler with its extender: only the one that leads acts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Refused
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.intercepting_proxy import InterceptingProxy
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_held_binds import GROUP, NAMES, hold_two

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/gang-scheduler"


def own_host_name(name: str) -> list[str]:
    """In front of a command: as in a pod, whose containers share a host name that is theirs alone."""
    for unshare in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        command = [*unshare, "sh", "-c", 'hostname "$0" && exec "$@"', name]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    pytest.skip("needs a host name for each replica: neither root nor user namespaces are to be had here")


@pytest.fixture
def proxy() -> Iterator[InterceptingProxy]:
    proxy = InterceptingProxy().start()
    yield proxy
    proxy.stop()


def replica(
    name: str, cluster: Cluster, proxy: InterceptingProxy, folder: Path, programs: list[Extender | Scheduler]
) -> Pair:
    plane = cluster.plane

    def change(config: dict[str, Any]) -> None:
        config["leaderElection"] |= {"leaseDuration": "6s", "renewDeadline": "5s", "retryPeriod": "1s"}
        proxy.put_in_front(config)

    (folder / name).mkdir()
    pair = Pair.of(plane, folder / name, as_shipped=True, change=change)
    for each in pair:
        each.program.command[:0] = own_host_name(name)
    programs.extend(pair)
    return pair.start()


def holder(cluster: Cluster) -> str:
    try:
        return str(cluster.api.get(LEASE)["spec"].get("holderIdentity", "")).partition("_")[0]
    except Refused:
        return ""


def test_the_leader_is_killed_between_plan_and_bind(
    cluster: Cluster, proxy: InterceptingProxy, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """At any time there is one plan: the other replica makes its own when it leads, and starts the gang by it."""
    cluster.killed = True
    if holder(cluster):
        cluster.api.delete(LEASE)
    first = replica("first", cluster, proxy, tmp_path, programs)
    eventually(lambda: holder(cluster) == "first", within=15, what="the first replica leads")
    second = replica("second", cluster, proxy, tmp_path, programs)
    hold_two(cluster, proxy, first.extender)
    assert (second.extender.held(), second.extender.planned(GROUP)) == (0, 0)
    first.scheduler.kill()
    first.extender.kill()
    assert cluster.recorder.bound() == set()
    proxy.keep_out([])
    eventually(lambda: holder(cluster) == "second", within=20, what="the second replica leads")
    cluster.recorder.await_bound(*NAMES, within=20)
    assert first.extender.planned(GROUP) == 1
    assert second.extender.planned(GROUP) == 1
