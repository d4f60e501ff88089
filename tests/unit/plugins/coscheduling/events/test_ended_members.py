"""Gangs of which some members have ended, or have been taken away for good: what is left of them is scheduled, a fraction is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.metav1 import Condition, OwnerReference
from extender.api.schedulingv1alpha1 import PodGroup, PodGroupStatus
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.events.ended_members import AGAIN_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node
from tests.unit.plugins.coscheduling.starting import bound_by

Make = Callable[..., World]
ROLES = "master=1,worker=2"


class Job:
    """The Job controller around a gang, by UIDs: pods that end are in the API still, and no watch shows them."""

    def __init__(self, world: Make, **group_of: Any) -> None:
        self._make = partial(world, [node(f"n{number}", "1") for number in range(4)])
        self._succeeded: list[corev1.Pod] = []
        self.asked = 0
        self.kube = KubeScheduler(self._world())
        self.kube.apply(group(**{"minimum": 3, **group_of}))

    def _world(self) -> World:
        made = self._make()
        made.connect(succeeded_pods=self._list)
        return made

    def _list(self, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
        self.asked += 1
        found([pod for pod in self._succeeded if pod.namespace == namespace])

    def create(self, *names: str, owner: str = "job", **more: Any) -> None:
        self.kube.create(*(of(member(name, **more), owner) for name in names))
        self.run()

    def run(self) -> None:
        """Until nothing moves, and some seconds more."""
        for _ in range(3):
            self.kube.run()
            self.kube.plugin.tick()
            self.kube.world.clock.now += 2.0
        self.kube.run()

    def has_succeeded(self, name: str, group: str = "g") -> None:
        """And no watch has ever shown it."""
        self._succeeded.append(on_node(of(member(name, group), "job"), "n0"))

    def succeeds(self, name: str) -> None:
        self._succeeded.append(self.kube.pods[f"default/{name}"])
        self.loses(name)

    def loses(self, *names: str) -> None:
        self.kube.delete(*(self.kube.pods[f"default/{name}"] for name in names))
        self.run()

    def extender_restarts(self) -> None:
        self.kube.extender_restarts(self._world())
        self.run()

    @property
    def running(self) -> set[str]:
        return self.kube.running()


def of(pod: corev1.Pod, owner: str) -> corev1.Pod:
    """A pod that the controller of this UID manages; of none where it is empty."""
    owners = (
        (OwnerReference(api_version="batch/v1", kind="Job", name=owner, uid=owner, controller=True),) if owner else ()
    )
    return structs.replace(pod, metadata=structs.replace(pod.metadata, owner_references=owners))


@pytest.fixture
def job(world: Make) -> Job:
    made = Job(world)
    made.create("a", "b", "c")
    assert made.running == {"a", "b", "c"}
    return made


RESTART = pytest.mark.parametrize(
    "restarts", [pytest.param(False, id="one process"), pytest.param(True, id="the extender restarts in between")]
)


@RESTART
def test_a_replaced_member_is_scheduled_whatever_became_of_its_siblings(job: Job, restarts: bool) -> None:
    """It waited for a third pod that its Job never makes again: kubernetes #142330."""
    job.succeeds("a")
    job.loses("c")
    if restarts:
        job.extender_restarts()
    job.create("d")
    assert job.running == {"b", "d"}


@RESTART
def test_what_is_left_of_a_gang_that_was_scaled_down_gets_its_head_back(job: Job, restarts: bool) -> None:
    """KubeRay makes a PodGroup once, and never updates its minMember."""
    job.loses("b")
    job.loses("a")
    if restarts:
        job.extender_restarts()
    job.create("head")
    assert job.running == {"c", "head"}


def test_held_members_start_once_the_one_that_is_missing_is_known_to_have_ended(world: Make) -> None:
    """They waited until their holds timed out, for a bind call that never comes."""
    made = Job(world)
    made.create("a", "b")
    last = of(member("last"), "job")
    made.kube.create(last)
    made.kube.world.run_tasks()
    for name in ("a", "b"):
        pod = made.kube.pods[f"default/{name}"]
        made.kube.bind_call(pod, made.kube.filter_call(pod))
    made.kube.delete(last)
    assert made.kube.held() == {"a", "b"}
    made.has_succeeded("before")
    made.kube.world.clock.now += AGAIN_SECONDS
    made.run()
    assert made.running == {"a", "b"}


def test_members_that_are_there_are_placed_together(job: Job) -> None:
    job.loses("b", "c")
    job.kube.create(*members(2, prefix="single", group="", cpu=1))
    job.run()
    job.create("d", "e")
    assert job.running == {"a", "single0", "single1"}, "one node is left, for two"
    job.loses("single0")
    assert job.running == {"a", "single1", "d", "e"}


@RESTART
def test_what_has_not_ended_starts_together_where_no_member_is_left(job: Job, restarts: bool) -> None:
    job.succeeds("a")
    job.loses("b", "c")
    if restarts:
        job.extender_restarts()
    job.create("d")
    assert job.running == set(), "one of two that are still to run"
    job.create("e")
    assert job.running == {"d", "e"}


def test_a_gang_of_which_nothing_is_left_starts_whole(job: Job) -> None:
    """Its Job was suspended and resumed, or begins again."""
    job.loses("a", "b", "c")
    job.create("d", "e")
    assert job.running == set()
    job.create("f")
    assert job.running == {"d", "e", "f"}


def test_further_pods_of_a_job_that_makes_more_than_it_runs_at_a_time_wait_for_none(job: Job) -> None:
    """completions: 4, parallelism: 3."""
    for name in ("a", "b", "c"):
        job.succeeds(name)
    job.create("d")
    assert job.running == {"d"}


def test_pods_that_another_run_has_left_behind_are_no_siblings(job: Job) -> None:
    """Each run of a CronJob is a Job of its own, in one PodGroup."""
    for name in ("a", "b", "c"):
        job.succeeds(name)
    job.create("d", owner="next")
    assert (job.running, job.asked > 0) == (set(), True)
    job.create("e", "f", owner="next")
    assert job.running == {"d", "e", "f"}


def test_what_was_counted_counts_no_more_when_the_next_run_comes(job: Job) -> None:
    job.succeeds("a")
    job.loses("b", "c")
    job.create("d")
    assert job.kube.plugin.manager.groups["default/g"].ended.keys() == {"default/a"}
    job.kube.delete(job.kube.pods["default/d"])
    job.kube.create(*(of(member(name), "next") for name in "ef"))
    assert job.kube.plugin.manager.groups["default/g"].ended == {}
    job.run()
    assert job.running == set()


@pytest.mark.parametrize("sibling", [pytest.param("b", id="beside one that runs"), pytest.param("", id="alone")])
def test_bare_pods_that_have_ended_count_beside_one_that_runs(sibling: str, world: Make) -> None:
    made = Job(world)
    made.kube.create(*(on_node(member(name), f"n{number}") for number, name in enumerate("ab")))
    made.succeeds("a")
    if not sibling:
        made.loses("b")
        made.create("e", owner="")
    made.create("d", owner="")
    assert made.running == ({"b", "d"} if sibling else set())


def test_bare_pods_that_have_ended_count_no_more_when_the_one_that_runs_goes(world: Make) -> None:
    made = Job(world)
    made.kube.create(*(on_node(member(name), f"n{number}") for number, name in enumerate("ab")))
    made.succeeds("a")
    made.kube.create(member("d", cpu=2))
    made.run()
    found = made.kube.plugin.manager.groups["default/g"]
    assert found.ended.keys() == {"default/a"}
    made.kube.delete(made.kube.pods["default/b"])
    assert found.ended == {}


def test_a_fraction_that_never_was_whole_waits(world: Make) -> None:
    made = Job(world)
    made.kube.create(on_node(of(member("a"), "job"), "n0"))
    made.create("b")
    assert (made.running, made.kube.reason()) == ({"a"}, "QuorumMissing")
    made.create("c")
    assert made.running == {"a", "b", "c"}


def started_of(number: int) -> Condition:
    return Condition("Scheduled", "True", "Scheduled", messages.complete(number))


def told(pod_group: PodGroup, **status: Any) -> PodGroup:
    return structs.replace(pod_group, status=PodGroupStatus(**status))


@pytest.mark.parametrize(
    ("status", "running"),
    [
        pytest.param({"conditions": (Condition("Scheduled", "True"),)}, {"a", "b"}, id="our condition"),
        pytest.param({"conditions": (started_of(3),)}, {"a", "b"}, id="our condition, of as many as are asked for"),
        pytest.param({"conditions": (started_of(2),)}, {"a"}, id="our condition, of fewer: minMember was raised since"),
        pytest.param({"conditions": (Condition("Scheduled", "False"),)}, {"a"}, id="our condition says that it waits"),
        pytest.param({"conditions": (Condition("Ready", "True"),)}, {"a"}, id="another condition"),
        pytest.param({"phase": "Running"}, {"a", "b"}, id="scheduler-plugins' controller"),
        pytest.param({"phase": "Finished"}, {"a", "b"}, id="which says that minMember of them have succeeded"),
        pytest.param({"phase": "Pending"}, {"a"}, id="which says that it waits"),
    ],
)
def test_what_the_object_says_of_a_start_that_others_made(
    status: dict[str, Any], running: set[str], world: Make
) -> None:
    w = world([node("n0"), node("n1")])
    kube = KubeScheduler(w)
    kube.apply(told(group(minimum=3), **status))
    kube.create(on_node(member("a"), "n0"), member("b"))
    w.plugin.tick()
    kube.run()
    assert kube.running() == running


def aged(pod: corev1.Pod, made: float, started: float | None = None) -> corev1.Pod:
    """made, started: seconds ago; started: its containers run."""

    def ago(seconds: float) -> datetime:
        return datetime.now(UTC) - timedelta(seconds=seconds)

    status = corev1.PodStatus(phase="Running", start_time=ago(started)) if started is not None else corev1.PodStatus()
    return structs.replace(pod, metadata=structs.replace(pod.metadata, creation_timestamp=ago(made)), status=status)


@pytest.mark.parametrize(
    ("worker", "head", "owner", "starts"),
    [
        pytest.param((3600, 3500), 300, "ray", True, id="made long after its sibling has started: it is replaced"),
        pytest.param((3600, 3500), 3600, "ray", False, id="waits since its sibling was made: a fraction"),
        pytest.param((3600, 400), 380, "ray", False, id="made soon after its sibling has started"),
        pytest.param((3600, 3500), 5, "ray", False, id="made just now: more may come"),
        pytest.param((3600, None), 300, "ray", False, id="the sibling's containers have not started"),
        pytest.param((3600, 3500), 300, "other", False, id="of another controller"),
    ],
)
def test_a_gang_that_others_started_and_that_shrank_is_known_by_its_pods(
    worker: tuple[float, float | None], head: float, owner: str, starts: bool, world: Make
) -> None:
    """A RayCluster of 3 that another scheduler started, scaled down to 2, loses its head: nothing says so but its pods."""
    made = Job(world)
    made.kube.create(on_node(aged(of(member("worker"), "ray"), *worker), "n0"))
    made.kube.create(aged(of(member("head"), owner), head))
    made.run()
    assert made.running == ({"worker", "head"} if starts else {"worker"})


@pytest.mark.parametrize(
    ("minimum", "starts"),
    [
        pytest.param(3, True, id="as it was when they were bound"),
        pytest.param(5, False, id="raised since: a fraction of the gang that is wanted now"),
    ],
)
def test_a_gang_that_we_started_is_known_by_its_record_and_not_by_its_age(
    minimum: int, starts: bool, world: Make
) -> None:
    made = Job(world, minimum=minimum)
    uids = [f"default/{name}" for name in "abc"]
    ours = (on_node(aged(of(member(name), "ray"), 3600, 3500), f"n{n}") for n, name in enumerate("abc"))
    made.kube.create(*(bound_by(pod, 3, uids) for pod in ours))
    made.kube.create(aged(of(member("d"), "ray"), 300))
    made.run()
    assert made.running == {"a", "b", "c", *({"d"} if starts else ())}


def test_of_several_that_wait_all_have_to_be_replaced(world: Make) -> None:
    made = Job(world, minimum=4)
    made.kube.create(on_node(aged(of(member("a"), "ray"), 3600, 3500), "n0"))
    made.kube.create(aged(of(member("b"), "ray"), 3600), aged(of(member("c"), "ray"), 300))
    made.run()
    assert made.running == {"a"}, "b has waited since the gang was made"


def indexed(name: str, index: int) -> corev1.Pod:
    pod = member(name)
    labels = {**(pod.metadata.labels or {}), "batch.kubernetes.io/job-completion-index": str(index)}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


@pytest.mark.parametrize(
    ("index", "starts"),
    [
        pytest.param(2, True, id="the index that has not ended yet"),
        pytest.param(0, False, id="an index that has succeeded: another run"),
    ],
)
def test_bare_pods_that_have_ended_count_by_their_indices_where_none_runs(
    index: int, starts: bool, world: Make
) -> None:
    made = Job(world)
    made.kube.create(*(on_node(indexed(f"p{number}", number), f"n{number}") for number in range(3)))
    made.succeeds("p0")
    made.succeeds("p1")
    made.loses("p2")
    made.kube.create(indexed("again", index))
    made.run()
    assert made.running == ({"again"} if starts else set())


def test_bare_pods_that_counted_count_no_more_when_the_next_run_comes(world: Make) -> None:
    made = Job(world)
    made.kube.create(*(on_node(indexed(f"p{number}", number), f"n{number}") for number in range(3)))
    made.succeeds("p0")
    made.succeeds("p1")
    made.loses("p2")
    too_large = indexed("again2", 2)
    containers = member("x", cpu=9).spec.containers
    made.kube.create(structs.replace(too_large, spec=structs.replace(too_large.spec, containers=containers)))
    made.run()
    ended = made.kube.plugin.manager.groups["default/g"].ended
    assert ended.keys() == {"default/p0", "default/p1"}
    made.kube.create(indexed("again0", 0))
    assert made.kube.plugin.manager.groups["default/g"].ended == {}


def test_the_next_run_of_bare_pods_starts_whole(world: Make) -> None:
    made = Job(world)
    made.kube.create(*(on_node(indexed(f"p{number}", number), f"n{number}") for number in range(3)))
    for number in range(3):
        made.succeeds(f"p{number}")
    for number in (2, 0):
        made.kube.create(indexed(f"again{number}", number))
        made.run()
        assert made.running == set()
    made.kube.create(indexed("again1", 1))
    made.run()
    assert made.running == {"again0", "again1", "again2"}


def test_an_object_proves_nothing_where_no_member_runs(world: Make) -> None:
    kube = KubeScheduler(world([node("n0"), node("n1")]))
    kube.apply(told(group(minimum=3), conditions=(Condition("Scheduled", "True"),)))
    kube.create(member("a"), member("b"))
    kube.plugin.tick()
    kube.run()
    assert kube.running() == set()


def test_a_group_without_an_object_is_known_by_the_record_that_its_members_were_bound_with(world: Make) -> None:
    kube = KubeScheduler(world([node("n0"), node("n1")]))
    bare = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}

    def labelled(name: str) -> corev1.Pod:
        pod = member(name, "")
        return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=bare))

    kube.create(bound_by(on_node(labelled("a"), "n0"), 3, ["default/a", "default/x", "default/y"]), labelled("b"))
    kube.plugin.tick()
    kube.run()
    assert kube.running() == {"a", "b"}


@RESTART
def test_a_min_member_that_was_raised_since_is_waited_for(job: Job, restarts: bool) -> None:
    """Though the PodGroup says that the gang has started: it had three members then."""
    job.kube.apply(told(group(minimum=5), conditions=(Condition("Scheduled", "True"),)))
    if restarts:
        job.extender_restarts()
    job.create("d")
    assert job.running == {"a", "b", "c"}


def test_an_ended_member_counts_for_its_role(world: Make) -> None:
    made = Job(world, roles=ROLES)
    made.create("m", role="master")
    made.create("w1", "w2", role="worker")
    made.succeeds("w1")
    made.loses("m", "w2")
    made.create("n", role="master")
    assert made.running == set()
    made.create("w3", role="worker")
    assert made.running == {"n", "w3"}


def test_of_a_gang_that_is_being_made_nothing_is_asked(world: Make) -> None:
    """A thousand of them would be a thousand lists."""
    made = Job(world)
    made.kube.apply(
        structs.replace(g := group(minimum=3), metadata=structs.replace(g.metadata, creation_timestamp=None))
    )
    made.create("a", "b")
    assert made.asked > 0, "how old it is is not known"
    made = Job(world)
    created = made.kube.plugin.manager.wall()
    made.kube.apply(structs.replace(g, metadata=structs.replace(g.metadata, creation_timestamp=created)))
    made.create("a", "b")
    assert made.asked == 0


def test_a_gang_that_stays_short_is_asked_about_once_in_a_while(job: Job) -> None:
    job.loses("a", "b", "c")
    job.create("d")
    assert job.asked == 1
    for _ in range(10):
        job.run()
    assert job.asked == 3, "in 66 seconds"
    job.create("e", "f")
    asked = job.asked
    for _ in range(10):
        job.run()
    assert job.asked == asked


def test_gangs_that_come_to_be_short_one_after_the_other_are_listed_for_once_in_five_seconds(world: Make) -> None:
    """But for the first three: each list is of all that have succeeded in the namespace. A fault run of seed 7001 saw one each second."""
    made, names = Job(world), [f"gang{number}" for number in range(30)]
    for name in names:
        made.kube.apply(
            structs.replace(g := group(name, 3), metadata=structs.replace(g.metadata, creation_timestamp=None))
        )
        made.has_succeeded(f"{name}-0", group=name)
        made.has_succeeded(f"{name}-1", group=name)
        made.kube.create(of(member(f"{name}-2", name), "job"))
        made.kube.run()
        made.kube.plugin.tick()
        made.kube.world.clock.now += 1.0
    assert made.asked <= 2 + 30 / 5
    made.run()
    made.run()
    groups = made.kube.plugin.manager.groups
    assert made.running == {f"{name}-2" for name in names[:4]}, "four nodes have room for one each"
    assert [len(groups[f"default/{name}"].ended) for name in names[4:]] == [2] * 26


@pytest.mark.parametrize("owner", [pytest.param("", id="bare pods"), pytest.param("job", id="pods of one controller")])
@RESTART
def test_one_that_has_ended_counts_for_no_later_batch(owner: str, restarts: bool, world: Make) -> None:
    """With only-waiting a batch is a gang of its own. A fault run of seed 7 saw one pod start by itself for it."""
    made = Job(world, minimum=2, match_policy="only-waiting")
    for batch in ("ab", "cd"):
        made.create(*batch, owner=owner)
    made.succeeds("a")
    if restarts:
        made.extender_restarts()
    made.create("e", owner=owner)
    assert made.running == {"b", "c", "d"}


def test_one_that_has_ended_counts_for_what_is_left_of_its_batch(world: Make) -> None:
    made = Job(world, minimum=3, match_policy="only-waiting")
    made.create("a", "b", "c")
    made.succeeds("a")
    made.loses("c")
    made.create("d")
    assert made.running == {"b", "d"}
