"""A gang that is not there yet: would it fit, where, and if not, what is missing. Nothing is left of the question."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from extender.api import codec, schedulingv1alpha1
from extender.client.interface import PODS
from extender.config.defaults import whole_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, TopologyLevel
from extender.plugins.coscheduling.backfill.vain_turns import AskedRoom
from extender.plugins.coscheduling.questions.one_at_a_time import OneAtATime
from extender.plugins.coscheduling.report.gang_status import OF_OTHERS
from extender.plugins.coscheduling.report.outlook import GangOutlook, WhatIf
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservation
from extender.scheduler.interface import WHAT_IF, BusyError, QuestionError
from tests.unit.scheduler.conftest import GROUP_LABEL, Bench, running

RACKS = (TopologyLevel("rack", "example.com/rack"),)
POD_GROUP = f"{schedulingv1alpha1.GROUP}/{schedulingv1alpha1.VERSION}"


def pod(name: str, group: str = "g", cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    labels = {GROUP_LABEL: group} if group else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **spec}}


def pods(count: int, **more: Any) -> list[dict[str, Any]]:
    return [pod(f"w-{number}", **more) for number in range(count)]


def with_label(key: str) -> dict[str, Any]:
    made = pod("a", group="")
    return {**made, "metadata": {**made["metadata"], "labels": {key: "x"}}}


def pod_group(
    name: str = "g", minimum: int = 2, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    metadata = {"name": name, "annotations": annotations or {}}
    return {"apiVersion": POD_GROUP, "kind": "PodGroup", "metadata": metadata, "spec": {"minMember": minimum, **spec}}


def ask(bench: Bench, pods: list[dict[str, Any]], *groups: dict[str, Any]) -> WhatIf:
    body = json.dumps({"pods": pods, "podGroups": groups}).encode()
    found = bench.scheduler.pages()[WHAT_IF](body)
    assert isinstance(found, WhatIf)
    return found


def gang(bench: Bench, pods: list[dict[str, Any]], *groups: dict[str, Any]) -> GangOutlook:
    [found] = ask(bench, pods, *groups).gangs
    return found


def nodes(outlook: GangOutlook) -> dict[str, str]:
    return {place.member: place.node for place in outlook.places}


def trace(bench: Bench) -> dict[str, object]:
    """All that a gang that is planned leaves behind."""
    coscheduling = bench.scheduler._dependencies.coscheduling
    manager, overlays = coscheduling.manager, coscheduling.rounds.requests.overlays
    return {
        "slots": [repr(slot) for slot in manager.slots],
        "groups": {key: repr(group.last_diagnosis) for key, group in manager.groups.items()},
        "queue": repr(vars(manager.queue)),
        "denied": repr(vars(manager.denied)),
        "gang sets": repr(vars(manager.gang_set_index)),
        "composites": repr(vars(manager.composites)),
        "overlays": list(overlays._overlays),
        "followers": len(manager.slots._followers),
        "labels read": [id(pod) for pod, _ in manager.labels._read.values()],
        "analyses": list(coscheduling.report.analyses._found),
        "pods": len(bench.store(PODS).list()),
    }


@pytest.fixture
def racks() -> Iterator[Bench]:
    with running(ExtenderConfiguration(topology=RACKS)) as made:
        made.until(made.may_evict, "evictions are allowed")
        for number in range(4):
            made.node(f"n{number}", cpu="2", labels={"example.com/rack": f"r{number // 2}"})
        yield made


def test_a_gang_that_fits_is_told_where(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.node("n1", cpu="9")
    found = gang(bench, pods(11), pod_group(minimum=11))
    assert (found.fits, found.reason, found.needed, found.members) == (True, "", 11, 11)
    assert set(nodes(found)) == {f"w-{number}" for number in range(11)}
    assert sorted(nodes(found).values()) == ["n0"] * 2 + ["n1"] * 9


def test_a_gang_that_does_not_fit_is_told_what_is_missing_and_what_would_do(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    found = gang(bench, pods(3), pod_group(minimum=3))
    assert (found.fits, found.places) == (False, ())
    assert found.reason == "minMember of 3 does not fit: Insufficient cpu"
    assert found.shortfall is not None
    assert (found.shortfall.placed, found.shortfall.needed, found.shortfall.missing) == (2, 3, "1")
    assert [each.text for each in found.relaxations] == [
        "minMember 2 instead of 3",
        "1 more node with cpu 2, like n0",
    ]


def test_a_rack_that_is_required_counts(racks: Bench) -> None:
    asked = pod_group(minimum=5, annotations={"gang-extender.dev/topology-required": "rack"})
    found = gang(racks, pods(5), asked)
    assert (found.fits, found.reason) == (
        False,
        "minMember of 5 does not fit: no single rack takes it: Insufficient cpu",
    )
    assert "without topology-required rack" in [each.text for each in found.relaxations]
    smaller = gang(racks, pods(4), {**asked, "spec": {"minMember": 4}})
    assert (smaller.fits, smaller.domain) == (True, "r0")


@pytest.mark.parametrize("annotation", ["topology-required", "topology-preferred", "topology-slice"])
def test_a_level_that_is_not_configured_is_no_lack_of_room(racks: Bench, annotation: str) -> None:
    found = gang(racks, pods(2), pod_group(annotations={f"gang-extender.dev/{annotation}": "rak"}))
    assert found.reason == (
        'minMember of 2 does not fit: topology level "rak" is not configured: the key `topology` has the level rack'
    )
    assert (found.preemption, found.shortfall, found.relaxations) == (None, None, ())


def test_places_of_others_are_in_the_way_and_are_named(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod_group("first", 2)
    waiting = [bench.pod(f"f{number}", "first") for number in range(2)]
    assert bench.filter(waiting[0], "n0").node_names == ["n0"]
    found = gang(bench, pods(2), pod_group())
    assert (found.fits, found.reserved_for) == (False, ("default/first",))


def test_the_gangs_that_wait_before_it_are_counted(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    for name, priority in (("old", 0), ("low", -5)):
        bench.pod_group(name, 3)
        members = [bench.pod(f"{name}{number}", name, priority=priority) for number in range(3)]
        assert not bench.filter(members[0], "n0").node_names
    assert gang(bench, pods(1), pod_group(minimum=1)).ahead == 1


def test_whose_room_it_would_take(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod("low", cpu="2", node="n0", priority=-1)
    found = gang(bench, pods(2, priority=5), pod_group())
    assert (found.fits, found.priority) == (False, 5)
    assert found.preemption is not None
    assert [(each.pod, each.node) for each in found.preemption.victims] == [("default/low", "n0")]
    assert {place.node for place in found.places_then} == {"n0"}
    assert [pod.name for pod in bench.store(PODS).list()] == ["low"]


def test_room_that_is_held_by_its_equals_is_not_taken(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod("equal", cpu="2", node="n0", priority=5)
    found = gang(bench, pods(2, priority=5), pod_group())
    assert found.preemption is not None
    assert (found.preemption.victims, found.preemption.why_not) == (
        (),
        "the gang would not fit even without all pods of lower priority",
    )


def test_a_tenant_is_told_no_name_of_another_namespace(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod("hidden", cpu="1", node="n0", priority=-1, namespace="team-b")
    bench.pod("own", cpu="1", node="n0", priority=-1, namespace="team-a")
    of_team = [{**each, "metadata": {**each["metadata"], "namespace": "team-a"}} for each in pods(2, priority=5)]
    group = pod_group()
    group["metadata"]["namespace"] = "team-a"
    body = json.dumps({"pods": of_team, "podGroups": [group]}).encode()
    page = bench.scheduler.pages()[WHAT_IF]
    told, whole = page(body, "team-a"), page(body)
    assert isinstance(told, WhatIf)
    assert isinstance(whole, WhatIf)
    [found], [known] = told.gangs, whole.gangs
    assert found.preemption is not None
    assert known.preemption is not None
    assert {each.pod for each in found.preemption.victims} == {OF_OTHERS, "team-a/own"}
    assert {each.pod for each in known.preemption.victims} == {"team-b/hidden", "team-a/own"}
    assert "team-b" not in codec.encode(told).decode()
    assert {place.node for place in found.places_then} == {"n0"}


@pytest.mark.parametrize(
    ("pods", "groups", "place"),
    [
        pytest.param(pods(1), [], "pods[0].metadata.namespace", id="a pod of the default namespace"),
        pytest.param([], [pod_group()], "podGroups[0].metadata.namespace", id="a PodGroup of it"),
        pytest.param([], [{"kind": "PodGroup"}], "podGroups[0].metadata.namespace", id="one without metadata"),
        pytest.param([], [{"metadata": "x"}], "podGroups[0].metadata.namespace", id="one with nonsense"),
    ],
)
def test_a_tenant_asks_about_its_own_namespace_alone(
    bench: Bench, pods: list[dict[str, Any]], groups: list[dict[str, Any]], place: str
) -> None:
    body = json.dumps({"pods": pods, "podGroups": groups}).encode()
    with pytest.raises(QuestionError, match=re.escape(f"the only one that the caller may see - at `$.{place}`")):
        bench.scheduler.pages()[WHAT_IF](body, "team-a")


@pytest.fixture
def patient() -> Iterator[Bench]:
    """A refusal is of no shorter life than the test."""
    profile = whole_profile(coscheduling=CoschedulingArgs(denied_pg_expiration_time_seconds=3600))
    with running(ExtenderConfiguration(profiles=(profile,))) as made:
        made.until(made.may_evict, "evictions are allowed")
        made.until(made.has_noticed_that_it_leads, "it leads")
        yield made


@pytest.mark.parametrize("priority", [-7, 0, 7, 2_000_000_000])
def test_nothing_is_left_of_a_question(patient: Bench, priority: int) -> None:
    bench = patient
    bench.node("n0", cpu="2")
    bench.pod_group("waits", 3)
    members = [bench.pod(f"m{number}", "waits") for number in range(3)]
    assert not bench.filter(members[0], "n0").node_names
    bench.pod_group("planned", 1)
    planned = bench.pod("p0", "planned")
    assert bench.filter(planned, "n0").node_names == ["n0"]
    bench.flush()
    before = trace(bench)
    for count in (1, 2, 40):
        gang(bench, pods(count, priority=priority), pod_group(minimum=count))
        gang(bench, pods(count, group="waits", priority=priority), pod_group("waits", count))
    gang(bench, pods(4, group="waits"))
    assert trace(bench) == before


def test_pods_of_a_pod_group_that_is_there_ask_for_what_it_says(bench: Bench) -> None:
    """It is not the gang that is there already: that one's places are no places of this one."""
    bench.node("n0", cpu="4")
    bench.pod_group("there", 3)
    for number in range(3):
        bench.pod(f"m{number}", "there", node="n0")
    found = gang(bench, pods(3, group="there"))
    assert (found.groups, found.min_member, found.fits) == (("default/there",), 3, False)


def test_places_that_a_gang_of_the_same_name_is_promised_are_not_its_own(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod_group("there", 2)
    members = [bench.pod(f"m{number}", "there") for number in range(2)]
    assert bench.filter(members[0], "n0").node_names == ["n0"]
    found = gang(bench, pods(2, group="there"))
    assert (found.fits, found.reserved_for) == (False, ("default/there",))


def test_nodes_that_are_kept_free_for_another_gang_are_not_for_this_one(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    reservations = bench.scheduler._dependencies.coscheduling.rounds.reservations
    kept = BackfillReservation(
        "default/first", frozenset({"default/first"}), 0, "cluster", frozenset({"n0"}), 0.0, math.inf, AskedRoom()
    )
    reservations.current = kept
    assert not gang(bench, pods(2), pod_group()).fits
    assert gang(bench, pods(2, priority=1), pod_group()).fits


def test_groups_that_start_together_are_asked_about_as_one(bench: Bench) -> None:
    bench.node("n0", cpu="3")
    both = {"gang-extender.dev/groups": "default/a,default/b"}
    asked = [pod_group("a", 2, both), pod_group("b", 2, both)]
    members = [pod(f"{name}{number}", name) for name in "ab" for number in range(2)]
    found = gang(bench, members, *asked)
    assert (found.groups, found.needed, found.fits) == (("default/a", "default/b"), 4, False)
    alone = ask(bench, members, pod_group("a", 2), pod_group("b", 2))
    assert [(each.groups, each.fits) for each in alone.gangs] == [(("default/a",), True), (("default/b",), True)]


@pytest.mark.parametrize(
    ("asked", "groups", "reason"),
    [
        pytest.param(pods(2), [pod_group(minimum=3)], "fewer pods exist than minMember of 3", id="too few pods"),
        pytest.param(pods(2), [], "PodGroup not found", id="a PodGroup that is nowhere"),
        pytest.param(
            pods(2, schedulingGates=[{"name": "example.com/quota"}]),
            [pod_group()],
            "scheduling gates of others leave fewer pods",
            id="a gate of others",
        ),
        pytest.param(
            pods(2),
            [pod_group(annotations={"gang-extender.dev/groups": "default/other"})],
            "PodGroup default/other, which it ",
            id="another group that is not among them",
        ),
        pytest.param(pods(2), [pod_group(minResources={"cpu": "9"})], "resource gap: cpu", id="minResources"),
    ],
)
def test_why_a_gang_would_not_be_planned_at_all(
    bench: Bench, asked: list[dict[str, Any]], groups: list[dict[str, Any]], reason: str
) -> None:
    bench.node("n0", cpu="4")
    found = gang(bench, asked, *groups)
    assert (found.fits, found.reason[: len(reason)]) == (False, reason)


def test_a_scheduler_that_is_not_served_is_said(bench: Bench) -> None:
    with running(ExtenderConfiguration(scheduler_names=("gang-scheduler",))) as made:
        made.node("n0")
        found = gang(made, pods(2), pod_group())
        assert (found.fits, found.notes) == (
            True,
            (
                "pods name the scheduler default-scheduler, which is not served here: asked as if it were gang-scheduler",
            ),
        )


def test_each_scheduler_that_is_served_has_its_gangs() -> None:
    with running(ExtenderConfiguration(scheduler_names=("a", "b"))) as made:
        made.node("n0")
        found = gang(made, pods(2, schedulerName="b"), pod_group())
        assert (found.fits, found.notes) == (True, ())
        unnamed = gang(made, pods(2, schedulerName=""), pod_group())
        assert (unnamed.fits, unnamed.notes) == (True, ())


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(b"{", "Input data was truncated", id="no JSON"),
        pytest.param({}, "missing required field `pods`", id="nothing asked"),
        pytest.param({"pods": []}, "wanted: 1 to 5 pods, the most that can start together - at `$.pods`", id="no pods"),
        pytest.param({"pods": pods(6)}, "wanted: 1 to 5 pods", id="more than maxHeldBinds"),
        pytest.param({"pods": pods(1), "pod": 1}, "unknown field `pod`", id="an unknown field"),
        pytest.param(
            {"pods": [pod("a", cpu="much")], "podGroups": [pod_group(minimum=1)]}, "$.pods[0].spec", id="a quantity"
        ),
        pytest.param({"pods": [pod("")]}, "- at `$.pods[0].metadata.name`", id="no name"),
        pytest.param({"pods": [pod("a\nb")]}, "- at `$.pods[0].metadata.name`", id="a line break in a name"),
        pytest.param(
            {"pods": [pod("a", nodeName="n0")]}, "on no node - at `$.pods[0].spec.nodeName`", id="a pod on a node"
        ),
        pytest.param(
            {"pods": [pod("a", priorityClassName="high")]}, "- at `$.pods[0].spec.priority`", id="a class, no number"
        ),
        pytest.param(
            {"pods": [with_label("leaderworkerset.sigs.k8s.io/group-key")]},
            "the key leaderworkerset.sigs.k8s.io/group-key counts only with `groupSources: [{preset: lws}]`",
            id="a preset that is not configured",
        ),
        pytest.param(
            {"pods": [pod("a", group="", schedulingGroup={"podGroupName": "g"})]},
            "spec.schedulingGroup counts only with `inTreePodGroups`",
            id="groups of kube-scheduler's own, which are not read",
        ),
        pytest.param({"pods": [pod("a", group="")]}, "of no gang: nothing in it names a PodGroup", id="no gang"),
        pytest.param({"pods": pods(1), "podGroups": [{"kind": "Job"}]}, "- at `$.podGroups[0]`", id="no PodGroup"),
        pytest.param(
            {"pods": pods(1), "podGroups": [pod_group(), pod_group("h"), pod_group("i", minimum=-1)]},
            "minMember",
            id="a minMember of -1",
        ),
        pytest.param(
            {"pods": pods(1), "podGroups": [pod_group(annotations={"gang-extender.dev/match-policy": "maybe"})]},
            "gang-extender.dev/match-policy: ",
            id="an annotation that says nothing",
        ),
        pytest.param({"pods": pods(1), "podGroups": [pod_group()] * 33}, "- at `$.podGroups`", id="too many groups"),
    ],
)
def test_nonsense_is_refused_by_its_place(body: Any, text: str) -> None:
    with running(ExtenderConfiguration(max_held_binds=5)) as bench, pytest.raises(QuestionError) as refused:
        bench.scheduler.pages()[WHAT_IF](body if isinstance(body, bytes) else json.dumps(body).encode())
    assert text in str(refused.value)


def test_one_question_at_a_time(bench: Bench) -> None:
    what_if = bench.scheduler._dependencies.coscheduling.what_if
    what_if.one_at_a_time = OneAtATime(wait_seconds=0.01)
    entered, leave = threading.Event(), threading.Event()

    def slow() -> None:
        with what_if.one_at_a_time.turn():
            entered.set()
            leave.wait(5)

    other = threading.Thread(target=slow)
    other.start()
    assert entered.wait(5)
    try:
        with pytest.raises(BusyError, match="another question is being answered"):
            ask(bench, pods(2), pod_group())
    finally:
        leave.set()
        other.join(5)
