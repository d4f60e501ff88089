"""Objects as controllers make them, each in a file of its own: what starts, what waits and with which message, and where.

Named after the controller. The files' first lines say what each is; docs/integrations.md has the controllers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from extender.cli.main import main

PROJECT = Path(__file__).parents[3]
OBJECTS = Path(__file__).parent / "integrations"
EXAMPLES = PROJECT / "manifests" / "examples" / "integrations"
NODES, CONFIG = OBJECTS / "nodes.yaml", OBJECTS / "config.yaml"
RACKS = {"n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": "b"}


@dataclass(frozen=True)
class End:
    """summary: pods by state. said: in the message of each pod that waits, those that are gated excepted. racks: how many one group's
    pods are in. warned: in a warning; empty: there is none."""

    summary: Mapping[str, int]
    said: str = ""
    racks: int = 0
    warned: str = ""


def short(there: int, minimum: int) -> str:
    return f"cannot find enough sibling pods, current pods number: {there}, minMember of group: {minimum}"


ENDS = {
    "stateful-set-in-order": End({"Pending": 1}, short(1, 3), warned="run, which they do not: default/db-1, default/db-2"),
    "trainer": End({"Scheduled": 3}),
    "trainer-initializers": End({"Scheduled": 5}),
    "trainer-initializers-short": End({"Pending": 2}, "deny: resource gap: nvidia.com/gpu"),
    "trainer-launcher": End({"Scheduled": 3}),
    "mpi": End({"Scheduled": 3}, racks=1),
    "mpi-workers-ready": End({"Scheduled": 3}),
    "kuberay": End({"Scheduled": 5}),
    "kuberay-scaled-down": End({"Placed": 2, "Scheduled": 1}),
    "kuberay-was": End({"Pending": 2}, short(2, 3)),
    "spark": End({"Scheduled": 1}),
    "spark-two": End({"Pending": 1, "Scheduled": 1}, "minMember of 1 does not fit: Insufficient cpu"),
    "spark-applications": End(
        {"Pending": 1, "Scheduled": 5}, "deny: resource gap: cpu",
        warned="run, which they do not: default/b-",
    ),
    "ray-job": End({"Scheduled": 5}),
    "ray-service": End({"Pending": 6}, "minMember of 6 does not fit: Insufficient cpu"),
    "lws-volcano": End({"Pending": 2}, short(2, 3)),
    "lws-leader-ready": End(
        {"Pending": 1}, f"{short(1, 3)}; the leader alone is there: with startupPolicy LeaderReady",
        warned="run, which they do not: default/serve-0-1, default/serve-0-2",
    ),
    "lws-keys": End({"Pending": 3, "Scheduled": 3}, "minMember of 3 does not fit: Insufficient cpu"),
    "jobset-label": End({"Scheduled": 4}),
    "jobset-in-tree": End({"Scheduled": 3}, racks=1),
    "job-index-replaced": End({"Placed": 2, "Scheduled": 1}),
    "job-136": End({"Scheduled": 3}),
    "job-137": End({"Scheduled": 3}),
    "job-scheduling": End({"Pending": 6}, "minMember of 6 does not fit: Insufficient cpu"),
    "job-scheduling-elastic": End({"Pending": 1, "Scheduled": 5}, "5 Insufficient cpu"),
    "cron-job": End({"Scheduled": 3}, racks=1),
    "composite": End({"Scheduled": 5}, racks=1),
    "in-tree-short": End({"Pending": 3}, short(3, 4)),
    "kueue": End({"Pending": 2}, "cannot proceed due to gated pods in the same PodGroup"),
    "kueue-short": End({"Pending": 2}, short(2, 3)),
    "kueue-beside": End({"Pending": 3}, "cannot proceed due to gated pods in the same PodGroup"),
    "volcano": End({"Pending": 3}, "cannot find enough sibling pods of role ps"),
    "volcano-whole": End({"Scheduled": 3}, racks=1),
    "volcano-quota": End({"Scheduled": 2}),
    "volcano-job-rack": End({"Scheduled": 3}, racks=1),
    "volcano-job-elastic": End({"Pending": 1, "Scheduled": 5}, "5 Insufficient cpu"),
    "volcano-job-in-order": End(
        {"Pending": 1}, "cannot find enough sibling pods of role worker",
        warned="run, which they do not: default/vj-worker-0, default/vj-worker-1",
    ),
    "koordinator": End({"Pending": 2}, short(2, 3)),
    "koordinator-gather": End({"Pending": 4}, "no single rack takes it: Insufficient cpu"),
    "koordinator-prefer": End({"Scheduled": 4}),
    "pytorch-short-of-room": End({"Pending": 6}, "deny: resource gap: cpu"),
    "slices": End({"Scheduled": 4}, racks=2),
    "slices-uneven": End({"Scheduled": 5}, racks=2),
    "slices-short": End({"Pending": 5}, "no single rack takes a slice of 5: Insufficient cpu"),
    "kueue-slices": End({"Scheduled": 4}, racks=2),
    "slices-two-controllers": End({"Scheduled": 8}, racks=1),
    "topology": End({"Pending": 4}, "minMember of 4 does not fit: no single rack takes it: Insufficient cpu"),
    "other-kinds": End(
        {"Scheduled": 1}, warned="other-kinds.yaml:2: ClusterQueue default/all, "
        f"{OBJECTS}/other-kinds.yaml:6: Workflow team/nightly"
    ),
}  # fmt: skip


EXAMPLES_END: Mapping[str, int] = {
    "indexed-job": 8,
    "job": 4,
    "jobset": 5,
    "kueue-pod-group": 2,
    "leaderworkerset": 8,
    "mpijob": 3,
    "pytorchjob": 3,
    "raycluster": 3,
    "sparkapplication": 3,
    "trainjob": 3,
    "volcano-job": 3,
}
"""Pods that start, all in gangs."""


def simulate(file: Path, capsys: pytest.CaptureFixture[str], config: Path = CONFIG) -> Any:
    assert main(["simulate", str(NODES), str(file), "--config", str(config), "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ENDS)
def test_what_becomes_of_a_controller_s_objects(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    end, report = ENDS[name], simulate(OBJECTS / f"{name}.yaml", capsys)
    assert report["summary"] == end.summary
    waiting = [pod["message"] for pod in report["pods"] if pod["state"] == "Pending"]
    told = [message for message in waiting if "non-empty scheduling gates" not in message]
    assert [message for message in told if end.said not in message] == []
    assert bool(told) is bool(end.said)
    groups: dict[str, set[str]] = {}
    for pod in report["pods"]:
        groups.setdefault(pod["name"][:4], set()).add(RACKS.get(pod.get("node", ""), ""))
    assert not end.racks or {len(racks) for racks in groups.values()} == {end.racks}
    assert bool(report["warnings"]) is bool(end.warned)
    assert any(end.warned in warning for warning in report["warnings"]) or not end.warned


@pytest.mark.parametrize(
    ("name", "racks"),
    [
        pytest.param("slices", "aabb", id="two and two"),
        pytest.param("slices-uneven", "bbbaa", id="three where three nodes are"),
        pytest.param("kueue-slices", "aabb", id="by Kueue's annotations"),
    ],
)
def test_ranks_of_one_slice_are_in_one_rack(name: str, racks: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = simulate(OBJECTS / f"{name}.yaml", capsys)
    assert "".join(RACKS[pod["node"]] for pod in sorted(report["pods"], key=lambda pod: pod["name"])) == racks


def test_each_file_has_its_row() -> None:
    assert {file.stem for file in OBJECTS.glob("*.yaml")} == {*ENDS, "nodes", "config"}


@pytest.mark.parametrize("name", EXAMPLES_END)
def test_the_gangs_of_a_shipped_example_start(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = simulate(EXAMPLES / f"{name}.yaml", capsys)
    assert report["summary"] == {"Scheduled": EXAMPLES_END[name]}
    assert sum(gang["assigned"] for gang in report["gangs"]) == EXAMPLES_END[name]
    assert {gang["state"] for gang in report["gangs"]} <= {"Bound"}
    assert report["warnings"] == []


def test_each_example_has_its_row() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.yaml")} == {*EXAMPLES_END, "kustomization"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kueue", "kueue.x-k8s.io/pod-group-name makes gangs only with groupSources: [{preset: kueue}]"),
        ("lws-keys", "leaderworkerset.sigs.k8s.io/group-key makes gangs only with groupSources: [{preset: lws}]"),
        ("job-136", "spec.schedulingGroup counts only with inTreePodGroups"),
        ("job-scheduling-elastic", "spec.schedulingGroup counts only with inTreePodGroups"),
        ("kuberay-was", "spec.schedulingGroup counts only with inTreePodGroups"),
    ],
)
def test_what_makes_no_gang_without_a_configuration_is_said_by_name(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", str(NODES), str(OBJECTS / f"{name}.yaml"), "-o", "json"]) == 0
    [warning] = json.loads(capsys.readouterr().out)["warnings"]
    assert said in warning
    assert "scheduled singly" in warning


@pytest.mark.parametrize("name", ["koordinator", "volcano", "pytorch-short-of-room"])
def test_other_gangs_wait_without_a_configuration_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(NODES), str(OBJECTS / f"{name}.yaml"), "-o", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["summary"]) == {"Pending"}
