"""A restart in the middle of a job that comes in phases: the room of its later members is found again by what the API shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.plugins.coscheduling.state.pod_group_manager import wall_clock
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member
from tests.unit.plugins.coscheduling.stories.test_jobs_in_phases import (
    INITIALIZERS,
    REPLICATED_JOB,
    TRAIN_JOB,
    TRAINERS,
    asking,
    driver,
    ended,
    executor,
    kept,
    launcher,
    nodes,
    restarts,
    seconds_pass,
    trainer,
    worker,
)

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    """Trainer's job takes eight of nine CPUs."""
    return KubeScheduler(world(nodes()))


def initializers_end(kube: KubeScheduler) -> list[corev1.Pod]:
    """As a list of those that have Succeeded has them: on their nodes, with the record of their start."""
    kube.apply(TRAIN_JOB)
    kube.create(*INITIALIZERS)
    kube.run()
    succeeded = [kube.pods[each.uid] for each in INITIALIZERS]
    ended(kube, *INITIALIZERS)
    return succeeded


@pytest.mark.parametrize("there", [0, 1, 3], ids=["none of the nodes is there", "one is there", "all are"])
@pytest.mark.parametrize("gated", [False, True], ids=["open", "gated"])
def test_between_initializers_and_nodes_a_restart_finds_the_room_again(
    kube: KubeScheduler, world: Make, there: int, gated: bool
) -> None:
    succeeded = initializers_end(kube)
    rest = [trainer(each.name, gated=gated) for each in TRAINERS]
    for pod in rest[:there]:
        kube.pods[pod.uid] = pod  # made while the extender is away
    kube.create(*(member(f"single-{number}", "", cpu=2) for number in range(3)))
    restarts(kube, world(nodes()), *succeeded)
    assert len(kept(kube)) == 3 - there
    kube.run()
    kube.create(*rest[there:])
    kube.run()
    assert kube.starts == [{"dataset", "model"}, {"node-0", "node-1", "node-2"}]
    assert kept(kube) == []
    assert not any(kube.pods[f"default/single-{number}"].node_name for number in range(3))


def test_room_that_is_found_again_is_as_large_as_it_was_and_where_the_initializers_might_go(
    kube: KubeScheduler, world: Make
) -> None:
    succeeded = initializers_end(kube)
    later = world([*nodes(), node("other", "90")])
    large = [structs.replace(pod, spec=structs.replace(pod.spec, node_selector={})) for pod in succeeded]
    restarts(kube, later, *large)
    asked = [slot.pod_info.requests.milli_cpu for slot in kube.plugin.manager.slots.to_come("default/g")]
    assert asked == [2000, 2000, 2000]
    confined = [structs.replace(pod, spec=structs.replace(pod.spec, node_selector={"pool": "x"})) for pod in succeeded]
    restarts(kube, world([*nodes(), node("other", "90")]), *confined)
    assert kept(kube) == []


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("gone", id="their pods are gone: nothing says where"),
        pytest.param("unlisted", id="pods cannot be listed"),
        pytest.param("late", id="the time of the room is up"),
        pytest.param("foreign", id="they were of another scheduler"),
        pytest.param("earlier", id="they are older than the PodGroup"),
    ],
)
def test_where_too_little_is_known_the_nodes_are_planned_when_they_come(
    kube: KubeScheduler, world: Make, fault: str
) -> None:
    succeeded = initializers_end(kube)
    later = world(nodes())
    match fault:
        case "gone":
            succeeded = []
        case "late":
            later.plugin.manager.wall = lambda: wall_clock() + timedelta(seconds=601)
        case "foreign":
            later.connect(ours=lambda pod: pod.metadata.labels.get(REPLICATED_JOB) == "node")
        case "earlier":
            old = datetime(2025, 12, 31, tzinfo=UTC)
            succeeded = [
                structs.replace(pod, metadata=structs.replace(pod.metadata, creation_timestamp=old))
                for pod in succeeded
            ]
    restarts(kube, later, *succeeded, listed=fault != "unlisted")
    assert kept(kube) == []
    kube.create(*TRAINERS)
    kube.run()
    assert kube.starts[1:] == [{"node-0", "node-1", "node-2"}]


def test_mpi_s_launcher_that_came_while_we_were_away_has_its_room(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "3"), node("n1", "2")]))
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(worker("w0"), worker("w1"))
    kube.run()
    late = launcher()
    kube.create(member("single", ""))
    kube.pods[late.uid] = late
    restarts(kube, world([node("n0", "3"), node("n1", "2")]))
    kube.run()
    assert kube.pods[late.uid].node_name == "n0"
    assert not kube.pods["default/single"].node_name


def test_spark_s_executors_that_came_while_we_were_away_have_their_room(world: Make) -> None:
    sparks = KubeScheduler(world([node("n0", "3"), node("n1", "3")]))
    for name in "ab":
        sparks.apply(asking(group(name, minimum=1), cpu="5"))
        sparks.create(driver(f"{name}-driver", name))
    sparks.run()
    first = executor("a-0", "a")
    sparks.pods[first.uid] = first
    restarts(sparks, world([node("n0", "3"), node("n1", "3")]))
    sparks.run()
    assert not sparks.pods["default/b-driver"].node_name
    sparks.create(executor("a-1", "a"))
    sparks.run()
    assert sparks.pods[first.uid].node_name
    assert sparks.pods["default/a-1"].node_name
    assert kept(sparks, "default/a") == []


def test_a_gang_that_was_whole_and_has_lost_a_node_keeps_no_room_for_it_after_a_restart(
    kube: KubeScheduler, world: Make
) -> None:
    succeeded = initializers_end(kube)
    kube.create(*TRAINERS)
    kube.run()
    kube.delete(kube.pods[TRAINERS[0].uid])
    restarts(kube, world(nodes()), *succeeded)
    assert kept(kube) == []


def test_where_time_is_the_sign_room_is_kept_again_once_it_has_passed(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "3"), node("n1", "2")], in_part_after_seconds=60))
    kube.apply(asking(group(minimum=3), cpu="5"))
    kube.create(member("a", cpu=2), member("b", cpu=2))
    kube.run()
    kube.world.clock.now += 60
    seconds_pass(kube)
    assert kept(kube) == ["n0"]
    restarts(kube, world([node("n0", "3"), node("n1", "2")], in_part_after_seconds=60))
    assert kept(kube) == []
    kube.world.clock.now += 60
    seconds_pass(kube)
    assert kept(kube) == ["n0"]


@pytest.mark.parametrize("status", ["True", "False"])
def test_no_pods_are_listed_for_a_job_that_is_told_to_have_started(world: Make, status: str) -> None:
    later = world(nodes())
    asked: list[str] = []
    later.connect(
        succeeded_pods=lambda namespace, found: asked.append(namespace), wait=lambda event, seconds: event.is_set()
    )
    kube = KubeScheduler(later)
    text = "2 initializers of minMember 5 have ended, the others are complete: the gang starts"
    told = structs.replace(TRAIN_JOB.status, conditions=(Condition("Scheduled", status, "GangScheduled", text),))
    kube.apply(structs.replace(TRAIN_JOB, status=told), group("plain"))
    kube.plugin.tick()
    assert asked == ([] if status == "True" else ["default"])


def test_a_job_that_is_deleted_while_its_room_is_planned_keeps_none(kube: KubeScheduler, world: Make) -> None:
    succeeded = initializers_end(kube)
    later = world(nodes())
    left = [kube.groups["default/g"]]

    def plan_meanwhile(function: Callable[..., object], *args: object) -> object:
        found = function(*args)
        while left:
            left.pop()
            kube.remove(kube.groups["default/g"])
        return found

    later.connect(offload=plan_meanwhile)
    restarts(kube, later, *succeeded)
    assert left == []
    assert list(kube.plugin.manager.slots) == []


def test_an_answer_that_comes_late_keeps_what_room_there_is_then(kube: KubeScheduler, world: Make) -> None:
    succeeded = initializers_end(kube)
    late: list[Callable[[Iterable[corev1.Pod]], None]] = []
    restarts(kube, world(nodes()), listed=False)
    again = world(nodes())
    again.connect(succeeded_pods=lambda namespace, found: late.append(found), wait=lambda event, seconds: False)
    kube.extender_restarts(again)
    assert kept(kube) == []
    late[0](succeeded)
    assert len(kept(kube)) == 3
