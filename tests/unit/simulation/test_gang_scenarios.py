"""`evaluate` where pods are of groups: what the guard lets through, and which pods a gang would evict."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL
from extender.client.status_patch import now_text
from extender.plugins.registry import new_registry
from extender.simulation.evaluation import evaluate
from extender.simulation.scenario import BuiltScenario
from extender.simulation.scenario_fields import ScenarioError
from tests.unit.simulation.scenarios import RUNNING, VIP, Json, gang, node, nodes, pod, pod_group, waiting


def _preemption(scenario: Json) -> Json:
    answer: Json = evaluate(BuiltScenario(scenario, new_registry()))["preemption"]
    return answer


def _usable(scenario: Json) -> dict[str, list[str]]:
    """Node -> victims there, and elsewhere, of the candidates that the guard lets kube-scheduler use."""
    found = {}
    for each in _preemption(scenario)["guard"]["candidates"]:
        if each["usable"]:
            elsewhere = [name for names in each.get("elsewhere", {}).values() for name in names]
            found[each["node"]] = [name.removeprefix("default/") for name in [*each["victims"], *elsewhere]]
    return found


def _victims(scenario: Json) -> tuple[list[str], str]:
    """Of the gang, and why it takes none."""
    answer = _preemption(scenario)["gang"]
    names = sorted(each["pod"].removeprefix("default/") for each in answer.get("victims", ()))
    return names, answer.get("whyNot", "")


def _low(name: str, priority: int = 0) -> Json:
    return pod(f"low-{name}", on=name, priority=priority)


NO_HELP = "the gang would not fit even without all pods of lower priority"
LOW = [_low("n1"), _low("n2"), _low("n3")]
LIGHTWEIGHT = {
    "pod-group.scheduling.sigs.k8s.io/name": "train",
    "pod-group.scheduling.sigs.k8s.io/min-available": "3",
}


def _with_labels(members: list[Json], labels: Json) -> list[Json]:
    return [{**each, "metadata": {**each["metadata"], "labels": labels}} for each in members]


def _gated(members: list[Json], gate: str) -> list[Json]:
    return [{**each, "spec": {**each["spec"], "schedulingGates": [{"name": gate}]}} for each in members]


def _extender(**fields: Any) -> Json:
    return {"apiVersion": "gang-extender.dev/v1alpha1", "kind": "ExtenderConfiguration", **fields}


@pytest.mark.parametrize(
    ("scenario", "victims", "why_not"),
    [
        pytest.param(
            waiting("", gang(), 3, nodes=nodes(3), pods=LOW),
            ["low-n1", "low-n2", "low-n3"],
            "",
            id="three nodes of low pods and a gang of three: exactly three victims",
        ),
        pytest.param(
            waiting("", gang(), 3, nodes=nodes(3), pods=[*LOW[:2], _low("n3", priority=10)]),
            [],
            NO_HELP,
            id="one node with a pod of equal priority: no pod goes",
        ),
        pytest.param(
            waiting("", gang(), 3, nodes=nodes(4), pods=LOW),
            ["low-n1", "low-n2"],
            "",
            id="free room is counted first",
        ),
        pytest.param(
            waiting("", gang(members=2), 2, nodes=nodes(2), pods=RUNNING, podGroups=[pod_group("run", 2)]),
            ["run-1", "run-2"],
            "",
            id="a gang for a gang, whole",
        ),
        pytest.param(
            waiting(
                "",
                gang(members=1),
                1,
                nodes=nodes(3),
                pods=[*RUNNING, pod("run-3", "run", on="n3")],
                podGroups=[pod_group("run", 2)],
            ),
            ["run-3"],
            "",
            id="of a gang with a member to spare one goes",
        ),
        pytest.param(
            waiting("", gang(members=1), 1, nodes=nodes(2), pods=RUNNING, podGroups=[pod_group("run", 1)]),
            ["run-1"],
            "",
            id="with a minMember of 1 each is a lone pod",
        ),
        pytest.param(
            waiting("", gang(), 3, nodes=nodes(3), pods=LOW, mayEvict=False),
            ["low-n1", "low-n2", "low-n3"],
            "preemption for whole gangs is off: no permission to evict pods",
            id="no permission: named, and left alone",
        ),
        pytest.param(
            waiting("", gang(), 3, nodes=nodes(3), pods=LOW, extender=_extender(gangPreemption=False)),
            ["low-n1", "low-n2", "low-n3"],
            "preemption for whole gangs is switched off (gangPreemption)",
            id="switched off",
        ),
        pytest.param(
            waiting("", gang(), 3, nodes=nodes(3), pods=LOW, extender=_extender(preemptionDelaySeconds=60)),
            ["low-n1", "low-n2", "low-n3"],
            "the gang waits first for an autoscaler (preemptionDelaySeconds)",
            id="an autoscaler comes first",
        ),
        pytest.param(
            waiting("", gang(preemptionPolicy="Never"), 3, nodes=nodes(3), pods=LOW),
            ["low-n1", "low-n2", "low-n3"],
            "a member has preemptionPolicy Never",
            id="it never preempts",
        ),
        pytest.param(
            waiting("", gang(members=2), 3, nodes=nodes(3), pods=LOW),
            [],
            "fewer pods exist than minMember of 3",
            id="a gang without its quorum evicts no pod",
        ),
        pytest.param(
            waiting("", gang(), 3, nodes=nodes(3), pods=LOW, extender=_extender(schedulerNames=["other"])),
            [],
            "pods name another scheduler: default-scheduler",
            id="a scheduler that the extender does not serve",
        ),
        pytest.param(
            waiting("", _gated(gang(), "scheduling.x-k8s.io/gang"), 3, nodes=nodes(3), pods=LOW),
            ["low-n1", "low-n2", "low-n3"],
            "",
            id="members that our gate holds",
        ),
        pytest.param(
            waiting("", _gated(gang(), "example.com/quota"), 3, nodes=nodes(3), pods=LOW),
            [],
            "scheduling gates of others leave fewer pods than minMember of 3",
            id="members that a foreign gate holds",
        ),
        pytest.param(
            {"pending": gang()[0], "pendingPods": gang()[1:], "nodes": nodes(3), "pods": LOW},
            [],
            "PodGroup not found",
            id="a PodGroup that is not there",
        ),
        pytest.param(
            {
                "pending": _with_labels(gang(), LIGHTWEIGHT)[0],
                "pendingPods": _with_labels(gang(), LIGHTWEIGHT)[1:],
                "nodes": nodes(3),
                "pods": LOW,
            },
            ["low-n1", "low-n2", "low-n3"],
            "",
            id="a group that is labels only",
        ),
    ],
)
def test_which_pods_a_gang_would_evict(scenario: Json, victims: list[str], why_not: str) -> None:
    assert _victims(scenario) == (victims, why_not)
    guard = _preemption(scenario).get("guard")  # kube-scheduler preempts for a pod that fits nowhere, and asks then
    assert guard is None or (guard["verdict"], guard["chosenSet"]) == ("gang_member", [])


@pytest.mark.parametrize(
    ("scenario", "usable", "verdict"),
    [
        pytest.param(
            {"nodes": nodes(3), "pods": [*RUNNING, LOW[2]], "podGroups": [pod_group("run", 2)], "pending": VIP},
            {"n3": ["low-n3"]},
            "reselected",
            id="a running gang of two and a lone pod: the lone pod",
        ),
        pytest.param(
            {"nodes": nodes(2), "pods": RUNNING, "podGroups": [pod_group("run", 2)], "pending": VIP},
            {"n1": ["run-1", "run-2"]},
            "reselected",
            id="no lone pod: both members, never one",
        ),
        pytest.param(
            {
                "nodes": [node("n1", "3")],
                "pods": [pod(f"run-{number}", "run", on="n1") for number in range(3)],
                "podGroups": [pod_group("run", 2)],
                "pending": VIP,
            },
            {"n1": ["run-2"]},
            "reselected",
            id="a gang of two with three members: one",
        ),
        pytest.param(
            {
                "nodes": nodes(2),
                "pods": RUNNING,
                "podGroups": [pod_group("run", 2)],
                "pending": VIP,
                "mayEvict": False,
            },
            {},
            "gang_fraction",
            id="no permission to evict the other member: none",
        ),
        pytest.param(
            {
                "nodes": nodes(2),
                "pods": RUNNING,
                "podGroups": [pod_group("run", 2)],
                "pending": VIP,
                "extender": _extender(gangVictims="surplusOnly"),
            },
            {},
            "gang_fraction",
            id="surplusOnly: a whole gang never goes",
        ),
        pytest.param(
            {
                "nodes": nodes(2),
                "pods": RUNNING,
                "podGroups": [pod_group("run", 2)],
                "pending": VIP,
                "extender": _extender(gangVictims="any"),
            },
            {"n1": ["run-1"], "n2": ["run-2"]},
            "own_choice",
            id="any: as kube-scheduler has it",
        ),
        pytest.param(
            {"nodes": nodes(3), "pods": LOW, "podGroups": [pod_group("run", 2)], "pending": VIP},
            {"n1": ["low-n1"], "n2": ["low-n2"], "n3": ["low-n3"]},
            "own_choice",
            id="no victim is a gang's: kube-scheduler's own choice stands",
        ),
    ],
)
def test_what_the_guard_lets_through(scenario: Json, usable: dict[str, list[str]], verdict: str) -> None:
    assert _usable(scenario) == usable
    answer = _preemption(scenario)
    assert answer["guard"]["verdict"] == verdict
    assert answer["guard"]["chosenSet"] == sorted(usable)
    assert "gang" not in answer


def test_a_node_that_may_not_be_used_stands_behind_with_the_reason() -> None:
    scenario = {"nodes": nodes(3), "pods": [*RUNNING, LOW[2]], "podGroups": [pod_group("run", 2)], "pending": VIP}
    assert _preemption(scenario)["guard"]["candidates"][1:] == [
        {
            "usable": False,
            "node": name,
            "victims": [f"default/{here}"],
            "numPDBViolations": 0,
            "takes": "wholeGangs",
            "brokenGangs": ["default/run"],
            "elsewhere": {other: [f"default/{there}"]},
            "reason": "costlier",
            "message": "another candidate costs less: in budgets, then top priority, then gangs",
        }
        for name, here, other, there in (("n1", "run-1", "n2", "run-2"), ("n2", "run-2", "n1", "run-1"))
    ]
    vetoed = {**scenario, "mayEvict": False, "pods": RUNNING, "nodes": nodes(2)}
    first = _preemption(vetoed)["guard"]["candidates"][0]
    assert (first["gangs"], first["message"]) == (["default/run"], "a fraction of a running gang would be left")


def test_the_gangs_victims_are_told_node_by_node_with_budgets_and_broken_gangs() -> None:
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {POD_GROUP_LABEL: "run"}}},
        "status": {"disruptionsAllowed": 1},
    }
    groups = [pod_group("run", 2)]
    scenario = waiting("", gang(members=2), 2, nodes=nodes(2), pods=RUNNING, podGroups=groups, pdbs=[budget])
    answer = _preemption(scenario)["gang"]
    assert (answer["reason"], answer["message"]) == (
        "InsufficientResources",
        "minMember of 2 does not fit: Insufficient cpu",
    )
    assert answer["nodes"].keys() == {"default/train-0", "default/train-1"}
    assert answer["perNode"] == {"n1": ["default/run-1"], "n2": ["default/run-2"]}
    assert answer["brokenGangs"] == ["default/run"]
    assert (answer["criteria"]["numPDBViolations"], answer["criteria"]["gangsBroken"]) == (1, 1)


def test_pods_that_go_anyway_are_waited_for() -> None:
    going = pod("going", on="n1")
    going["metadata"]["deletionTimestamp"] = now_text()
    answer = _preemption(waiting("", gang(members=1), 1, nodes=nodes(1), pods=[going]))["gang"]
    assert (answer["victims"], answer["awaited"], "whyNot" in answer) == ([], ["default/going"], False)


def test_a_gang_that_fits_evicts_no_pod_and_says_where_it_goes() -> None:
    scenario = waiting("", gang(), 3, nodes=[node("n1", "3")], pods=[])
    assert _preemption(scenario) == {
        "gang": {
            "group": "default/train",
            "minMember": 3,
            "fits": True,
            "nodes": {f"default/train-{number}": "n1" for number in range(3)},
        }
    }


def test_a_gang_of_higher_priority_that_waits_has_its_room_first() -> None:
    first = gang("first", members=2, priority=20)
    scenario = waiting("", gang(members=1), 1, nodes=[node("n1", "2")], pods=[], podGroups=[pod_group("first", 2)])
    scenario["pendingPods"] = first
    answer = _preemption(scenario)["gang"]
    assert (answer["fits"], answer["reason"], answer["whyNot"]) == (False, "ReservedForOthers", NO_HELP)


def test_an_extra_member_of_a_gang_that_runs_is_a_single_pod() -> None:
    extra = pod("extra", "run", priority=100)
    scenario = {"nodes": nodes(3), "pods": [*RUNNING, LOW[2]], "podGroups": [pod_group("run", 2)], "pending": extra}
    answer = _preemption(scenario)
    assert (answer["guard"]["chosenSet"], "gang" in answer) == (["n3"], False)


def test_a_required_level_of_the_topology() -> None:
    rack = "example.com/rack"
    racks = [node("n1", **{rack: "a"}), node("n2", **{rack: "a"}), node("n3", **{rack: "b"})]
    group = pod_group("train", 2)
    group["metadata"]["annotations"] = {"gang-extender.dev/topology-required": "rack"}
    scenario = {
        **waiting("", gang(members=2), 2, nodes=racks, pods=LOW),
        "podGroups": [group],
        "extender": _extender(topology=[{"name": "rack", "nodeLabel": rack}]),
    }
    assert _victims(scenario) == (["low-n1", "low-n2"], "")


def test_a_profile_that_has_coscheduling_itself() -> None:
    """scheduler-plugins' build, and our own in-process scheduler: the profile's plugin is the one that knows the gangs."""
    plugins = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    answer = evaluate(BuiltScenario(waiting("", gang(), 3, nodes=nodes(3), pods=LOW, config=config), new_registry()))
    assert "minMember of 3 does not fit" in answer["fitError"]
    assert len(answer["preemption"]["gang"]["victims"]) == 3
    alone = {"nodes": nodes(1), "pods": [], "pending": VIP, "config": config}
    assert evaluate(BuiltScenario(alone, new_registry()))["bestSet"] == ["n1"]


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param({"nodes": nodes(1), "pods": [LOW[0]], "pending": VIP}, id="that preempts"),
        pytest.param({"nodes": nodes(2), "pods": [LOW[0]], "pending": VIP}, id="that fits"),
    ],
)
def test_a_scenario_without_groups_is_answered_as_ever(scenario: Json) -> None:
    plain = evaluate(BuiltScenario(scenario, new_registry()))
    more = {**scenario, "podGroups": [], "pendingPods": [pod("other")], "mayEvict": False, "extender": _extender()}
    assert evaluate(BuiltScenario(more, new_registry())) == plain


@pytest.mark.parametrize(
    ("more", "error"),
    [
        pytest.param({"podGroups": 3}, "$.podGroups: expected an array", id="no list"),
        pytest.param({"podGroups": [3]}, "$.podGroups[0]: expected an object", id="no object"),
        pytest.param(
            {"podGroups": [pod_group("run", 2), {"spec": {"minMember": 2}}]},
            "$.podGroups[1]: Object missing required field `metadata`",
            id="no metadata",
        ),
        pytest.param({"podGroups": [{"metadata": {}}]}, "$.podGroups[0].metadata.name: required", id="no name"),
        pytest.param(
            {"podGroups": [{"metadata": {"name": "run"}}]},
            "$.podGroups[0].metadata.namespace: required",
            id="no namespace",
        ),
        pytest.param(
            {"podGroups": [{"metadata": {"name": 3}}]},
            "$.podGroups[0].metadata.name: Expected `str`, got `int`",
            id="a name that is a number",
        ),
        pytest.param(
            {"podGroups": [pod_group("run", 2), pod_group("run", 3)]},
            "$.podGroups[1].metadata.name: default/run is there already",
            id="a group twice",
        ),
        pytest.param(
            {"podGroups": [{**pod_group("run", 2), "kind": "Queue"}]},
            "$.podGroups[0].kind: must be PodGroup, not 'Queue'",
            id="another kind",
        ),
        pytest.param(
            {"podGroups": [{**pod_group("run", 2), "apiVersion": "v1"}]},
            "$.podGroups[0].apiVersion: must be one of scheduling.x-k8s.io/v1alpha1, scheduling.k8s.io/v1alpha2, "
            "scheduling.k8s.io/v1beta1, scheduling.sigs.k8s.io/v1alpha1, scheduling.volcano.sh/v1beta1",
            id="another API",
        ),
        pytest.param(
            {"podGroups": [{**pod_group("run", 2), "apiVersion": "scheduling.k8s.io/v1alpha2"}]},
            "$.podGroups[0].apiVersion: scheduling.k8s.io/v1alpha2 counts only with inTreePodGroups in Coscheduling's arguments",
            id="kube-scheduler's own API, which is not asked for",
        ),
        pytest.param(
            {"pendingPods": [pod("late", on="n1")]},
            "$.pendingPods[0].spec.nodeName: these are the pods that wait; those that run go into pods",
            id="a pod that waits on a node",
        ),
        pytest.param(
            {"pendingPods": [pod("late"), {**pod("later"), "metadata": {"name": "later", "uid": "uid-late"}}]},
            "$.pendingPods[1].metadata.uid: 'uid-late' is that of pendingPods[0]",
            id="two pods with one UID",
        ),
        pytest.param(
            {"pendingPods": [{"metadata": {"name": "late"}}]}, "$.pendingPods[0].metadata.uid: required", id="no UID"
        ),
        pytest.param(
            {"pending": {**VIP, "metadata": {**gang()[0]["metadata"], "namespace": ""}}},
            "$.pending.metadata.namespace: required of a pod that names a group",
            id="a member without a namespace",
        ),
        pytest.param(
            {"pendingPods": [{**gang()[0], "metadata": {**gang()[0]["metadata"], "uid": "uid-low-n1"}}]},
            "$.pods[0].metadata.uid: 'uid-low-n1' is that of a pod that waits",
            id="a UID that a running pod has",
        ),
        pytest.param({"mayEvict": "no"}, "$.mayEvict: expected true or false", id="a text for yes or no"),
        pytest.param(
            {"extender": _extender(gangVictims="all")},
            '$.extender:1: gangVictims: Unsupported value: "all": supported values: "wholeOrSurplus", "surplusOnly", "any"',
            id="the extender's configuration",
        ),
    ],
)
def test_bad_input_is_named_with_its_place(more: Json, error: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        BuiltScenario({"nodes": nodes(1), "pods": [LOW[0]], "pending": VIP, **more}, new_registry())
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("minimum", "fits"), [pytest.param(1, True, id="one of two groups fits"), pytest.param(2, False, id="both do not")]
)
def test_a_composite_pod_group_is_asked_with_its_groups(minimum: int, fits: bool) -> None:
    """By the extender's configuration kube-scheduler's own groups count."""
    args = {"name": "Coscheduling", "args": {"inTreePodGroups": True}}
    config = _extender(profiles=[{"schedulerName": "default-scheduler", "pluginConfig": [args]}])
    named = {"namespace": "default"}
    root: Json = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": "a", **named},
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": minimum}}},
    }
    parts: list[Json] = [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, **named},
            "spec": {"parentCompositePodGroupName": "a", "schedulingPolicy": {"gang": {"minCount": 2}}},
        }
        for name in ("a", "b")
    ]
    pods = [pod(f"{group}{n}", schedulingGroup={"podGroupName": group}) for group in ("a", "b") for n in range(2)]
    scenario: Json = {
        "name": "",
        "pending": pods[0],
        "pendingPods": pods,
        "podGroups": [root, *parts],
        "nodes": nodes(3),
        "extender": config,
    }
    answer = _preemption(scenario)["gang"]
    assert (answer["group"], answer["fits"]) == ("default/a", fits)
