"""simulate with the files that a cluster runs by: kube-scheduler's, the extender's, both; and what it connects to."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.cli.main import main
from tests.fakes.extender import FakeExtender

PROJECT = Path(__file__).parents[3]
SHIPPED = PROJECT / "manifests" / "sidecar"
GROUP = "scheduling.x-k8s.io/pod-group"
LEVEL = "example.com/rack"
Json = dict[str, Any]


class Files:
    """What `simulate` is given. `report` and `said`: of the last run."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.objects: list[Json] = []
        self.report: Json = {}
        self.said = ""

    def node(self, name: str, cpu: str = "4", **labels: str) -> None:
        room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
        self.objects.append({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": room}})

    def pod(self, name: str, cpu: str = "1", group: str = "", scheduler: str = "gang-scheduler", **spec: Any) -> None:
        meta = {"name": name, "labels": {GROUP: group} if group else {}}
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        spec = {"schedulerName": scheduler, "containers": containers, **spec}
        self.objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def gang(self, name: str, size: int, cpu: str = "1", annotations: dict[str, str] | None = None) -> None:
        spec = {"minMember": size}
        meta = {"name": name, "annotations": annotations or {}}
        kind = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
        self.objects.append({**kind, "metadata": meta, "spec": spec})
        for number in range(size):
            self.pod(f"{name}-{number}", cpu, group=name)

    def config(self, name: str, kind: str, **fields: Any) -> str:
        api_version = {
            "KubeSchedulerConfiguration": "kubescheduler.config.k8s.io/v1",
            "ExtenderConfiguration": "gang-extender.dev/v1alpha1",
        }[kind]
        file = self._folder / name
        file.write_text(yaml.safe_dump({"apiVersion": api_version, "kind": kind, **fields}))
        return str(file)

    def kube_scheduler(self, *extenders: Json, **fields: Any) -> str:
        profiles = {"profiles": [{"schedulerName": "gang-scheduler"}]}
        return self.config(
            "ks.yaml", "KubeSchedulerConfiguration", **{**profiles, "extenders": list(extenders), **fields}
        )

    def extender(self, **fields: Any) -> str:
        return self.config("extender.yaml", "ExtenderConfiguration", **fields)

    def run(self, *configs: str | Path, code: int = 0, more: tuple[str, ...] = ()) -> Json:
        file = self._folder / "cluster.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": self.objects}))
        flags = [flag for config in configs for flag in ("--config", str(config))]
        assert main(["simulate", str(file), "-o", "json", *flags, *more]) == code
        printed = self._capsys.readouterr()
        self.said = printed.err
        self.report = json.loads(printed.out) if printed.out else {}
        return self.report

    def places(self) -> dict[str, str]:
        return {pod["name"]: pod.get("node", "") for pod in self.report["pods"]}

    def states(self) -> dict[str, str]:
        return {gang["group"]: gang["state"] for gang in self.report["gangs"]}


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that would take a call, on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def _url(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def _was_called(listening: socket.socket) -> bool:
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return False
    return True


VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "bindVerb": "bind"}
OURS: Json = {**VERBS, "weight": 1, "nodeCacheCapable": True}


# What is connected to


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="this extender"),
        pytest.param({"filterVerb": "predicates"}, id="another extender's"),
        pytest.param({"managedResources": [{"name": "example.com/gpu"}]}, id="another extender's, under our names"),
        pytest.param({"ignorable": True}, id="one that may fail"),
        pytest.param({"enableHTTPS": True}, id="over TLS"),
    ],
)
def test_no_connection_is_opened(files: Files, listener: socket.socket, fields: Json) -> None:
    """Pods that go, are preempted or are refused: a gang, a pod that makes room, one that fits nowhere."""
    files.node("n1", cpu="2")
    files.pod("low", "2", nodeName="n1", priority=0)
    files.pod("high", "2", priority=10)
    files.pod("huge", "99")
    files.gang("train", 2)
    files.run(files.kube_scheduler({"urlPrefix": _url(listener), **OURS, **fields}))
    assert not _was_called(listener)
    assert files.places()["high"] == "n1"


def test_those_that_are_not_asked_are_named(files: Files) -> None:
    files.node("n1")
    other = {"urlPrefix": "http://10.1.2.3:4", **OURS, "bindVerb": "assume"}
    files.run(files.kube_scheduler(other))
    [named] = [line for line in files.said.splitlines() if "--call-extenders" in line]
    assert "http://10.1.2.3:4 (filter, prioritize, preempt, bind)" in named
    assert named.removeprefix("warning: ") in files.report["warnings"]


def test_asked_for_they_filter_and_prioritize_and_nothing_else(files: Files) -> None:
    answers = {"filter": {"NodeNames": ["n2", "n3"], "FailedNodes": {"n1": "not here"}}}
    scores = [{"Host": "n2", "Score": 0}, {"Host": "n3", "Score": 10}]
    server = FakeExtender({**answers, "prioritize": scores, "preempt": {}, "bind": {"Error": "bound for good"}})
    try:
        for number in range(1, 4):
            files.node(f"n{number}")
        files.pod("low", "4", nodeName="n1", priority=0)
        files.pod("pod", "1", priority=5)
        files.pod("huge", "4", priority=10, nodeSelector={"kubernetes.io/hostname": "n1"})  # would preempt
        entry = {"urlPrefix": f"{server.url}/", **OURS, "weight": 100, "bindVerb": "bind/it"}
        files.run(files.kube_scheduler(entry), more=("--call-extenders",))
    finally:
        server.stop()
    assert files.places()["pod"] == "n3"
    assert set(server.asked) == {"filter", "prioritize"}
    assert "could change something" in files.said


# This extender, simulated


def test_the_shipped_files_answer_for_gangs_of_their_scheduler(files: Files) -> None:
    files.node("n1", cpu="4")
    files.gang("fits", 3)
    files.gang("does-not", 3)
    for configs in (
        [SHIPPED / "kube-scheduler.yaml"],
        [SHIPPED / "extender.yaml"],
        [SHIPPED / "kube-scheduler.yaml", SHIPPED / "extender.yaml"],
        [SHIPPED / "extender.yaml", SHIPPED / "kube-scheduler.yaml"],
    ):
        files.run(*configs)
        assert files.states() == {"fits": "Bound", "does-not": "Denied"}, configs
    assert files.said == ""


def test_settings_that_are_not_given_are_the_default_ones_and_that_is_said(files: Files) -> None:
    files.node("n1")
    files.run(SHIPPED / "kube-scheduler.yaml")
    assert "http://127.0.0.1:8888 is taken for this extender, with its default settings" in files.said


def test_the_extender_s_file_alone_changes_nothing_where_kube_scheduler_does_not_ask_it(files: Files) -> None:
    files.node("n1", cpu="2")
    files.gang("train", 3)
    files.run(files.kube_scheduler(), files.extender())
    assert files.report["summary"] == {"Pending": 1, "Scheduled": 2}
    assert "no entry of extenders: is this extender" in files.said
    assert "members of gangs are scheduled singly" in files.said


def test_pods_that_the_extender_does_not_serve_are_no_gang_s(files: Files) -> None:
    files.node("n1", cpu="2")
    files.gang("train", 3)
    ours = {"urlPrefix": "http://127.0.0.1:8888", **OURS}
    files.run(files.kube_scheduler(ours), files.extender(schedulerNames=["another"]))
    assert "the extender does not serve 'gang-scheduler'" in files.said
    assert files.report["gangs"] == []


@pytest.mark.parametrize("both", [True, False], ids=["with kube-scheduler's file", "alone"])
class TestItsSettingsCount:
    def _configs(self, files: Files, both: bool, **settings: Any) -> list[str]:
        extender = files.extender(schedulerNames=["gang-scheduler"], **settings)
        ours = {"urlPrefix": "http://127.0.0.1:8888", **OURS}
        return [extender, *([files.kube_scheduler(ours)] if both else [])]

    def test_topology(self, files: Files, both: bool) -> None:
        for number, rack in enumerate("aabbb"):
            files.node(f"n{number}", cpu="4", **{LEVEL: rack})
        files.gang("train", 3, cpu="3", annotations={"gang-extender.dev/topology-required": "rack"})
        files.run(*self._configs(files, both, topology=[{"name": "rack", "nodeLabel": LEVEL}]))
        assert set(files.places().values()) == {"n2", "n3", "n4"}

    def test_packing(self, files: Files, both: bool) -> None:
        for name in ("n1", "n2"):
            files.node(name, cpu="4")
        files.gang("train", 4)
        for packing, per_node in (("fewestNodes", [4]), ("mostEven", [2, 2])):
            files.run(*self._configs(files, both, packing=packing))
            nodes = list(files.places().values())
            assert sorted(nodes.count(name) for name in set(nodes)) == per_node, packing

    def test_single_pods_are_kept_off_free_racks(self, files: Files, both: bool) -> None:
        for number, rack in enumerate("ab"):
            files.node(f"n{number}", cpu="8", **{LEVEL: rack})
        files.pod("there", "1", nodeName="n0")
        files.pod("single", "1")
        files.run(*self._configs(files, both, topology=[{"name": "rack", "nodeLabel": LEVEL}]))
        assert files.places()["single"] == "n0"

    def test_which_pods_are_evicted(self, files: Files, both: bool) -> None:
        files.node("n1", cpu="2")
        files.pod("low", "2", nodeName="n1", priority=0)
        files.gang("train", 2)
        for pod in files.objects[-2:]:
            pod["spec"]["priority"] = 10
        files.run(*self._configs(files, both, gangPreemption=False))
        assert files.report["summary"] == {"Pending": 2, "Placed": 1}
        files.run(*self._configs(files, both))
        assert files.places() == {"low": "n1", "train-0": "n1", "train-1": "n1"}
        assert files.report["summary"] == {"Preempted": 1, "Scheduled": 2}

    def test_a_preemption_that_is_put_off_is_waited_for(self, files: Files, both: bool) -> None:
        files.node("n1", cpu="2")
        files.pod("low", "2", nodeName="n1", priority=0)
        files.gang("train", 2)
        for pod in files.objects[-2:]:
            pod["spec"]["priority"] = 10
        files.run(*self._configs(files, both, preemptionDelaySeconds=3600))
        assert files.report["summary"] == {"Preempted": 1, "Scheduled": 2}
        assert all(pod["boundAt"] >= 3600 for pod in files.report["pods"] if pod["state"] == "Scheduled")

    def test_groups_of_kube_scheduler_s_own_api(self, files: Files, both: bool) -> None:
        files.node("n1", cpu="8")
        group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "own"}}
        files.objects.append({**group, "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}})
        for number in range(3):
            files.pod(f"p{number}", schedulingGroup={"podGroupName": "own"})
        coscheduling = [{"name": "Coscheduling", "args": {"inTreePodGroups": True}}]
        profiles = [{"schedulerName": "gang-scheduler", "pluginConfig": coscheduling}]
        files.run(*self._configs(files, both, profiles=profiles))
        assert files.report["summary"] == {"Pending": 3}
        assert files.said == ""
        del files.objects[1]  # the PodGroup
        files.run(*self._configs(files, both, profiles=profiles))
        assert "PodGroups that are not in the files, and wait for them: default/own" in files.said
        files.run(*self._configs(files, both))
        assert files.report["summary"] == {"Scheduled": 3}
        assert "spec.schedulingGroup counts only with inTreePodGroups" in files.said

    def test_the_arguments_of_coscheduling(self, files: Files, both: bool) -> None:
        files.node("n1", cpu="2")
        files.gang("train", 3)
        for pod in files.objects[-3:]:
            pod["metadata"]["labels"] = {"example.com/gang": "train"}
        coscheduling = [{"name": "Coscheduling", "args": {"podGroupLabels": ["example.com/gang"]}}]
        profiles = [{"schedulerName": "gang-scheduler", "pluginConfig": coscheduling}]
        files.run(*self._configs(files, both, profiles=profiles))
        assert files.report["summary"] == {"Pending": 3}

    def test_how_long_members_are_held(self, files: Files, both: bool) -> None:
        """A member that needs a volume first is bound last: the others are held no longer than a bind call may take."""
        files.node("n1", cpu="8")
        files.gang("train", 2)
        files.run(*self._configs(files, both, bindTimeoutSeconds=10))
        assert files.states() == {"train": "Bound"}


def test_two_files_of_one_kind_are_wrong_use(files: Files) -> None:
    files.node("n1")
    one = files.extender()
    files.run(one, one, code=2)
    assert "a file of this kind was given before" in files.said


def test_a_configuration_that_is_not_there_is_wrong_use(files: Files, tmp_path: Path) -> None:
    files.node("n1")
    files.run(tmp_path / "none.yaml", code=2)
    assert files.said.startswith("gang-extender: ")
    assert files.said.count("\n") == 1


# Gangs by keys of pods


def _of_kueue(files: Files, count: str = "2") -> None:
    files.node("n1", cpu="2")
    for name in ("leader", "worker"):
        files.pod(name, cpu="2")
        files.objects[-1]["metadata"] |= {
            "labels": {"kueue.x-k8s.io/pod-group-name": "sample"},
            "annotations": {"kueue.x-k8s.io/pod-group-total-count": count},
        }


def _sources(files: Files, *sources: Json) -> str:
    args = {"name": "Coscheduling", "args": {"groupSources": list(sources)}}
    return files.extender(profiles=[{"schedulerName": "gang-scheduler", "pluginConfig": [args]}])


def test_a_gang_by_the_keys_of_a_preset_starts_whole_or_not_at_all(files: Files) -> None:
    _of_kueue(files)
    files.run(_sources(files, {"preset": "kueue"}))
    assert set(files.places().values()) == {""}
    assert files.states() == {"sample": "Denied"}
    assert "groupSources" not in files.said


def test_keys_that_a_preset_would_read_are_told(files: Files) -> None:
    _of_kueue(files)
    files.run(_sources(files))
    assert len(set(files.places().values())) == 2
    assert (
        "warning: kueue.x-k8s.io/pod-group-name makes gangs only with groupSources: [{preset: kueue}] in Coscheduling's "
        "arguments: default/leader, default/worker are scheduled singly\n"
    ) in files.said


def test_a_count_that_is_none_is_told_by_its_key(files: Files) -> None:
    _of_kueue(files, "two")
    report = files.run(_sources(files, {"preset": "kueue"}), code=1)
    (gang,) = report["gangs"]
    assert gang["state"] == "Invalid"
    assert "annotation kueue.x-k8s.io/pod-group-total-count: Invalid value: 'two'" in gang["message"]


def test_a_mistake_in_a_source_is_told_with_its_place(files: Files) -> None:
    config = _sources(files, {"preset": "kueue"}, {"name": "own", "groupLabel": "a b", "minMemberLabel": "n"})
    files.run(config, code=2)
    assert 'profiles[0].pluginConfig[0].args.groupSources[1].groupLabel: Invalid value: "a b"' in files.said
