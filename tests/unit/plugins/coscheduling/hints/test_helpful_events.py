"""An event moves the gangs that it can help; the denial of any other stands, and nothing is planned again for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.corev1.toleration import Taint
from extender.api.metav1 import Condition
from extender.plugins.coscheduling.hints.wake_ups import MOST_NOTED
from extender.plugins.coscheduling.waits_for import WaitsFor
from tests.unit.plugins.coscheduling.conftest import LABEL, World, node, pod, pod_group

Make = Callable[..., World]
FULL = node("n1", "1")
TAINTED = structs.replace(FULL, spec=structs.replace(FULL.spec, taints=(Taint(key="a", effect="NoSchedule"),)))
OTHERWISE = structs.replace(FULL, spec=structs.replace(FULL.spec, taints=(Taint(key="a", effect="NoExecute"),)))
OTHER_LABEL = structs.replace(FULL, metadata=structs.replace(FULL.metadata, labels={"hat": "red"}))
LABELLED = structs.replace(FULL, metadata=structs.replace(FULL.metadata, labels={"zone": "a"}))
BEATING = structs.replace(FULL, metadata=structs.replace(FULL.metadata, resource_version="7", annotations={"a": "b"}))
FEATURED = structs.replace(FULL, status=structs.replace(FULL.status, declared_features=("a",)))
RUNNING = pod("other", node_name="n1")
ENDED = structs.replace(RUNNING, status=structs.replace(RUNNING.status, phase="Succeeded"))
GOING = pod("other", node_name="n1", deleting=True)
WAITING = pod("other")


def broken() -> corev1.Node:
    condition = Condition(type="Ready", status="False")
    return structs.replace(FULL, status=structs.replace(FULL.status, conditions=(condition,)))


def on(node_name: str, name: str = "other", cpu: str = "1", **more: Any) -> corev1.Pod:
    return pod(name, cpu=cpu, node_name=node_name, **more)


def terms(kind: str, key: str = "zone", **labels: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(**labels: str) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": labels}}]}


def deny(world: Make, event: Any, **members: Any) -> World:
    """A gang of two that finds no room on the node, as it is before the event, and has been told so."""
    old, _ = event
    w = world([old if isinstance(old, corev1.Node) else FULL])
    if isinstance(old, corev1.Pod) and old.node_name:
        w.on_nodes[old.uid] = old
        w.plugin.on_pod(None, old)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*(pod(f"p{number}", "g", **{"schedulingGates": GATED, **members}) for number in range(2)))
    w.run_tasks()
    w.run_tasks()
    assert "default/g" in w.plugin.manager.denied
    return w


def happens(w: World, old: Any, new: Any) -> None:
    """To the cluster first, as the cache hears of it before the plugins do."""
    if isinstance(new or old, corev1.Node):
        w.nodes.pop((new or old).name, None)
        if new is not None:
            w.nodes[new.name] = new
        w.plugin.on_node(old, new)
        return
    w.on_nodes.pop((new or old).uid, None)
    if new is not None and new.node_name and not new.terminal:
        w.on_nodes[new.uid] = new
    w.plugin.on_pod(old, new)


GATED = [{"name": "scheduling.x-k8s.io/gang"}]
NODES = [
    pytest.param({}, FULL, BEATING, False, id="a heartbeat"),
    pytest.param({}, FULL, node("n1", "1", unschedulable=True), False, id="a cordon"),
    pytest.param({}, node("n1", "1", unschedulable=True), FULL, True, id="an uncordon"),
    pytest.param({}, FULL, TAINTED, False, id="a taint more"),
    pytest.param({}, TAINTED, FULL, True, id="a taint less"),
    pytest.param({}, TAINTED, OTHERWISE, False, id="another taint that they do not tolerate"),
    pytest.param(
        {"tolerations": [{"key": "a", "effect": "NoExecute"}]}, TAINTED, OTHERWISE, True, id="one that they do"
    ),
    pytest.param({}, FULL, node("n1", "500m"), False, id="less to give"),
    pytest.param({}, FULL, node("n1", "2"), True, id="more to give"),
    pytest.param({"cpu": "3"}, FULL, node("n1", "2"), False, id="more to give, and for a member not enough"),
    pytest.param({}, node("n1", "1", pods=3), node("n1", "1", pods=4), True, id="room for more pods"),
    pytest.param({}, FULL, LABELLED, False, id="a label that they do not ask for"),
    pytest.param({"nodeSelector": {"zone": "a"}}, FULL, LABELLED, True, id="the label that they ask for"),
    pytest.param({"nodeSelector": {"zone": "b"}}, FULL, LABELLED, False, id="another value of it"),
    pytest.param({"nodeSelector": {"zone": "a"}}, LABELLED, FULL, False, id="the label that they ask for goes"),
    pytest.param(
        {"nodeSelector": {"zone": "a"}, "cpu": "2"}, FULL, LABELLED, False, id="it comes where they have no room"
    ),
    pytest.param(terms("podAffinity", app="x"), FULL, LABELLED, True, id="a domain of their affinity"),
    pytest.param(terms("podAffinity", app="x"), FULL, OTHER_LABEL, False, id="no domain of their affinity"),
    pytest.param(terms("podAffinity", app="x"), LABELLED, FULL, True, id="no domain of their affinity any more"),
    pytest.param(spread(app="x"), FULL, LABELLED, True, id="a domain of their spread"),
    pytest.param(spread(app="x"), FULL, OTHER_LABEL, False, id="no domain of their spread"),
    pytest.param(spread(app="x"), FULL, TAINTED, True, id="a taint, which may take a domain out of their spread"),
    pytest.param({}, FULL, broken(), False, id="not ready any more"),
    pytest.param({}, broken(), FULL, True, id="ready again"),
    pytest.param({}, FULL, FEATURED, False, id="a feature that no plan looks at"),
    pytest.param({}, None, node("n2"), True, id="a new node"),
    pytest.param({}, None, node("n2", "500m"), False, id="a new node that is too small"),
    pytest.param({"nodeSelector": {"zone": "a"}}, None, node("n2"), False, id="a new node without the label"),
    pytest.param({}, FULL, None, False, id="a node goes"),
    pytest.param(spread(app="x"), FULL, None, True, id="a node goes, and perhaps a domain of their spread"),
]
PODS = [
    pytest.param({}, RUNNING, None, True, id="a pod goes from its node"),
    pytest.param({"cpu": "3"}, RUNNING, None, False, id="a pod goes from a node that is too small for them"),
    pytest.param(
        {"nodeSelector": {"zone": "b"}}, RUNNING, None, False, id="a pod goes from a node that is not for them"
    ),
    pytest.param({}, RUNNING, ENDED, True, id="a pod ends"),
    pytest.param({}, ENDED, None, False, id="a pod that had ended is cleaned up"),
    pytest.param({}, ENDED, ENDED, False, id="the status of an ended pod"),
    pytest.param({}, RUNNING, GOING, False, id="a pod is told to go, and is there still"),
    pytest.param({}, RUNNING, on("n1", cpu="500m"), False, id="a pod asks for less, and not for enough less"),
    pytest.param({"cpu": "500m"}, RUNNING, on("n1", cpu="500m"), True, id="a pod asks for enough less"),
    pytest.param({}, RUNNING, on("n1", cpu="2"), False, id="a pod asks for more"),
    pytest.param({}, WAITING, None, False, id="a pod goes that was on no node"),
    pytest.param({}, None, on("n1", "another"), False, id="a pod comes"),
    pytest.param(
        terms("podAffinity", app="x"), None, on("n1", "x", labels={"app": "x"}), True, id="one they want comes"
    ),
    pytest.param(terms("podAffinity", app="x"), None, on("n1", "y", labels={"app": "y"}), False, id="another comes"),
    pytest.param(spread(app="x"), None, on("n1", "x", labels={"app": "x"}), True, id="one that counts for them comes"),
    pytest.param(
        spread(app="x"),
        on("n1", "x", labels={"app": "x"}),
        on("n1", "x", labels={"app": "y"}),
        True,
        id="counts no more",
    ),
    pytest.param(
        {**terms("podAntiAffinity", app="x"), "cpu": "3"},
        on("n1", "x", labels={"app": "x"}),
        None,
        True,
        id="one they avoid goes",
    ),
    pytest.param(
        {"cpu": "3"}, on("n1", **terms("podAntiAffinity", **{LABEL: "g"})), None, True, id="one that avoids them goes"
    ),
    pytest.param(
        {**terms("podAffinity", app="x"), "cpu": "3"},
        on("n1", "x", labels={"app": "x"}),
        None,
        True,
        id="one they want goes: where no such pod is left, they may go anywhere",
    ),
    pytest.param(
        {**spread(app="x"), "cpu": "3"},
        on("n1", "x", labels={"app": "x"}),
        on("n1", "x", labels={"app": "x"}, deleting=True),
        True,
        id="one that counts for them is told to go",
    ),
]


@pytest.mark.parametrize(("members", "old", "new", "helps"), [*NODES, *PODS])
def test_what_helps_voids_verdicts_and_nothing_else_does(
    world: Make, members: dict[str, Any], old: Any, new: Any, helps: bool
) -> None:
    w = deny(world, (old, new), **members)
    before = w.plugin.manager.notes.epoch
    happens(w, old, new)
    assert ("default/g" not in w.plugin.manager.denied) is helps
    assert (w.plugin.manager.notes.epoch != before) is helps
    assert ("plan" in w.tasks) is helps


def test_a_gang_that_kube_scheduler_has_refused_is_woken_by_what_may_help_any_pod(world: Make) -> None:
    """A label of which we know nothing may be what an affinity of its configuration asks for."""
    w = deny(world, (FULL, LABELLED))
    w.plugin.manager.queue.add_unschedulable("default/g", WaitsFor((), anything=True))
    happens(w, FULL, BEATING)
    assert "default/g" in w.plugin.manager.denied
    happens(w, BEATING, LABELLED)
    assert "default/g" not in w.plugin.manager.denied


def test_a_node_leaves_the_domain_of_a_pod_that_avoids_the_gang(world: Make) -> None:
    """No hint of kube-scheduler's says so: the terms are the other pod's."""
    w = deny(world, (LABELLED, FULL))
    happens(w, None, on("n1", **terms("podAntiAffinity", **{LABEL: "g"})))
    assert "default/g" in w.plugin.manager.denied
    happens(w, LABELLED, FULL)
    assert "default/g" not in w.plugin.manager.denied


def test_a_pod_goes_from_a_node_that_still_has_as_many_as_it_takes(world: Make) -> None:
    w = deny(world, (node("n1", "4", pods=1), None))
    happens(w, None, on("n1", "first"))
    happens(w, None, on("n1", "second"))
    happens(w, on("n1", "second"), None)
    assert "default/g" in w.plugin.manager.denied
    happens(w, on("n1", "first"), None)
    assert "default/g" not in w.plugin.manager.denied


def test_a_pod_goes_from_a_node_whose_other_pods_may_be_evicted_for_the_gang(world: Make) -> None:
    w = deny(world, (node("n1", "1"), None), priority=5)
    happens(w, None, on("n1", "lower", cpu="1", priority=4))
    happens(w, None, on("n1", "other", cpu="1", priority=5))
    happens(w, on("n1", "other", cpu="1", priority=5), None)
    assert "default/g" not in w.plugin.manager.denied


def test_what_frees_some_room_and_not_enough_makes_no_plan(world: Make) -> None:
    w = deny(world, (RUNNING, None))
    plans = w.plans
    happens(w, RUNNING, None)
    w.run_tasks()
    assert "default/g" in w.plugin.manager.denied
    assert w.plans == plans, "one node has room for one of two members: counting shows that"
    happens(w, FULL, node("n1", "2"))
    w.run_tasks()
    assert w.plans == plans + 1
    assert {place.node_name for place in w.plugin.manager.slots} == {"n1"}


def test_an_event_while_a_gang_is_planned_is_judged_after_its_refusal(world: Make) -> None:
    w = world([FULL])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    grown = node("n1", "2")

    def meanwhile(function: Callable[..., object], *args: object) -> object:
        found = function(*args)
        if w.nodes["n1"] is FULL:
            happens(w, FULL, grown)
        return found

    w.connect(offload=meanwhile)
    w.create(*(pod(f"p{number}", "g", schedulingGates=GATED) for number in range(2)))
    w.run_tasks()
    assert len(list(w.plugin.manager.slots)) == 2


def test_events_that_are_too_many_to_keep_wake_every_gang(world: Make) -> None:
    w = deny(world, (FULL, BEATING))
    w.plugin.rounds._wake_ups.planning = True  # nothing is judged meanwhile
    for _ in range(MOST_NOTED + 1):
        happens(w, FULL, OTHER_LABEL)
    w.plugin.rounds._wake_ups.planning = False
    assert "default/g" in w.plugin.manager.denied
    assert w.plugin.rounds._wake_ups.judge()
    assert "default/g" not in w.plugin.manager.denied
    assert not w.plugin.rounds._wake_ups._noted
