"""What is known of members that are still to be made, by minMember and minResources, and what too much is kept for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling.members_to_come.foreseen import foreseen, give_back
from extender.plugins.coscheduling.planner import Foreseen
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, on_node
from tests.unit.plugins.coscheduling.stories.test_jobs_in_phases import (
    asking,
    driver,
    executor,
    initializer,
    with_labels,
    worker,
)

Make = Callable[..., World]
KEY = "default/g"


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n0", "64")]))


def found(kube: KubeScheduler) -> Foreseen | None:
    with kube.plugin.manager.lock:
        return foreseen(kube.plugin.manager, kube.plugin.manager.groups[KEY])


def room(kube: KubeScheduler) -> tuple[int, int] | None:
    """milliCPU, and how many pieces; None for none."""
    known = found(kube)
    return (known.total.milli_cpu, known.pieces) if known is not None else None


def keep(kube: KubeScheduler, *cpus: int) -> Group:
    """Room of so many milliCPU each."""
    manager = kube.plugin.manager
    with manager.lock:
        kept = [("n0", like(f"to-come/{number}", cpu)) for number, cpu in enumerate(cpus)]
        manager.places.keep_for_members_to_come(manager.groups[KEY], kept, 1000.0)
        return manager.groups[KEY]


def like(uid: str, cpu: int) -> PodInfo:
    info = PodInfo(structs.replace(member("later"), metadata=structs.replace(member("later").metadata, uid=uid)))
    info.requests = Resource(milli_cpu=cpu)
    return info


@pytest.mark.parametrize(
    ("minimum", "cpu", "pods", "expected"),
    [
        pytest.param(5, "8", [initializer("a"), initializer("b")], (6000, 3), id="what is left of minResources"),
        pytest.param(5, "", [initializer("a"), initializer("b")], (3000, 3), id="as those that there are"),
        pytest.param(5, "1", [initializer("a"), initializer("b")], (0, 3), id="minResources is less than they ask for"),
        pytest.param(2, "8", [initializer("a"), initializer("b")], None, id="all are there"),
        pytest.param(3, "5", [worker("a"), worker("b")], (1000, 1), id="MPI's launcher"),
        pytest.param(3, "5", [worker("a")], None, id="not all workers are there"),
        pytest.param(1, "5", [driver("a", "g")], (4000, 0), id="Spark's executors, however many"),
        pytest.param(1, "5", [driver("a", "g"), executor("b", "g")], (2000, 0), id="one of them is there"),
        pytest.param(1, "5", [member("a")], None, id="minResources of a gang without a step"),
        pytest.param(1, "1", [driver("a", "g")], None, id="a driver without executors"),
        pytest.param(1, "", [driver("a", "g")], None, id="a driver without minResources"),
    ],
)
def test_the_room_for_members_to_come(
    kube: KubeScheduler, minimum: int, cpu: str, pods: list[corev1.Pod], expected: tuple[int, int] | None
) -> None:
    made = group(minimum=minimum)
    kube.apply(asking(made, cpu=cpu) if cpu else made)
    kube.create(*pods)
    assert room(kube) == expected


def test_what_is_kept_is_not_asked_for_again(kube: KubeScheduler) -> None:
    kube.apply(asking(group(minimum=5), cpu="8"))
    kube.create(initializer("a"), initializer("b"))
    keep(kube, 2000)
    assert room(kube) == (4000, 2)
    keep(kube, 2000, 2000, 2000)
    assert room(kube) is None


def test_members_that_have_ended_have_taken_their_part_of_what_is_asked_for(kube: KubeScheduler) -> None:
    kube.apply(asking(group(minimum=5), cpu="5"))
    first, second = initializer("a"), initializer("b")
    kube.create(first, second)
    kube.run()
    kube.plugin.manager.places.release(kube.plugin.manager.groups[KEY])
    kube.delete(first)
    assert room(kube) == (3000, 3)


def test_a_member_to_come_goes_where_those_that_there_are_may_go(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=5))
    made = with_labels(initializer("a"), {"app": "x"})
    spec = structs.replace(made.spec, node_selector={"pool": "a"}, priority=7, volumes=(corev1.Volume(name="data"),))
    kube.create(structs.replace(made, spec=spec))
    known = found(kube)
    assert known is not None
    pod = known.like.pod
    assert (pod.spec.node_selector, pod.priority, pod.spec.scheduler_name) == ({"pool": "a"}, 7, spec.scheduler_name)
    assert (pod.metadata.labels, pod.spec.volumes, pod.metadata.namespace) == ({}, (), "default")
    assert known.like.requests == Resource()


def test_what_a_driver_needs_no_more_is_given_back(kube: KubeScheduler) -> None:
    kube.apply(asking(group(minimum=1), cpu="5"))
    kube.create(driver("a", "g"))
    gang = keep(kube, 1000, 1000, 1000, 1000)
    with kube.plugin.manager.lock:
        assert not give_back(kube.plugin.manager, gang)
    kube.create(structs.replace(executor("b", "g"), spec=structs.replace(executor("b", "g").spec, node_name="n0")))
    assert len(list(kube.plugin.manager.slots.to_come(KEY))) == 2


def test_others_hear_of_what_is_given_back(kube: KubeScheduler) -> None:
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(worker("a"), worker("b"))
    keep(kube, 1000)
    epoch = kube.plugin.manager.notes.epoch
    large = with_labels(member("launcher", cpu=4), {})
    kube.create(large)
    assert list(kube.plugin.manager.slots.to_come(KEY)) == []
    assert kube.plugin.manager.notes.epoch > epoch


def test_what_is_kept_for_a_later_phase_is_no_place_for_a_member_of_this_one(kube: KubeScheduler) -> None:
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(worker("a"), worker("b"))
    gang = keep(kube, 1000)
    with kube.plugin.manager.lock:
        assert kube.plugin.manager.places.lacks(gang, kube.plugin.manager.specs.of(gang), frozenset()).total == 2
        assert not kube.plugin.manager.places.lacks(
            gang, kube.plugin.manager.specs.of(gang), {"default/a", "default/b"}
        )


def test_a_member_that_is_larger_than_each_piece_may_have_the_room_of_several(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "5")]))
    kube.apply(asking(group(minimum=1), cpu="5"))
    kube.create(on_node(driver("a", "g"), "n0"))
    keep(kube, 2000, 2000)
    snapshot = kube.world.snapshot()
    for pod, passes in ((member("b", cpu=4), True), (member("other", "", cpu=1), False)):
        room = kube.plugin.room.kept_from(pod, snapshot)
        assert (room is None or kube.plugin.room.judge(room, pod, snapshot.get("n0")).success) is passes


def test_room_for_later_members_keeps_none_of_a_later_wave_waiting(kube: KubeScheduler) -> None:
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(worker("a"), worker("b"))
    gang, manager = keep(kube, 1000), kube.plugin.manager
    with manager.lock:
        for wave, uid in enumerate(("default/a", "default/b")):
            manager.slots.reserve(Slot(gang.members[uid].info, KEY, "n0", 1000.0, wave=wave))
        assert kube.plugin.dispatcher.too_early(gang, "default/b")
        gang.happened("default/a", MemberEvent.HELD, "n0")
        assert not kube.plugin.dispatcher.too_early(gang, "default/b")
        gang.happened("default/a", MemberEvent.BIND_FAILED)
