"""Which pods wait although they fit, by the arithmetic that checks the end of a fault run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.fault_run.admission import FOREIGN
from tests.e2e.fault_run.kinds import GATES
from tests.e2e.fault_run.liveness import waits_although_it_fits
from tests.e2e.fault_run.volumes import Volumes, volume_of, volume_of_its_own

GANG = "scheduling.x-k8s.io/pod-group"
APART: dict[str, Any] = {"podAntiAffinity": {}}
ZONE, RACK, ROLE = "topology.kubernetes.io/zone", "example.com/rack", "gang-extender.dev/role"


def node(name: str, cpu: int, zone: str = "", rack: str = "", **spec: Any) -> dict[str, Any]:
    labels = {key: value for key, value in ((ZONE, zone), (RACK, rack)) if value}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": str(cpu)}},
    }


def pod(name: str, cpu: int, gang: str = "", on: str = "", role: str = "", **spec: Any) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": str(cpu)}}}
    labels = {key: value for key, value in ((GANG, gang), (ROLE, role)) if value}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": on, **spec}}


def group(name: str, min_member: int, **asked: str) -> dict[str, Any]:
    annotations = {f"gang-extender.dev/{key.replace('_', '-')}": text for key, text in asked.items()}
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"minMember": min_member},
    }


def light(pod: dict[str, Any], name: str, min_member: int, **annotations: str) -> dict[str, Any]:
    """The pod as a member of a group that has no object."""
    prefix = "pod-group.scheduling.sigs.k8s.io/"
    labels = {f"{prefix}name": name, f"{prefix}min-available": str(min_member)}
    said = {f"gang-extender.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels, "annotations": said}}


def ported(name: str) -> dict[str, Any]:
    """A member that wants a port of its node."""
    made = pod(name, 1, "g")
    made["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    return made


def finished(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "status": {"phase": "Succeeded"}}


@pytest.mark.parametrize(
    ("pods", "nodes", "waiting"),
    [
        pytest.param([pod("a", 2)], [node("n", 2)], ["pod default/a"], id="a single pod with room"),
        pytest.param([pod("a", 2), pod("b", 1, on="n")], [node("n", 2)], [], id="with too little of it"),
        pytest.param([pod("a", 2)], [node("n", 2, unschedulable=True)], [], id="on a node that is cordoned"),
        pytest.param([pod("a", 2)], [node("n", 2, taints=[{}])], [], id="on a node with a taint"),
        pytest.param(
            [pod("a", 1), pod("b", 3, on="n")],
            [node("n", 2)],
            [],
            id="on a node that has become smaller than what runs",
        ),
        pytest.param(
            [pod("a", 2), finished(pod("b", 2, on="n"))],
            [node("n", 2)],
            ["pod default/a"],
            id="the pod that ran is done",
        ),
        pytest.param([pod("a", 1, "g"), pod("b", 1, "g")], [node("n", 2)], ["default/g"], id="a gang with room"),
        pytest.param([pod("a", 1, "g"), pod("b", 1, "g")], [node("n", 1)], [], id="with room for half of it"),
        pytest.param([pod("a", 1, "g")], [node("n", 9)], [], id="a gang that lacks a member"),
        pytest.param(
            [pod("a", 1, "g"), pod("b", 1, "g", "n")], [node("n", 2)], ["default/g"], id="the last of a gang that began"
        ),
        pytest.param(
            [pod("a", 1, "g"), finished(pod("b", 1, "g", "n"))],
            [node("n", 2)],
            [],
            id="with one that is done it is too few",
        ),
        pytest.param(
            [pod("a", 1, "g", affinity=APART), pod("b", 1, "g", affinity=APART)],
            [node("n", 9)],
            [],
            id="members that cannot share the one node",
        ),
        pytest.param(
            [ported("a"), ported("b")], [node("n", 9)], [], id="members that want the same port of the one node"
        ),
        pytest.param(
            [pod("a", 1, "g", topologySpreadConstraints=[{}]), pod("b", 1, "g")],
            [node("n", 9)],
            [],
            id="members that are to be spread: counting does not tell",
        ),
        pytest.param(
            [pod("a", 2, priority=10), pod("b", 2, on="n")], [node("n", 2)], ["pod default/a"], id="it could preempt"
        ),
        pytest.param(
            [pod("a", 2, priority=10, preemptionPolicy="Never"), pod("b", 2, on="n")],
            [node("n", 2)],
            [],
            id="it may not preempt",
        ),
        pytest.param(
            [pod("a", 2), pod("b", 2, on="n", priority=10)],
            [node("n", 2)],
            [],
            id="of lower priority than the pod that runs",
        ),
        pytest.param(
            [pod("a", 2, schedulingGates=[FOREIGN, *GATES])], [node("n", 2)], [], id="held back by a foreign gate"
        ),
        pytest.param(
            [pod("a", 2, schedulingGates=[*GATES])], [node("n", 2)], ["pod default/a"], id="held back by our gate"
        ),
        pytest.param([pod("a", 1, "unknown")], [node("n", 9)], [], id="a gang without its PodGroup"),
    ],
)
def test_what_waits_although_it_fits(pods: list[Any], nodes: list[Any], waiting: list[str]) -> None:
    found = waits_although_it_fits(pods, nodes, [group("g", 2)])
    assert [line.partition(":")[0] for line in found] == waiting


def test_a_pod_that_the_configuration_spares_does_not_go() -> None:
    pods, nodes = [pod("a", 2, priority=10), pod("b", 2, on="n")], [node("n", 2)]
    assert waits_although_it_fits(pods, nodes, [], spares=lambda pod, waiting: pod["metadata"]["name"] != "b")
    assert not waits_although_it_fits(pods, nodes, [], spares=lambda pod, waiting: pod["metadata"]["name"] == "b")


RACKS = [node("a1", 2, "a", "r1"), node("a2", 2, "a", "r2"), node("b1", 2, "b", "r1"), node("none", 9)]


@pytest.mark.parametrize(
    ("count", "cpu", "running", "level", "waiting"),
    [
        pytest.param(2, 1, "", "rack", True, id="two that fit into one rack"),
        pytest.param(3, 1, "", "rack", False, id="three that do not: racks of one name in two zones are two"),
        pytest.param(4, 1, "", "zone", True, id="four that fit into one zone"),
        pytest.param(5, 1, "", "zone", False, id="a node without the level's label is in none"),
        pytest.param(5, 1, "", "", True, id="nothing is required"),
        pytest.param(2, 1, "b1", "rack", False, id="one runs, and there is no room beside it for two more"),
        pytest.param(1, 1, "b1", "rack", True, id="one runs, and there is room for one"),
        pytest.param(1, 1, "none", "rack", False, id="one runs where there is no rack"),
    ],
)
def test_one_domain_has_to_hold_it(count: int, cpu: int, running: str, level: str, waiting: bool) -> None:
    pods = [pod(f"m{number}", cpu, "g") for number in range(count)]
    least = count + bool(running)
    if running:
        pods.append(pod("runs", 1, "g", running))
    found = waits_although_it_fits(pods, RACKS, [group("g", least, topology_required=level)])
    assert bool(found) == waiting


@pytest.mark.parametrize(
    ("pods", "room", "waiting"),
    [
        pytest.param(["master", "worker", "worker"], 3, True, id="all are there"),
        pytest.param(["worker", "worker", "worker"], 9, False, id="the master is missing"),
        pytest.param(["master", "worker", "worker"], 2, False, id="there is no room for one of them"),
        pytest.param(["master+", "worker+", "worker"], 1, True, id="a worker is missing"),
        pytest.param(["worker+", "worker+", "worker", "worker"], 9, False, id="three workers make up for no master"),
        pytest.param(["master+", "worker+", "worker+", "worker"], 1, True, id="one more beyond the minima"),
    ],
)
def test_roles(pods: list[str], room: int, waiting: bool) -> None:
    """A + runs, on a node of its own."""
    members = [
        pod(f"m{number}", 1, "g", "full" if role.endswith("+") else "", role.rstrip("+"))
        for number, role in enumerate(pods)
    ]
    nodes = [node("free", room), node("full", 0)]
    assert bool(waits_although_it_fits(members, nodes, [group("g", 3, roles="master=1,worker=2")])) == waiting


@pytest.mark.parametrize(
    ("a", "b", "room", "waiting"),
    [
        pytest.param("..", "..", 4, ["default/a"], id="both wait, and both fit"),
        pytest.param("..", "..", 3, [], id="both wait, and one fits"),
        pytest.param("..", ".", 9, [], id="one lacks a member"),
        pytest.param("..", "", 9, [], id="one has no member"),
        pytest.param("++", ".+", 1, ["default/a"], id="the last of a start"),
        pytest.param("++.", "++", 1, ["default/a"], id="both run, and one has a member more"),
        pytest.param("++.", "+", 1, [], id="one lost a member, and none comes for it"),
    ],
)
def test_groups_that_start_together(a: str, b: str, room: int, waiting: list[str]) -> None:
    pods = [
        pod(f"{name}{number}", 1, name, "full" if state == "+" else "")
        for name, states in (("a", a), ("b", b))
        for number, state in enumerate(states)
    ]
    nodes = [node("free", room), node("full", 0)]
    found = waits_although_it_fits(pods, nodes, [group("a", 2, groups="default/b"), group("b", 2)])
    assert [line.partition(":")[0] for line in found] == waiting


def test_groups_that_start_together_are_not_judged_while_one_has_no_object() -> None:
    pods = [pod(f"a{number}", 1, "a") for number in range(2)]
    assert waits_although_it_fits(pods, [node("n", 9)], [group("a", 2, groups="b")]) == []


@pytest.mark.parametrize(
    ("running", "queued", "policy", "waiting"),
    [
        pytest.param(2, 1, "only-waiting", False, id="half a batch beside a gang that runs"),
        pytest.param(2, 2, "only-waiting", True, id="a whole batch"),
        pytest.param(1, 1, "only-waiting", True, id="the last of a gang that began"),
        pytest.param(2, 1, "once-satisfied", True, id="one more"),
        pytest.param(2, 1, "", True, id="one more, by default"),
    ],
)
def test_match_policies(running: int, queued: int, policy: str, waiting: bool) -> None:
    pods = [pod(f"r{number}", 1, "g", "full") for number in range(running)]
    pods += [pod(f"w{number}", 1, "g") for number in range(queued)]
    nodes = [node("free", 2), node("full", 0)]
    assert bool(waits_although_it_fits(pods, nodes, [group("g", 2, match_policy=policy)])) == waiting


def volume(key: str, *values: str) -> dict[str, Any]:
    here = {"key": key, "operator": "In", "values": list(values)}
    return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}}}


@pytest.mark.parametrize(
    ("volumes", "level", "waiting"),
    [
        pytest.param([], "", True, id="none is made yet"),
        pytest.param([volume(ZONE, "a")], "", True, id="one in a zone with room"),
        pytest.param([{"spec": {}}], "", True, id="one that can be reached from everywhere"),
        pytest.param([volume(ZONE, "c")], "", False, id="one in a zone that is gone"),
        pytest.param([volume(RACK, "r1"), volume(RACK, "r2")], "zone", True, id="two in one zone, which is required"),
        pytest.param([volume(RACK, "r1"), volume(RACK, "r2")], "rack", False, id="two in two racks where it is one"),
    ],
)
@pytest.mark.parametrize("bring", [lambda name: volume_of("zonal"), volume_of_its_own], ids=["ephemeral", "its own"])
def test_volumes_tie_pods_to_nodes(
    volumes: list[dict[str, Any]], level: str, waiting: bool, bring: Callable[[str], dict[str, Any]]
) -> None:
    pods = [pod(name, 1, "g", volumes=[bring(name)]) for name in ("m0", "m1")]
    made = Volumes(
        {f"default/m{number}-data": f"v{number}" for number in range(len(volumes))},
        {f"v{number}": each for number, each in enumerate(volumes)},
    )
    assert bool(waits_although_it_fits(pods, RACKS[:3], [group("g", 2, topology_required=level)], made)) == waiting


@pytest.mark.parametrize(("level", "waiting"), [("", True), ("rack", False)])
def test_a_group_without_an_object_says_it_on_its_pods(level: str, waiting: bool) -> None:
    pods = [light(pod(f"m{number}", 2, ""), "g", 2, topology_required=level) for number in range(2)]
    assert bool(waits_although_it_fits(pods, RACKS[:3], [])) == waiting
