"""simulate with PodGroups of kube-scheduler's own API, of 1.36 and of 1.37: topology, priority, preemption and disruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_simulate_configurations import Files, Json

RACK, CELL = "example.com/rack", "example.com/cell"
OLD, NEW = "v1alpha2", "v1beta1"
IN_TREE = [
    {
        "schedulerName": "gang-scheduler",
        "pluginConfig": [{"name": "Coscheduling", "args": {"inTreePodGroups": True}}],
    }
]


class Cluster(Files):
    """With kube-scheduler's own groups; the configuration names the level rack, and no other."""

    def group(self, name: str, count: int, version: str = NEW, **spec: Any) -> None:
        kind = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": {"name": name}}
        self.objects.append({**kind, "spec": {"schedulingPolicy": {"gang": {"minCount": count}}, **spec}})

    def members(self, group: str, count: int, cpu: str = "1", **spec: Any) -> None:
        for number in range(count):
            self.pod(f"{group}-{number}", cpu, schedulingGroup={"podGroupName": group}, **spec)

    def priority_class(self, name: str, value: int, **more: Any) -> None:
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        self.objects.append({**kind, "value": value, **more})

    def simulate(self, code: int = 0) -> Json:
        config = self.extender(profiles=IN_TREE, topology=[{"name": "rack", "nodeLabel": RACK}])
        return self.run(config, code=code)

    def message(self, pod: str) -> str:
        return next(str(each["message"]) for each in self.report["pods"] if each["name"] == pod)


@pytest.fixture
def cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cluster:
    return Cluster(tmp_path, capsys)


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize(
    "key", [pytest.param(RACK, id="a configured level"), pytest.param(CELL, id="a label that no level has")]
)
def test_a_topology_constraint_keeps_the_gang_in_one_domain(cluster: Cluster, version: str, key: str) -> None:
    """Two members fit into a by themselves, all three only into b; another node of both racks' kind is in no domain."""
    for name, domain in (("n1", "a"), ("n2", "b"), ("n3", "b")):
        cluster.node(name, "2", **{key: domain})
    cluster.node("nowhere", "9")
    cluster.group("train", 3, version, schedulingConstraints={"topology": [{"key": key}]})
    cluster.members("train", 3)
    cluster.simulate()
    assert set(cluster.places().values()) == {"n2", "n3"}


def test_what_fits_into_no_domain_of_the_label_is_refused_with_its_name(cluster: Cluster) -> None:
    cluster.node("n1", "2", **{CELL: "a"})
    cluster.node("n2", "2", **{CELL: "b"})
    cluster.group("train", 3, schedulingConstraints={"topology": [{"key": CELL}]})
    cluster.members("train", 3)
    cluster.simulate()
    assert cluster.report["summary"] == {"Pending": 3}
    assert f"no single {CELL} takes it: Insufficient cpu" in cluster.message("train-0")


@pytest.mark.parametrize("version", [OLD, NEW])
def test_the_priority_of_the_group_s_class_comes_first(cluster: Cluster, version: str) -> None:
    """The pods of both have none, and there is room for one gang."""
    cluster.node("n1", "2")
    cluster.priority_class("high", 100)
    for name, spec in (("a-low", {}), ("b-high", {"priorityClassName": "high"})):
        cluster.group(name, 2, version, **spec)
        cluster.members(name, 2)
    cluster.simulate()
    assert cluster.states()["b-high"] == "Bound"


def test_a_class_that_nothing_resolves_is_refused_by_name(cluster: Cluster) -> None:
    cluster.node("n1", "2")
    cluster.group("train", 1, priorityClassName="none-such")
    cluster.members("train", 1)
    cluster.simulate(code=1)
    assert "spec.priorityClassName: Invalid value: 'none-such'" in cluster.message("train-0")


@pytest.mark.parametrize(
    ("policy", "low"),
    [
        pytest.param({}, "", id="it preempts"),
        pytest.param({"preemptionPolicy": "PreemptLowerPriority"}, "", id="it says so"),
        pytest.param({"preemptionPolicy": "Never"}, "n1", id="it never does"),
    ],
)
def test_a_gang_preempts_as_its_policy_says(cluster: Cluster, policy: Json, low: str) -> None:
    cluster.node("n1", "2")
    cluster.pod("low", "2", nodeName="n1", priority=0)
    cluster.group("train", 2, priority=10, **policy)
    cluster.members("train", 2, priority=10)
    cluster.simulate()
    assert ("low" in cluster.places() and cluster.report["summary"].get("Preempted", 0)) == (0 if low else 1)
    assert cluster.states() == {"train": "Denied" if low else "Bound"}


@pytest.mark.parametrize(
    ("version", "mode", "evicted"),
    [
        pytest.param(OLD, "Pod", 1, id="1.36: pod by pod"),
        pytest.param(OLD, "PodGroup", 3, id="1.36: the whole group"),
        pytest.param(NEW, {"single": {}}, 1, id="1.37: pod by pod"),
        pytest.param(NEW, {"all": {}}, 3, id="1.37: the whole group"),
    ],
)
@pytest.mark.parametrize("preemptors", [pytest.param(0, id="a pod"), pytest.param(1, id="a gang")])
def test_a_group_is_disrupted_as_its_mode_says(
    cluster: Cluster, version: str, mode: Any, evicted: int, preemptors: int
) -> None:
    """It has one member more than minCount; stock preemption and a gang's own take that one alone, or all."""
    for name in ("n1", "n2", "n3"):
        cluster.node(name, "1")
    cluster.group("old", 2, version, disruptionMode=mode)
    for number in range(3):
        running: Json = {"nodeName": f"n{number + 1}", "schedulingGroup": {"podGroupName": "old"}}
        cluster.pod(f"old-{number}", priority=0, **running)
    if preemptors:
        cluster.group("new", 1)
        cluster.members("new", 1, priority=10)
    else:
        cluster.pod("new", priority=10)
    cluster.simulate()
    assert cluster.report["summary"].get("Preempted", 0) == evicted
