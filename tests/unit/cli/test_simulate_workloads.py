"""Pods that controllers make once others run, in a simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from extender.cli.main import main

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "%d", memory: 4Gi, pods: "10"}}
---
"""
POD = "{spec: {schedulerName: gang-scheduler, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"
JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  replicatedJobs:
  - {name: init, template: {spec: {template: %s}}}
  - {name: node, dependsOn: [{name: init, status: %s}], template: {spec: {parallelism: 2, completions: 2, template: %s}}}
"""


@pytest.fixture
def simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(cpu: int, text: str, *flags: str) -> Any:
        file = tmp_path / "cluster.yaml"
        file.write_text(NODE % cpu + text)
        assert main(["simulate", str(file), "-o", "json", *flags]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(
    ("status", "cpu", "summary"),
    [
        pytest.param("Ready", 3, {"Scheduled": 3}, id="beside the first"),
        pytest.param("Ready", 2, {"Pending": 1, "Scheduled": 2}, id="the first one's room is taken"),
        pytest.param("Complete", 2, {"Scheduled": 3}, id="the first one's room is free again"),
    ],
)
def test_pods_that_wait_for_others_come_once_these_run(simulate: Any, status: str, cpu: int, summary: Any) -> None:
    report = simulate(cpu, JOBSET % (POD, status, POD))
    assert report["summary"] == summary
    assert report["warnings"] == []


def test_where_the_first_find_no_node_the_others_are_never_made_and_a_warning_names_them(simulate: Any) -> None:
    report = simulate(0, JOBSET % (POD, "Ready", POD))
    assert report["summary"] == {"Pending": 1}
    [warning] = report["warnings"]
    assert warning.startswith(
        "made only once other pods of their workload run, which they do not: default/js-node-0-0-"
    )


def test_pods_that_cannot_be_made_are_named_with_the_reason(simulate: Any) -> None:
    classed = POD.replace("schedulerName", "priorityClassName: none-such, schedulerName")
    report = simulate(3, JOBSET % (POD, "Ready", classed))
    assert report["summary"] == {"Scheduled": 1}
    [warning] = report["warnings"]
    assert warning.startswith("cannot be made: default/js-node-0-0-")
    assert "no PriorityClass with name none-such was found" in warning


def test_operators_put_the_name_of_a_scheduler_that_is_served_on_their_pods(simulate: Any, tmp_path: Path) -> None:
    file = tmp_path / "extender.yaml"
    file.write_text("apiVersion: gang-extender.dev/v1alpha1\nkind: ExtenderConfiguration\nschedulerNames: [ours]\n")
    job = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\n"
    job += "spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: c}]}}}}}"
    report = simulate(2, job, "--config", str(file))
    assert report["summary"] == {"Scheduled": 2}
    assert report["gangs"][0]["state"] == "Bound"
