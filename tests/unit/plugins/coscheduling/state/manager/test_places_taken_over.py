"""Which member may have the place of another, or one that was kept for members to come, and what happens as such members come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.keys import JOB_INDEX, JOBSET_INDEX, ROLES
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL
from extender.plugins.coscheduling.state.group import Gathering, Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import make_pod, make_pod_group
from tests.unit.plugins.coscheduling.conftest import LABEL, pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, cut_short, place

JOB = "c2"  # the UID of a controller
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": JOB, "controller": True}
SPARK_ROLE = "spark-role"


def member(name: str, *, role: str = "", rank: int | None = None, job: int | None = None, **more: Any) -> corev1.Pod:
    labels = {LABEL: "g"}
    if role:
        labels[ROLE_LABEL] = role
    if rank is not None:
        labels[str(JOB_INDEX)] = str(rank)
    if job is not None:
        labels[str(JOBSET_INDEX)] = str(job)
    return pod(name, labels={**labels, **more.pop("labels", {})}, **more)


def slot_for(made: corev1.Pod, **more: Any) -> Slot:
    return Slot(PodInfo(made), KEY, "n1", 100.0, **more)


def gang(manager: PodGroupManager, minimum: int = 3, roles: str = "") -> Group:
    made = make_pod_group().namespace("default").name("g").min_member(minimum)
    return manager.objects.pod_group_changed((made.annotation(str(ROLES), roles) if roles else made).obj())


def may_take(manager: PodGroupManager, group: Group, slot: Slot, taker: corev1.Pod) -> bool:
    manager.pod_changed(taker)
    return manager.places.may_take(group, slot, PodInfo(taker))


OTHER = slot_for(member("other", priority=5))


@pytest.mark.parametrize(
    ("slot", "taker", "takes"),
    [
        pytest.param(OTHER, member("p", priority=5), True, id="one like the other"),
        pytest.param(OTHER, member("p", priority=6), True, id="a more important one"),
        pytest.param(OTHER, member("p", priority=4), False, id="a less important one lowers the quorum"),
        pytest.param(OTHER, member("p", cpu="2", priority=5), False, id="a larger one"),
        pytest.param(OTHER, member("p", cpu="500m", priority=5), False, id="a smaller one: it would leave a rest"),
        pytest.param(OTHER, member("p", role="worker", priority=5), True, id="any role, where no role has a minimum"),
        pytest.param(
            replace(OTHER, kind=("worker", "")), member("p", role="worker", priority=5), True, id="of the slice's role"
        ),
        pytest.param(replace(OTHER, kind=("worker", "")), member("p", priority=5), False, id="not of the slice's role"),
        pytest.param(
            replace(OTHER, kind=("", JOB)), member("p", priority=5, owners=[OWNER]), True, id="of the slice's job"
        ),
        pytest.param(replace(OTHER, kind=("", JOB)), member("p", priority=5), False, id="not of the slice's job"),
    ],
)
def test_which_member_may_have_the_place_of_another(
    slot: Slot, taker: corev1.Pod, takes: bool, manager: PodGroupManager
) -> None:
    assert may_take(manager, gang(manager), slot, taker) is takes


RANKED = slot_for(member("other", rank=3), ranks=range(2, 4))


@pytest.mark.parametrize(
    ("taker", "takes"),
    [
        pytest.param(member("p", rank=2), True, id="of another rank of the slice"),
        pytest.param(member("p", rank=3, job=0), True, id="of a JobSet's first Job"),
        pytest.param(member("p", rank=3, job=1), False, id="of its second Job: those ranks come later"),
        pytest.param(member("p", rank=1), False, id="of a rank before"),
        pytest.param(member("p", rank=4), False, id="of a rank behind"),
        pytest.param(member("p"), False, id="without a rank"),
    ],
)
@pytest.mark.parametrize("to_come", [pytest.param(False, id="another's"), pytest.param(True, id="one to come")])
def test_the_room_of_a_slice_is_for_members_of_its_ranks(
    taker: corev1.Pod, takes: bool, to_come: bool, manager: PodGroupManager
) -> None:
    assert may_take(manager, gang(manager), replace(RANKED, to_come=to_come), taker) is takes


@pytest.mark.parametrize(
    ("role", "takes"),
    [
        pytest.param("worker", True, id="of the same role"),
        pytest.param("leader", False, id="of another"),
        pytest.param("", False, id="of none"),
    ],
)
def test_where_roles_have_minima_a_place_is_for_its_role(role: str, takes: bool, manager: PodGroupManager) -> None:
    group = gang(manager, roles="leader=1,worker=2")
    assert may_take(manager, group, slot_for(member("other", role="worker")), member("p", role=role)) is takes


def test_what_finishes_a_start_is_for_those_that_it_left_behind(manager: PodGroupManager) -> None:
    group = cut_short(manager, "g")
    firm = slot_for(member("other"), firm=True)
    assert may_take(manager, group, firm, pod("g-1", "g"))
    assert not may_take(manager, group, firm, pod("later", "g"))
    assert may_take(manager, group, replace(firm, firm=False), pod("later", "g"))


def test_a_group_without_object_takes_over_no_place(manager: PodGroupManager) -> None:
    group = manager.pod_changed(member("p", priority=5))
    assert group is not None
    assert not manager.places.may_take(group, OTHER, PodInfo(member("p", priority=5)))


KEPT = slot_for(member("like", cpu="2", rank=1), to_come=True)


@pytest.mark.parametrize(
    ("taker", "gathering", "takes"),
    [
        pytest.param(member("p", cpu="1", rank=7), False, True, id="a smaller one, of whatever rank"),
        pytest.param(member("p", cpu="3", rank=1), False, False, id="a larger one"),
        pytest.param(member("p", cpu="2", rank=1), True, True, id="while it gathers: the one that was foreseen"),
        pytest.param(member("p", cpu="2", rank=7), True, False, id="while it gathers: not one of another rank"),
        pytest.param(member("p", cpu="1", rank=1), True, False, id="while it gathers: not a smaller one"),
    ],
)
def test_which_member_has_the_room_that_is_kept_for_members_to_come(
    taker: corev1.Pod, gathering: bool, takes: bool, manager: PodGroupManager
) -> None:
    group = gang(manager)
    group.gathering = Gathering(0.0, 0.0) if gathering else None
    assert may_take(manager, group, KEPT, taker) is takes


def test_while_a_gang_gathers_a_member_may_have_the_place_of_one_of_another_rank(manager: PodGroupManager) -> None:
    """Of members that are there each is as good as the other."""
    group = gang(manager)
    group.gathering = Gathering(0.0, 0.0)
    assert may_take(manager, group, slot_for(member("other", rank=1)), member("p", rank=2))


def executor(name: str, cpu: str, memory: str) -> corev1.Pod:
    return make_pod().namespace("default").name(name).uid(name).label(LABEL, "g").req(cpu=cpu, memory=memory).obj()


@pytest.mark.parametrize(
    ("spark_role", "takes"),
    [
        pytest.param("driver", True, id="an executor, of whose memory minResources says nothing"),
        pytest.param("", False, id="a member of another job"),
    ],
)
def test_room_without_memory_is_for_executors_alone(spark_role: str, takes: bool, manager: PodGroupManager) -> None:
    group = gang(manager, minimum=1)
    manager.pod_changed(member("driver", labels={SPARK_ROLE: spark_role} if spark_role else {}))
    assert may_take(manager, group, KEPT, executor("p", "1", "1Gi")) is takes


# As they come


def planned_ahead(manager: PodGroupManager, *node_names: str, minimum: int = 3, cpu: str = "1") -> Group:
    """One member is there and has its place; for the others room is kept on these nodes."""
    group = gang(manager, minimum)
    manager.pod_changed(member("p"))
    place(manager, member("p"))
    group.planned = True
    kept = [(name, PodInfo(pod(f"like-{number}", cpu=cpu))) for number, name in enumerate(node_names)]
    manager.places.keep_for_members_to_come(group, kept, 50.0)
    return group


def given(manager: PodGroupManager) -> dict[str, str]:
    """UIDs of members that exist -> the node of the place of each."""
    return {slot.uid: slot.node_name for slot in manager.slots if not slot.to_come}


def test_members_that_come_have_the_room_that_was_kept_one_by_one(manager: PodGroupManager) -> None:
    group = planned_ahead(manager, "n2", "n3")
    for name in ("q", "r", "s"):
        manager.pod_changed(member(name))
    assert given(manager) == {"p": "n1", "q": "n2", "r": "n3"}
    assert (group.planned, list(manager.slots.to_come(KEY))) == (True, [])


def test_a_member_that_its_room_is_too_small_for_voids_the_plan(manager: PodGroupManager) -> None:
    group = planned_ahead(manager, "n2", "n3")
    manager.pod_changed(member("q", cpu="2"))
    assert (given(manager), group.planned) == ({"p": "n1"}, False)
    assert len(manager.slots.to_come(KEY)) == 2


def test_a_member_that_comes_with_its_node_takes_no_room(manager: PodGroupManager) -> None:
    group = planned_ahead(manager, "n2", "n3")
    manager.pod_changed(member("q", node_name="n9"))
    assert (given(manager), group.planned) == ({"p": "n1"}, True)
    assert len(manager.slots.to_come(KEY)) == 2


def test_room_that_is_too_little_for_all_that_are_to_come_is_no_plan(manager: PodGroupManager) -> None:
    assert planned_ahead(manager, "n2", "n3").planned
    manager.pod_gone(member("p"))
    assert not planned_ahead(manager, "n2", minimum=9).planned


@pytest.mark.parametrize(
    ("gathering", "gathered", "takes"),
    [
        pytest.param(True, False, True, id="the gang gathers"),
        pytest.param(False, True, True, id="the gang has gathered meanwhile"),
        pytest.param(False, False, False, id="its other members come in a later phase"),
    ],
)
def test_members_that_came_while_their_gang_was_planned_have_its_room(
    gathering: bool, gathered: bool, takes: bool, manager: PodGroupManager
) -> None:
    group = gang(manager)
    for name in ("p", "q"):
        manager.pod_changed(member(name))
    place(manager, member("p"))
    group.gathering, group.gathered = Gathering(0.0, 0.0) if gathering else None, gathered
    manager.places.keep_for_members_to_come(group, [(name, PodInfo(pod(f"on-{name}"))) for name in ("n2", "n3")], 50.0)
    assert given(manager) == {"p": "n1"} | ({"q": "n2"} if takes else {})
    assert len(manager.slots.to_come(KEY)) == (1 if takes else 2)


@pytest.mark.parametrize(
    ("minimum", "planned"), [pytest.param(3, True, id="enough have one"), pytest.param(5, False, id="one is short")]
)
def test_where_room_is_found_again_members_that_came_meanwhile_have_theirs_by_name(
    minimum: int, planned: bool, manager: PodGroupManager
) -> None:
    group = gang(manager, minimum)
    for name in ("d", "c", "b", "a"):
        manager.pod_changed(member(name))
    place(manager, member("d"))
    for name in ("n2", "n3"):
        manager.slots.reserve(Slot(PodInfo(pod(f"on-{name}")), KEY, name, 50.0, to_come=True))
    manager.places.claim_all(group)
    assert given(manager) == {"d": "n1", "a": "n2", "b": "n3"}
    assert group.planned is planned


def test_room_that_is_found_again_is_not_for_members_on_nodes(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 2))
    manager.pod_changed(member("a", node_name="n9"))
    manager.pod_changed(member("b"))
    manager.slots.reserve(Slot(PodInfo(pod("like")), KEY, "n2", 50.0, to_come=True))
    manager.places.claim_all(group)
    assert (given(manager), group.planned) == ({"b": "n2"}, True)
