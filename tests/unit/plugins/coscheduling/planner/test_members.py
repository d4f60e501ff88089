"""Which members are alike, and how the minima of roles and groups are met before all others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling.planner import Cause, Request
from extender.plugins.coscheduling.planner.members import (
    classes,
    looks_at_others,
    plan_minima,
    relevant_labels,
    shape_of,
    topology_keys,
)
from extender.plugins.coscheduling.planner.request import Minimum, NoPlacement, Placement
from tests.objects import HOSTNAME, ZONE, PodBuilder, make_pod
from tests.unit.backend.objects import FakeClock
from tests.unit.plugins.coscheduling.planning import GANG, JUDGE, existing, gang, member, node, placed, plan, refused

RESTARTS = member().container(restartPolicyRules=[{"action": "RestartAllContainers"}])


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        pytest.param(member(), member().label("index", "1"), True, id="a label that no selector looks at"),
        pytest.param(member(), member(cpu=2), False, id="another request"),
        pytest.param(member(), member().toleration("gpu", operator="Exists"), False, id="another toleration"),
        pytest.param(member(), member().node_selector({"a": "b"}), False, id="another node selector"),
        pytest.param(member(), member().namespace("other"), False, id="another namespace"),
        pytest.param(member(), RESTARTS, False, id="a feature of the kubelet that the other needs"),
        pytest.param(
            member().pod_affinity(HOSTNAME, GANG),
            member().pod_affinity(HOSTNAME, GANG).label("index", "1"),
            False,
            id="labels count where members look at others",
        ),
    ],
)
def test_members_that_any_node_treats_alike(one: PodBuilder, other: PodBuilder, alike: bool) -> None:
    assert (shape_of(one.name("a").info()) == shape_of(other.name("b").info())) == alike


def test_of_the_labels_only_the_relevant_ones_count_where_they_are_known() -> None:
    one, other = member().label("index", "0").name("a").info(), member().label("index", "1").name("b").info()
    assert shape_of(one, frozenset({"gang"})) == shape_of(other, frozenset({"gang"}))
    assert shape_of(one, frozenset({"index"})) != shape_of(other, frozenset({"index"}))


@pytest.mark.parametrize(
    ("of", "looks"),
    [
        pytest.param(member(), False, id="plain"),
        pytest.param(member().preferred_pod_affinity(1, HOSTNAME, GANG), False, id="a preference moves none"),
        pytest.param(member().pod_affinity(HOSTNAME, GANG), True, id="affinity"),
        pytest.param(member().spread_constraint(1, ZONE, "DoNotSchedule", GANG), True, id="a spread that must hold"),
        pytest.param(member().spread_constraint(1, ZONE, "ScheduleAnyway", GANG), False, id="one that need not"),
        pytest.param(member().host_port(80), True, id="a port"),
        pytest.param(member().pvc("data"), True, id="a claim"),
        pytest.param(member().volume("v", emptyDir={}), False, id="a volume of its own"),
        pytest.param(member().volume("v", iscsi={"iqn": "x"}), True, id="a disk that pods of a node do not share"),
        pytest.param(member().volume("v", cinder={"volumeID": "x"}), True, id="a disk of which a node has so many"),
    ],
)
def test_whether_members_change_where_the_next_can_go(of: PodBuilder, looks: bool) -> None:
    assert looks_at_others(of.name("p").info()) == looks


def test_the_labels_and_keys_that_selectors_look_at() -> None:
    shy = existing("shy", "n1").pod_anti_affinity(HOSTNAME, {"matchLabels": {"tier": "web"}}).obj()
    snapshot = HypotheticalSnapshot([node("n1").info(shy)])
    spread = member().spread_constraint(1, ZONE, "DoNotSchedule", GANG).name("m").info()
    assert relevant_labels([spread], snapshot) == {"gang", "tier"}
    assert topology_keys([spread]) == {ZONE}


def test_classes_come_with_the_largest_first_and_keep_what_each_member_may_not_have() -> None:
    small, large = gang(2, member()), gang(1, member(cpu=2), "large")
    request = Request([*small, *large], 3, excluded=frozenset({("m1", "n1")}))
    found = classes(request, None, JUDGE)
    assert [[info.pod.name for info in of.members] for of in found] == [["large0"], ["m1"], ["m0"]]
    assert [set(of.excluded) for of in found] == [set(), {"n1"}, set()]


NODES = [node("n1", cpu=2).info()]
MASTERS = Minimum(frozenset({"a0"}), 1, "role master")
WORKERS = Minimum(frozenset({"b0", "b1", "b2"}), 1, "role worker")


def planned(minima: Sequence[Minimum], nodes: Sequence[object] = NODES, master: int = 1) -> object:
    members = [*gang(3, member(), "b"), *gang(1, member(cpu=master), "a")]
    return plan(nodes, members, needed=2, minima=minima)  # type: ignore[arg-type]


def test_a_role_s_minimum_is_met_before_members_that_come_first_in_line() -> None:
    assert set(placed(planned([MASTERS, WORKERS]))) == {"a0", "b0"}  # type: ignore[arg-type]


def test_members_beyond_the_minima_come_as_far_as_they_fit() -> None:
    assert set(placed(planned([MASTERS, WORKERS], [node("n1", cpu=3).info()]))) == {"a0", "b0", "b1"}  # type: ignore[arg-type]


def test_a_verdict_names_the_minimum_that_does_not_even_fit_alone() -> None:
    assert refused(planned([MASTERS, WORKERS], master=3)).reason == "role master: Insufficient cpu"  # type: ignore[arg-type]


def test_fewer_members_than_a_minimum_needs_are_not_planned() -> None:
    verdict = refused(planned([Minimum(frozenset({"a0"}), 2)]))  # type: ignore[arg-type]
    assert (verdict.cause, verdict.reason) == (Cause.MEMBERS, "not enough members")


def test_shapes_of_pods_with_ephemeral_volumes_read_alike() -> None:
    scratch = make_pod().volume("scratch", ephemeral={"volumeClaimTemplate": {"spec": {}}})
    assert shape_of(scratch.name("a").info()) == shape_of(scratch.name("b").info())


@pytest.mark.parametrize(
    ("core_fits", "given"),
    [
        pytest.param(
            False, [(4, 1.0), (2, 1.0), (2, 0.5)], id="nothing fits, and the role that lacks room is looked for"
        ),
        pytest.param(True, [(4, 1.0), (2, 1.0), (2, 0.5)], id="the minima fit, and the others get what is left"),
    ],
)
def test_all_plans_for_minima_share_the_budget_of_one(core_fits: bool, given: list[tuple[int, float]]) -> None:
    """The plan of all members is given half, for there are fewer to try after it, and takes all that it is given; the others take half."""
    clock, asked = FakeClock(), list[tuple[int, float]]()
    members = [*gang(2, member(), "a"), *gang(2, member(), "b")]
    role = Minimum(frozenset({"a0", "a1"}), 2, "role a")

    def plan_one(request: Request) -> Placement | NoPlacement:
        clock.step(request.budget_seconds * (0.5 if asked else 1.0))
        asked.append((len(request.members), request.budget_seconds))
        if core_fits and len(asked) == 2:
            return Placement({info.pod.uid: "n1" for info in request.members})
        return NoPlacement("no room", 0, request.needed, Cause.NODES)

    plan_minima(Request(members, 2, minima=(role,), budget_seconds=2.0, clock=clock), plan_one)
    assert asked == given


def test_where_no_fewer_members_would_do_their_plan_is_given_all_the_time() -> None:
    asked: list[float] = []
    members = gang(2, member(), "a")

    def plan_one(request: Request) -> Placement | NoPlacement:
        asked.append(request.budget_seconds)
        return Placement({info.pod.uid: "n1" for info in request.members})

    minima = (Minimum(frozenset({"a0", "a1"}), 2, "role a"),)
    plan_minima(Request(members, 2, minima=minima, budget_seconds=2.0, clock=FakeClock()), plan_one)
    assert asked == [2.0]
