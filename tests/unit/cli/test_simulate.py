"""`gang-extender simulate` on files, good and bad: what it prints, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from extender.cli import simulate, simulation_output
from extender.cli.main import main
from extender.cli.schema import schema
from extender.scheduler.pod_groups import line
from extender.simulation.report import PodReport

CLUSTER = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
  status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: nginx}
spec: {minMember: 2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  replicas: 2
  template:
    metadata: {labels: {scheduling.x-k8s.io/pod-group: nginx}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: c, resources: {requests: {cpu: "10"}}}]}
"""
SCHEDULER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
EXTENDER = "apiVersion: gang-extender.dev/v1alpha1\nkind: ExtenderConfiguration\n"
TOO_LARGE = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: "
    "1 Preemption is not helpful for scheduling., can not find pod group"
)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(CLUSTER)
    return str(file)


def test_json_has_every_pod_and_gang(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", cluster, "-o", "json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    report = json.loads(said.out)
    assert (report["apiVersion"], report["kind"]) == ("gang-extender.dev/v1alpha1", "SimulationReport")
    assert report["summary"] == {"Pending": 1, "Scheduled": 2}
    huge = next(pod for pod in report["pods"] if pod["name"] == "huge")
    assert huge == {
        "namespace": "default", "name": "huge", "state": "Pending", "message": TOO_LARGE, "attempts": huge["attempts"]
    }  # fmt: skip
    bound = [pod for pod in report["pods"] if pod["state"] == "Scheduled"]
    assert all(pod["node"] == "n1" and pod["boundAt"] == 0.0 and pod["attempts"] == 1 for pod in bound)
    gang = {"namespace": "default", "group": "nginx", "state": "Bound", "minMember": 2, "members": 2, "assigned": 2}
    assert report["gangs"] == [gang]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CLUSTER.encode())))
    assert main(["simulate", "-", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == {"Pending": 1, "Scheduled": 2}


def test_yaml_says_the_same_as_json(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", cluster, "-o", "json"]) == 0
    as_json = json.loads(capsys.readouterr().out)
    assert main(["simulate", cluster, "--output", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_the_table_is_for_people(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", cluster]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAMESPACE", "POD", "NODE", "STATE", "AT", "MESSAGE"]
    assert lines[1].split(maxsplit=5)[:5] == ["default", "huge", "-", "Pending", "-"]
    assert lines[1].endswith(TOO_LARGE)
    assert lines[-3].split() == ["default", "nginx", "Bound", "2/2", "(min", "2)"]
    assert lines[-1].startswith("1 Pending, 2 Scheduled; settled after ")


def test_members_that_wait_for_one_reason_are_one_row() -> None:
    def pod(name: str, group: str = "g", message: str = "no room", **more: Any) -> PodReport:
        return PodReport("a", name, "Pending", group=group, message=message, **more)

    pods = [
        pod("p-0"),
        pod("p-1"),
        pod("p-2", message="gated"),
        pod("p-3"),
        pod("q-0", group="h"),
        pod("r-0", group=""),
        pod("r-1", group=""),
        pod("s-0", group="i", node="n1"),
        pod("s-1", group="i", node="n1"),
    ]
    rows = [(name, message) for _, name, _, _, _, message in simulation_output._pods(pods)]
    assert rows == [
        ("p-0 and 2 more", "no room"),
        ("p-2", "gated"),
        *((name, "no room") for name in ("q-0", "r-0", "r-1", "s-0", "s-1")),
    ]


def test_a_namespace_is_shown_alone_and_the_summary_is_of_all(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", cluster, "-n", "other"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == ""
    assert lines[2].startswith("1 Pending, 2 Scheduled; ")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        pytest.param("kind: Pod\nspec: [", 2, "cluster.yaml:3: ", id="no YAML: the line"),
        pytest.param("apiVersion: v1\nkind: Pod\nspec: {nodeName: 3}\n", 2, "$.spec.nodeName", id="the field"),
        pytest.param("apiVersion: x/v1\nkind: Whatever\n", 2, "x/v1 Whatever is not known here", id="an unknown kind"),
        pytest.param("just text", 2, "cluster.yaml:1: $.kind: ", id="no object"),
    ],
)
def test_a_bad_cluster_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    assert main(["simulate", str(file)]) == code
    error = capsys.readouterr().err
    assert error.startswith("gang-extender: ")
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            SCHEDULER + "profiles: [{plugins: {filter: {enabled: [{name: Mystery}]}}}]",
            'profiles[0].plugins: plugin "Mystery" is not modelled',
            id="a plugin that is not modelled",
        ),
        pytest.param(SCHEDULER + "profile: []", "config.yaml:3: profile: ", id="an unknown field, with its line"),
        pytest.param("kind: Policy\napiVersion: v1\n", "Policy was dropped", id="another kind"),
        pytest.param(EXTENDER + "profiles: [{schedulerName: 3}]", "config.yaml:3: ", id="our own file"),
        pytest.param(
            SCHEDULER + "extenders: [{urlPrefix: 'https://x', filterVerb: f, tlsConfig: {certFile: missing.pem}}]",
            'extender "https://x": tlsConfig: ',
            id="a certificate that is not there",
        ),
    ],
)
def test_a_bad_configuration_is_wrong_use(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert main(["simulate", cluster, "--config", str(file)]) == 2
    assert said in capsys.readouterr().err


def test_a_kube_scheduler_without_coscheduling_schedules_members_singly(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(SCHEDULER)
    assert main(["simulate", cluster, "--config", str(file), "-o", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["gangs"] == []
    assert "warning: no profile has Coscheduling: members of gangs are scheduled singly" in said.err


def test_pods_of_other_schedulers_are_left_alone_and_named(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(EXTENDER + "schedulerNames: [other]")
    assert main(["simulate", cluster, "--config", str(file), "-o", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["summary"] == {"NotOurs": 3}
    assert "no profile schedules for 'default-scheduler': 3 pods are left alone" in said.err


@pytest.mark.parametrize("arguments", [["--until", "0"], ["--until", "x"], ["-o", "xml"], ["--seed", "a"]])
def test_wrong_flags(cluster: str, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", cluster, *arguments])
    assert ended.value.code == 2
    assert "usage: " in capsys.readouterr().err


@pytest.mark.parametrize("watched", [True, False], ids=["a terminal", "a file"])
def test_a_long_run_shows_a_bar_on_a_terminal(
    cluster: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], watched: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(simulate, "BAR_AFTER_PODS", 1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched, raising=False)
    assert main(["simulate", cluster, "-o", "json"]) == 0
    said = capsys.readouterr()
    assert ("pods bound" in said.err) is watched
    assert json.loads(said.out)["summary"] == {"Pending": 1, "Scheduled": 2}


POD = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: c}]}}"
GROUP = "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: odd%s}, spec: {minMember: %s}}"
MEMBER = "{apiVersion: v1, kind: Pod, metadata: {name: m, labels: {scheduling.x-k8s.io/pod-group: odd}}}"


def _also(cluster: str, *documents: str) -> str:
    with Path(cluster).open("a") as file:
        file.write("".join(f"---\n{document}\n" for document in documents))
    return cluster


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        pytest.param([GROUP % ("", 0)], "spec.minMember", id="a field that the API server would refuse"),
        pytest.param(
            [GROUP % (", annotations: {gang-extender.dev/roles: 'a=b'}", 1)],
            "gang-extender.dev/roles",
            id="an annotation that it would take",
        ),
        pytest.param(
            [
                "{apiVersion: v1, kind: Pod, metadata: {name: m, labels: "
                "{pod-group.scheduling.sigs.k8s.io/name: odd, pod-group.scheduling.sigs.k8s.io/min-available: many}}}"
            ],
            "pod-group.scheduling.sigs.k8s.io/min-available",
            id="labels",
        ),
    ],
)
def test_an_invalid_group_is_named_and_nothing_else_is_kept_from_running(
    cluster: str, capsys: pytest.CaptureFixture[str], documents: list[str], said: str
) -> None:
    assert main(["simulate", _also(cluster, *documents, MEMBER.replace("name: m", "name: m2")), "-o", "json"]) == 1
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert {gang["group"]: gang["state"] for gang in report["gangs"]} == {"nginx": "Bound", "odd": "Invalid"}
    assert "minMember" not in next(gang for gang in report["gangs"] if gang["group"] == "odd")
    [line] = [line for line in printed.err.splitlines() if line.startswith("gang-extender: ")]
    assert said in line


def test_groups_that_the_files_lack_are_named(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", _also(cluster, MEMBER)]) == 0
    printed = capsys.readouterr()
    assert "warning: pods name PodGroups that are not in the files, and wait for them: default/odd\n" in printed.err
    [line] = [line for line in printed.out.splitlines() if line.split()[1:2] == ["odd"]]
    assert line.split() == ["default", "odd", "Gathering", "0/1", "PodGroup", "not", "found"]


def test_what_is_left_out_and_what_is_misspelt_are_warned_of(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    job = "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}}"
    misspelt = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {contaners: []}}"
    assert main(["simulate", _also(cluster, job, job, misspelt)]) == 0
    warnings = capsys.readouterr().err
    assert "these kinds are not known here: 2 kubeflow.org/v1 PyTorchJob; pods that a controller would make" in warnings
    assert "$.spec.contaners: unknown field; did you mean containers?" in warnings


def test_many_misspelt_fields_are_counted(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    misspelt = "{apiVersion: v1, kind: Pod, metadata: {name: p%s}, spec: {contaners: []}}"
    assert main(["simulate", _also(cluster, *(misspelt % number for number in range(13)))]) == 0
    warnings = capsys.readouterr().err.splitlines()
    assert sum("$.spec.contaners" in line for line in warnings) == 10
    assert "warning: 3 more unknown fields" in warnings


TOO_MANY = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 3}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 3
  completions: 3
  template:
    metadata: {labels: {scheduling.x-k8s.io/pod-group: train}}
    spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
"""


def test_of_a_gang_that_does_not_fit_it_is_said_what_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the words of PodGroup.status.wouldFit, by what makes these; of a gang that fits nothing is said."""
    file = tmp_path / "cluster.yaml"
    file.write_text(TOO_MANY)
    assert simulated(file, capsys)["wouldFit"] == "minMember 2 instead of 3"
    assert main(["simulate", str(file)]) == 0
    assert "Insufficient cpu; would fit: minMember 2 instead of 3\n" in capsys.readouterr().out
    file.write_text(TOO_MANY.replace('cpu: "2"', 'cpu: "1"'))
    assert "wouldFit" not in simulated(file, capsys)
    file.write_text(TOO_MANY)
    monkeypatch.setattr(line, "MOST_SAID", 11)
    assert simulated(file, capsys)["wouldFit"] == "minMember 2"


def simulated(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The only gang of the report, which the schema holds."""
    assert main(["simulate", str(file), "-o", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, schema("simulate"))
    assert "wouldFit" in schema("simulate")["$defs"]["GangReport"]["properties"]
    (gang,) = report["gangs"]
    return dict(gang)
