"""What is told of a gang that starts, or runs, and of the members beyond minMember that wait beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.framework.hypothetical import Cluster
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import BROKEN, Verdict
from extender.plugins.coscheduling.scheduling.checks import (
    extra_members_wait,
    left_over,
    note_extra_members,
    one_extra_member,
    says_broken,
    verdict_of_start,
)
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, FailedCheck, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

Make = Callable[..., World]
Act = Callable[[KubeScheduler], None]
NAME = member("x").spec.scheduler_name
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
TEXT = "members beyond minMember of 2 find no room: Insufficient cpu"


def of_job(name: str, **labels: str) -> corev1.Pod:
    made = member(name)
    found = {f"training.kubeflow.org/{key}" if key == "job-role" else key: value for key, value in labels.items()}
    return structs.replace(made, metadata=structs.replace(made.metadata, labels={**made.metadata.labels, **found}))


def initializer(name: str) -> corev1.Pod:
    return of_job(name, **{REPLICATED_JOB: f"{name}-initializer"})


def trainer(name: str) -> corev1.Pod:
    return of_job(name, **{REPLICATED_JOB: "node"})


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "9")]))


def _gang(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(*members(3))


def _initializers(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=5))
    kube.create(initializer("dataset"), initializer("model"))


def _one_more_initializer(kube: KubeScheduler) -> None:
    """Of the three that started before it one has ended."""
    _initializers(kube)
    kube.create(initializer("third"))
    kube.run()
    kube.delete(kube.pods["default/third"])


def _workers(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*(of_job(f"worker-{number}", **{"job-role": "worker"}) for number in range(2)))


def _trainers(kube: KubeScheduler) -> None:
    """The initializers have ended."""
    _initializers(kube)
    kube.run()
    kube.delete(kube.pods["default/dataset"], kube.pods["default/model"])
    kube.create(*(trainer(f"node-{number}") for number in range(3)))


def _all_at_once(kube: KubeScheduler) -> None:
    """Nothing is made later."""
    kube.apply(group(minimum=2))
    kube.create(initializer("dataset"), initializer("model"))
    kube.run()


PART = "have started: room is kept for the members that come later"


@pytest.mark.parametrize(
    ("happened", "verdict"),
    [
        pytest.param(
            _gang, Verdict(True, "GangScheduled", "minMember of 2 is complete: the gang starts"), id="a gang is whole"
        ),
        pytest.param(
            _initializers,
            Verdict(False, "GangWaiting", f"2 initializers of minMember 5 {PART}", UnschedulableReason.MEMBERS_TO_COME),
            id="a job's initializers start",
        ),
        pytest.param(
            _one_more_initializer,
            Verdict(False, "GangWaiting", f"3 initializers of minMember 5 {PART}", UnschedulableReason.MEMBERS_TO_COME),
            id="one initializer of three has ended",
        ),
        pytest.param(
            _workers,
            Verdict(False, "GangWaiting", f"2 members of minMember 3 {PART}", UnschedulableReason.MEMBERS_TO_COME),
            id="a job's workers start, and its launcher comes later",
        ),
        pytest.param(
            _trainers,
            Verdict(
                True,
                "GangScheduled",
                "2 initializers of minMember 5 have ended, the others are complete: the gang starts",
            ),
            id="the nodes start, and the initializers have ended",
        ),
        pytest.param(
            _all_at_once,
            Verdict(True, "GangScheduled", "minMember of 2 is complete: the gang starts"),
            id="initializers are all that there is",
        ),
    ],
)
def test_what_is_told_of_a_start(happened: Act, verdict: Verdict, kube: KubeScheduler) -> None:
    happened(kube)
    manager = kube.plugin.manager
    with manager.lock:
        gang = manager.groups["default/g"]
        spec = manager.specs.of(gang)
        assert spec is not None
        assert verdict_of_start(gang, spec) == verdict


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        pytest.param(None, False, id="it says nothing"),
        pytest.param(Condition("Scheduled", "False", BROKEN, "x"), True, id="it says that it is broken"),
        pytest.param(Condition("Scheduled", "True", BROKEN, "x"), False, id="it says that it runs"),
        pytest.param(Condition("Scheduled", "False", "QuorumMissing", "x"), False, id="it says that it waits"),
        pytest.param(Condition("Other", "False", BROKEN, "x"), False, id="another condition says so"),
    ],
)
def test_whether_the_object_of_a_gang_says_that_it_is_broken(
    condition: Condition | None, broken: bool, kube: KubeScheduler
) -> None:
    made = group()
    conditions = (condition,) if condition is not None else ()
    kube.apply(structs.replace(made, status=structs.replace(made.status, conditions=conditions)))
    assert says_broken(kube.plugin.manager.groups["default/g"]) is broken


# Members beyond minMember


class Extra(KubeScheduler):
    """Two of three run, and fill the node; our gate holds the third, and what it lacks has not been asked."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.asked: list[planner.Request] = []
        self.apply(group(minimum=2))
        self.create(*(on_node(pod, "n1") for pod in members(2)), member("g2", gated=True))

    @property
    def group(self) -> Group:
        return self.plugin.manager.groups["default/g"]

    def plan(self, question: PlanQuestion) -> object:
        self.asked.append(question.request)
        cluster: Cluster = question.cluster
        return planner.plan(cluster, question.request, self.plugin.dependencies.judges.plans)

    def question(self) -> PlanQuestion:
        manager = self.plugin.manager
        with manager.lock:
            return self.plugin.rounds.requests.question((self.group,), NAME, self.world.snapshot())

    def note(self, scheduler_name: str = NAME, snapshot: NodeInfoLister | None = None) -> planner.Cause | None:
        requests = self.plugin.rounds.requests
        seen = snapshot or self.world.snapshot()
        return note_extra_members(self.plugin.manager, requests, self.group, scheduler_name, seen, self.plan)


@pytest.fixture
def extra(world: Make) -> Extra:
    return Extra(world([node("n1", "2")]))


def test_one_of_them_is_asked_for_and_why_it_finds_no_room_is_noted(extra: Extra) -> None:
    extra.create(member("g3", gated=True), member("g4"))
    assert extra.note() is planner.Cause.ROOM
    request = extra.asked[0]
    assert ([info.pod.name for info in request.members], request.needed) == (["g2", "g3"], 1)
    assert extra.group.last_diagnosis == Diagnosis(UnschedulableReason.EXTRA_MEMBERS_WAIT, TEXT, extra.world.clock.now)


def test_where_there_is_room_for_it_nothing_is_noted(extra: Extra) -> None:
    extra.world.nodes["n2"] = node("n2", "1")
    assert extra.note() is None
    assert len(extra.asked) == 1
    assert extra.group.last_diagnosis is None


def _lacks_one(extra: Extra) -> None:
    extra.apply(group(minimum=3))


def _has_no_object(extra: Extra) -> None:
    extra.remove(extra.groups["default/g"])


def _is_alone(extra: Extra) -> None:
    extra.delete(extra.pods["default/g2"])


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param(_lacks_one, id="it lacks a member"),
        pytest.param(_has_no_object, id="its object is gone"),
        pytest.param(_is_alone, id="no member is left over"),
    ],
)
def test_no_plan_is_asked_for_extra_members_of_a_gang_where(happened: Callable[[Extra], None], extra: Extra) -> None:
    happened(extra)
    assert extra.note() is None
    assert extra.asked == []


def test_no_plan_is_asked_for_those_of_another_scheduler(extra: Extra) -> None:
    assert extra.note("another") is None
    assert extra.asked == []


def test_one_is_asked_for_alone_whatever_the_gang_asked_for_before(extra: Extra) -> None:
    question = extra.question()
    minimum = planner.Minimum(frozenset(("default/g2",)), 1, "minMember", 2)
    foreseen = planner.Foreseen(PodInfo(member("like")), Resource())
    before = replace(question.request, minima=(minimum, minimum), needed=2, foreseen=foreseen)
    asked = one_extra_member(question.asking(before), (extra.group,)).request
    assert (asked.minima, asked.foreseen, asked.needed) == ((), None, 1)


def test_none_is_asked_for_where_our_gate_holds_none(extra: Extra) -> None:
    extra.delete(extra.pods["default/g2"])
    asked = one_extra_member(extra.question(), (extra.group,)).request
    assert (list(asked.members), asked.needed) == ([], 0)


def _has_a_place(extra: Extra) -> None:
    extra.world.nodes["n2"] = node("n2", "1")
    extra.plugin.on_node(None, extra.world.nodes["n2"])
    extra.world.run_tasks()


@pytest.mark.parametrize(
    ("happened", "left"),
    [
        pytest.param(lambda extra: None, True, id="our gate holds one that has no place"),
        pytest.param(_is_alone, False, id="it is gone"),
        pytest.param(_has_a_place, False, id="it has a place"),
    ],
)
def test_whether_members_are_left_over(happened: Callable[[Extra], None], left: bool, extra: Extra) -> None:
    happened(extra)
    manager = extra.plugin.manager
    with manager.lock:
        assert left_over(manager, extra.group) is left


def _was_refused_for_room(extra: Extra) -> None:
    extra.group.last_diagnosis = Diagnosis(UnschedulableReason.INSUFFICIENT_RESOURCES, TEXT)


def _was_refused_for_nothing(extra: Extra) -> None:
    extra.group.last_diagnosis = None


@pytest.mark.parametrize(
    ("happened", "said"),
    [
        pytest.param(
            lambda extra: None, FailedCheck(UnschedulableReason.EXTRA_MEMBERS_WAIT, TEXT, ""), id="the gang runs"
        ),
        pytest.param(_was_refused_for_room, None, id="it was refused for another cause"),
        pytest.param(_was_refused_for_nothing, None, id="it was not refused"),
        pytest.param(_is_alone, None, id="they are gone"),
        pytest.param(_lacks_one, None, id="the gang asks for one of them now"),
    ],
)
def test_what_a_running_gang_says_of_them(
    happened: Callable[[Extra], None], said: FailedCheck | None, extra: Extra
) -> None:
    extra.note()
    happened(extra)
    manager = extra.plugin.manager
    with manager.lock:
        assert extra_members_wait(manager, extra.group) == said
