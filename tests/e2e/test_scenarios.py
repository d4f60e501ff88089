"""The acceptance scenarios: clusters, groups and pods as data, and which pods must be bound in the end.

All-or-nothing over the whole history is asserted by the cluster fixture, after each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair

SCENARIOS = json.loads((Path(__file__).parent / "scenarios" / "coscheduling.json").read_text())


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each["title"]) for each in SCENARIOS])
def test_scenario(scenario: dict[str, Any], cluster: Cluster, module_programs: Pair) -> None:
    for node in scenario["nodes"]:
        cluster.node(**node)
    for group in scenario["podGroups"]:
        seconds = scenario["scheduleTimeoutSeconds"]
        cluster.pod_group(group["name"], group["minMember"], scheduleTimeoutSeconds=seconds)
    for priority in {pod["priority"] for pod in scenario["pods"]}:
        cluster.priority_class(priority)
    for pod in scenario["pods"]:
        requests = {pod["res"]: pod["req"]}
        cluster.pod(pod["name"], group=pod.get("pg", ""), requests=requests, priority=pod["priority"])
    cluster.recorder.await_bound(*scenario["mustBind"], within=10)
    cluster.recorder.settle()
    assert cluster.recorder.bound() >= set(scenario["mustBind"])
    assert not cluster.recorder.bound() & set(scenario["mustNotBind"])
