"""What a gang that is too big waits for can be asked, and what is said of it is true."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually


def explain(pair: Pair, *arguments: str) -> str:
    command = [sys.executable, "-m", "extender.cli.main", "explain", *arguments, "--server", pair.extender.ops_url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def status(pair: Pair, group: str) -> Any:
    return json.loads(explain(pair, group, "-o", "json"))


def test_a_gang_that_is_too_big_says_how_short_it_is_and_runs_when_that_is_there(
    cluster: Cluster, module_programs: Pair
) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("train", min_member=6)
    names = [f"train-{number}" for number in range(6)]
    for name in names:
        cluster.pod(name, group="train", requests={"cpu": "1"})
    cluster.recorder.await_message(names[0], "minMember of 6 does not fit: Insufficient cpu", within=5)

    said = status(module_programs, "default/train")
    assert (said["gang"]["phase"], said["gang"]["reason"]) == ("Denied", "InsufficientResources")
    assert said["shortfall"]["resource"] == "cpu"
    assert (said["shortfall"]["placed"], said["shortfall"]["needed"], said["shortfall"]["missing"]) == (4, 6, "2")
    assert [each["text"] for each in said["relaxations"]] == [
        "minMember 4 instead of 6",
        "1 more node with cpu 4, like node-1",
    ]
    text = explain(module_programs, "default/train")
    assert "4 of 6 members would find a place; cpu runs out first: 2 more needed" in text
    assert "default/train   Denied" in explain(module_programs)

    cluster.node("node-2", cpu="4")
    cluster.recorder.await_bound(*names, within=5)
    eventually(
        lambda: module_programs.extender.gang("default/train")["gang"]["phase"] == "Bound",
        within=5,
        what="the gang is Bound",
    )
    said = status(module_programs, "default/train")
    assert (said["gang"]["reason"], said["gang"]["members"]["bound"], said["relaxations"]) == ("", 6, [])
    assert {member["node"] for member in said["memberList"]} == {"node-1", "node-2"}
