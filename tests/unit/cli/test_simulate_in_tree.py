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


# CompositePodGroups


ZONE = "example.com/zone"


class Serving(Cluster):
    """Inference: some of three prefill groups and one decode group, each in one rack, all in one zone."""

    def composite(self, name: str, minimum: int | None, parent: str = "", level: str = "", **spec: Any) -> None:
        policy: Json = {"basic": {}} if minimum is None else {"gang": {"minGroupCount": minimum}}
        if parent:
            spec["parentCompositePodGroupName"] = parent
        if level:
            spec["schedulingConstraints"] = {"topology": [{"key": level}]}
        kind = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup", "metadata": {"name": name}}
        self.objects.append({**kind, "spec": {"schedulingPolicy": policy, **spec}})

    def part(self, name: str, parent: str, count: int = 2, level: str = RACK, **spec: Any) -> None:
        constraints: Json = {"schedulingConstraints": {"topology": [{"key": level}]}} if level else {}
        self.group(name, count, parentCompositePodGroupName=parent, **constraints, **spec)
        self.members(name, count)

    def serving(self, prefill: int = 2) -> None:
        self.composite("serve", 2, level=ZONE)
        self.composite("prefill", prefill, parent="serve")
        self.part("decode", "serve")
        for number in range(3):
            self.part(f"prefill-{number}", "prefill")

    def racks(self, **rooms: str) -> None:
        """rooms: zone_rack -> cpu of the one node that is in it."""
        for name, cpu in rooms.items():
            self.node(name.replace("_", "-"), cpu, **{ZONE: name.split("_")[0], RACK: name.split("_")[1]})

    def bound(self) -> dict[str, set[str]]:
        """Group -> the nodes of its members, of those that run."""
        found: dict[str, set[str]] = {}
        for name, node in self.places().items():
            if node:
                found.setdefault(name.rpartition("-")[0], set()).add(node)
        return found


@pytest.fixture
def serving(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Serving:
    return Serving(tmp_path, capsys)


def test_two_of_three_prefill_groups_and_the_decode_group_start_in_one_zone(serving: Serving) -> None:
    """Zone a has room for three groups in racks of their own, zone b for one; together they would have room for all four."""
    serving.racks(a_r1="2", a_r2="2", a_r3="3", b_r4="2")
    serving.serving()
    serving.simulate()
    assert serving.bound() == {"decode": {"a-r1"}, "prefill-0": {"a-r2"}, "prefill-1": {"a-r3"}}
    assert serving.report["summary"] == {"Pending": 2, "Scheduled": 6}
    told = "minMember of 2 does not fit: no single example.com/zone takes it: no single rack takes it: Insufficient cpu"
    assert told in serving.message("prefill-2-0")


def test_all_of_them_start_where_they_fit(serving: Serving) -> None:
    serving.racks(a_r1="4", a_r2="2", b_r3="4", b_r4="4")
    serving.serving()
    serving.simulate()
    assert set().union(*serving.bound().values()) == {"b-r3", "b-r4"}
    assert serving.report["summary"] == {"Scheduled": 8}


def test_where_one_alone_fits_none_starts_and_the_part_that_is_missing_is_named(serving: Serving) -> None:
    serving.racks(a_r1="2", a_r2="2", a_r3="1", b_r4="2")
    serving.serving()
    serving.simulate()
    assert serving.report["summary"] == {"Pending": 8}
    assert (
        "CompositePodGroup default/serve does not fit: no single example.com/zone takes it: "
        "1 of 2 groups of CompositePodGroup default/serve fit, 2 are needed; "
        "1 of 3 groups of CompositePodGroup default/prefill fit, 2 are needed; "
        "PodGroup default/prefill-1 does not: no single rack takes it: Insufficient cpu"
    ) in serving.message("decode-0")


def test_a_group_that_was_not_chosen_stays_in_the_zone_of_the_others(serving: Serving) -> None:
    """There is room for it in the other zone alone."""
    serving.racks(a_r1="2", a_r2="2", a_r3="2", b_r4="4")
    serving.serving()
    serving.simulate()
    assert sorted(serving.bound()) == ["decode", "prefill-0", "prefill-1"]


def test_a_group_that_lacks_members_is_not_waited_for(serving: Serving) -> None:
    serving.racks(a_r1="9", a_r2="9")
    serving.serving()
    serving.objects = [each for each in serving.objects if each["metadata"]["name"] != "prefill-0-1"]
    serving.simulate()
    assert sorted(serving.bound()) == ["decode", "prefill-1", "prefill-2"]


def test_too_few_groups_with_members_wait_for_them(serving: Serving) -> None:
    serving.racks(a_r1="9", a_r2="9")
    serving.serving(prefill=3)
    serving.objects = [each for each in serving.objects if each["metadata"]["name"] != "prefill-0-1"]
    serving.simulate()
    assert serving.bound() == {}
    assert "2 of 3 groups of CompositePodGroup default/prefill are ready, 3 are needed" in serving.message("decode-0")


def test_with_the_basic_policy_each_group_starts_by_itself(serving: Serving) -> None:
    serving.racks(a_r1="2", a_r2="1")
    serving.composite("any", None)
    serving.part("one", "any")
    serving.part("two", "any")
    serving.simulate()
    assert serving.bound() == {"one": {"a-r1"}}


def test_four_levels_deep(serving: Serving) -> None:
    serving.racks(a_r1="2", b_r2="2")
    for number, parent in enumerate(["", "c0", "c1", "c2"]):
        serving.composite(f"c{number}", 1, parent=parent, level=ZONE if number == 2 else "")
    serving.part("train", "c3", count=2)
    serving.simulate()
    assert len(serving.bound()["train"]) == 1


@pytest.mark.parametrize(
    ("parents", "spec", "why"),
    [
        pytest.param(
            ["", "c0", "c1", "c2", "c3"],
            {},
            "CompositePodGroup default/c4 is invalid: spec.parentCompositePodGroupName: Invalid value: 'c3': "
            "must not lead to more than 4 levels",
            id="too deep",
        ),
        pytest.param(
            ["c1", "c0"],
            {},
            "CompositePodGroup default/c1 is invalid: spec.parentCompositePodGroupName: Invalid value: 'c0': "
            "must not lead back to the group itself",
            id="a cycle",
        ),
        pytest.param(
            [""],
            {"schedulingPolicy": {"gang": {"minGroupCount": 0}}},
            "CompositePodGroup default/c0 is invalid: spec.schedulingPolicy.gang.minGroupCount: Invalid value: 0",
            id="no group is needed",
        ),
        pytest.param(
            ["."],
            {},
            "CompositePodGroup default/c0 is invalid: spec.parentCompositePodGroupName: Invalid value: '.'",
            id="a parent that is no name",
        ),
    ],
)
def test_what_is_no_tree_is_refused_by_the_field(serving: Serving, parents: list[str], spec: Json, why: str) -> None:
    serving.racks(a_r1="9")
    for number, parent in enumerate(parents):
        serving.composite(f"c{number}", 1, parent=parent, **spec)
    serving.part("train", f"c{len(parents) - 1}")
    serving.part("beside", "")
    serving.simulate(code=1)
    assert why in serving.message("train-0")
    assert list(serving.bound()) == ["beside"]


def test_a_composite_that_is_not_there_is_waited_for(serving: Serving) -> None:
    serving.racks(a_r1="9")
    serving.part("train", "none")
    serving.simulate()
    assert "CompositePodGroup default/none, which it is a group of, is not found" in serving.message("train-0")


def test_more_groups_than_may_start_together_are_refused(serving: Serving) -> None:
    serving.racks(a_r1="99")
    serving.composite("many", 1)
    for number in range(65):
        serving.group(f"g{number}", 1, parentCompositePodGroupName="many")
    serving.members("g64", 1)
    serving.simulate(code=1)
    assert "Too many: must have at most 64 groups in default/many" in serving.message("g64-0")


def test_the_composite_s_priority_comes_first_and_never_preempting_is_heeded(serving: Serving) -> None:
    serving.racks(a_r1="2")
    serving.pod("low", "2", nodeName="a-r1", priority=0)
    serving.composite("urgent", 1, priority=10, preemptionPolicy="Never")
    serving.part("train", "urgent")
    serving.simulate()
    assert serving.bound() == {"": {"a-r1"}}
    serving.objects[-4]["spec"].pop("preemptionPolicy")
    serving.simulate()
    assert serving.bound()["train"] == {"a-r1"}


@pytest.mark.parametrize(
    ("mode", "evicted"), [pytest.param({"single": {}}, 1, id="single"), pytest.param({"all": {}}, 2, id="all")]
)
@pytest.mark.parametrize("preemptors", [pytest.param(0, id="a pod"), pytest.param(1, id="a gang")])
def test_groups_of_a_composite_are_disrupted_as_its_mode_says(
    serving: Serving, mode: Json, evicted: int, preemptors: int
) -> None:
    serving.racks(a_r1="1", a_r2="1")
    serving.composite("old", 1, disruptionMode=mode)
    for number in range(2):
        serving.group(f"part-{number}", 1, parentCompositePodGroupName="old")
        running: Json = {"nodeName": f"a-r{number + 1}", "schedulingGroup": {"podGroupName": f"part-{number}"}}
        serving.pod(f"part-{number}-0", priority=0, **running)
    if preemptors:
        serving.group("new", 1)
        serving.members("new", 1, priority=10)
    else:
        serving.pod("new", priority=10)
    serving.simulate()
    assert serving.report["summary"].get("Preempted", 0) == evicted
