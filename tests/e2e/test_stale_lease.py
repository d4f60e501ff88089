"""An extender that was stopped with renewals of the Lease unread does not lead by them when it goes on."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import urllib3

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_two_replicas import LEASE

DURATION = 3.0


def short(config: dict[str, Any]) -> None:
    config["leaderElection"] |= {"leaseDuration": f"{DURATION:g}s", "renewDeadline": "2s", "retryPeriod": "500ms"}


def renewed(cluster: Cluster) -> float:
    return datetime.fromisoformat(cluster.api.get(LEASE)["spec"]["renewTime"]).timestamp()


def filter_error(extender: Extender) -> str:
    """What kube-scheduler would be told of a single pod."""
    pod = {"metadata": {"name": "p", "uid": "p"}, "spec": {"schedulerName": "gang-scheduler"}}
    body = json.dumps({"Pod": pod, "NodeNames": ["node-1"]})
    with urllib3.PoolManager(retries=False, timeout=10) as http:
        answer = http.request("POST", f"{extender.url}/filter", body=body)
    return str(json.loads(answer.data)["Error"])


def signal_all(program: Extender | Scheduler, number: signal.Signals) -> None:
    """To all its processes: gunicorn's worker as well."""
    program.program.signal_group(number)


def test_renewals_that_lay_in_the_socket_make_no_leader(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    cluster.killed = True
    cluster.node("node-1")
    pair = Pair.of(cluster.plane, tmp_path, as_shipped=True, change=short)
    programs.extend(pair.start())
    eventually(lambda: pair.extender.metric("gang_extender_leading") == 1, within=15, what="it leads")
    assert filter_error(pair.extender) == ""
    signal_all(pair.extender, signal.SIGSTOP)
    before = renewed(cluster)
    eventually(lambda: renewed(cluster) > before, within=5, what="a renewal is on its way to the extender")
    signal_all(pair.scheduler, signal.SIGSTOP)
    last = renewed(cluster)
    eventually(lambda: time.time() > last + DURATION + 2, within=10, what="the Lease is too old")
    signal_all(pair.extender, signal.SIGCONT)
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        assert filter_error(pair.extender) == "not the leader: the Lease has expired"
        assert pair.extender.metric("gang_extender_leading") == 0
    assert renewed(cluster) == last
    signal_all(pair.scheduler, signal.SIGCONT)
