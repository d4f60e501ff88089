"""Which pods DefaultPreemption evicts, where, and how that is done and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from extender.api import corev1
from extender.client.interface import PODS
from extender.config.plugin_args import DefaultPreemptionArgs
from extender.framework.interface import NominatingMode, PostFilterResult
from extender.framework.listers import NodeInfoLister
from extender.framework.preemption.candidate import Victims
from extender.framework.preemption.interface import ExtenderCallError
from extender.framework.status import Code
from tests.objects import (
    HOSTNAME,
    NodeBuilder,
    PodBuilder,
    PodDisruptionBudgetBuilder,
    make_node,
    make_pdb,
    make_pod,
    selector,
)
from tests.unit.plugins.preemption_world import PreemptionWorld

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
APP = {"app": "a"}


def _node(name: str, cpu: int = 2) -> NodeBuilder:
    return make_node().name(name).capacity(cpu=cpu).label(HOSTNAME, name)


def _pod(name: str, node: str = "", priority: int = 0, cpu: str = "1") -> PodBuilder:
    pod = make_pod().name(name).priority(priority).req(cpu=cpu)
    return pod.node(node).start_time(EARLY) if node else pod


PREEMPTOR = _pod("preemptor", priority=100)


def _nominated(node: str) -> PostFilterResult:
    return PostFilterResult(node, NominatingMode.OVERRIDE)


@pytest.mark.parametrize(
    ("pods", "pdbs", "preemptor", "victims"),
    [
        pytest.param(
            [_pod("a", "n1", 10), _pod("b", "n1", 5)], [], PREEMPTOR, {"b"}, id="the least important of a node"
        ),
        pytest.param(
            [_pod("a", "n1", 5), _pod("b", "n1", 5).start_time(LATE)], [], PREEMPTOR, {"b"}, id="the younger of equals"
        ),
        pytest.param(
            [_pod("a", "n1", 10), _pod("b", "n1", 5)],
            [],
            _pod("preemptor", priority=100, cpu="2"),
            {"a", "b"},
            id="both where one is not enough",
        ),
        pytest.param(
            [
                _pod("a", "n1", 10).labels(APP),
                _pod("b", "n1", 10).start_time(LATE).labels(APP),
                _pod("c", "n2", 10, "2"),
            ],
            [make_pdb().name("pdb").match(APP)],
            PREEMPTOR,
            {"c"},
            id="a node whose victims no budget protects",
        ),
        pytest.param(
            [_pod("a", "n1", 5).labels(APP), _pod("b", "n1", 10)],
            [make_pdb().name("pdb").match(APP)],
            PREEMPTOR,
            {"b"},
            id="a pod that a budget protects is spared before a more important one",
        ),
        pytest.param(
            [_pod("a", "n1", 100), _pod("b", "n1", 5)], [], PREEMPTOR, {"b"}, id="no pod of the same priority"
        ),
        pytest.param(
            [_pod("a", "n1", 10), _pod("b", "n1", 5).labels(APP)],
            [],
            _pod("preemptor", priority=100, cpu="100m").pod_anti_affinity(HOSTNAME, selector(APP)),
            {"b"},
            id="the pod in the way of an anti-affinity, not the one that takes the room",
        ),
    ],
)
def test_victims(
    pods: Sequence[PodBuilder], pdbs: Sequence[PodDisruptionBudgetBuilder], preemptor: PodBuilder, victims: set[str]
) -> None:
    nodes = sorted({pod.obj().node_name for pod in pods})
    world = PreemptionWorld([_node(name) for name in nodes], [*pods, preemptor], pdbs=pdbs)
    before = world.alive()
    result, status = world.post_filter(world.pod("preemptor"))
    assert status.success, status
    world.run_jobs()
    assert before - world.alive() == victims
    assert result is not None
    assert result.mode is NominatingMode.OVERRIDE


@pytest.mark.parametrize(
    ("pods", "preemptor", "message", "result"),
    [
        pytest.param(
            [_pod("a", "n1", 5, "2")],
            PREEMPTOR.preemption_policy("Never"),
            "preemption: not eligible due to preemptionPolicy=Never.",
            None,
            id="a pod that may not preempt",
        ),
        pytest.param(
            [_pod("a", "n1", 5, "2").terminating().condition("DisruptionTarget", "True", "PreemptionByScheduler")],
            PREEMPTOR.nominated_node_name("n1"),
            "preemption: not eligible due to a terminating pod on the nominated node.",
            None,
            id="a pod whose victim is on its way out",
        ),
        pytest.param(
            [_pod("a", "n1", 100, "2")],
            PREEMPTOR,
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            _nominated(""),
            id="no pod of lower priority",
        ),
        pytest.param(
            [_pod("a", "n1", 5)],
            _pod("preemptor", priority=100, cpu="3"),
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            _nominated(""),
            id="more than the node has: no eviction helps",
        ),
        pytest.param(
            [_pod("a", "n1", 100), _pod("b", "n1", 5)],
            _pod("preemptor", priority=100, cpu="2"),
            "preemption: 0/1 nodes are available: 1 Insufficient cpu.",
            _nominated(""),
            id="not enough even when all of lower priority are gone",
        ),
    ],
)
def test_no_pod_is_evicted(
    pods: Sequence[PodBuilder], preemptor: PodBuilder, message: str, result: PostFilterResult | None
) -> None:
    world = PreemptionWorld([_node("n1")], [*pods, preemptor])
    answer, status = world.post_filter(world.pod("preemptor"))
    assert (status.code, status.message, answer) == (Code.UNSCHEDULABLE, message, result)
    assert not world.jobs


@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(_pod("a", "n1", 5, "2").terminating(), id="terminating for another reason"),
        pytest.param(
            _pod("a", "n1", 5, "2").terminating().condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),
            id="evicted by another controller",
        ),
        pytest.param(
            _pod("a", "n1", 5, "2")
            .terminating()
            .condition("DisruptionTarget", "False", "PreemptionByScheduler")
            .condition("DisruptionTarget", "True", "PreemptionByScheduler"),
            id="only the first condition counts",
        ),
    ],
)
def test_other_terminating_pods_do_not_stop_a_preemptor(victim: PodBuilder) -> None:
    world = PreemptionWorld([_node("n1")], [victim, PREEMPTOR.nominated_node_name("n1")])
    result, status = world.post_filter(world.pod("preemptor"))
    assert status.success
    assert result == _nominated("n1")
    assert not world.jobs, "a pod that is going already is not deleted again"


def test_the_story_of_an_eviction() -> None:
    lower = _pod("lower", priority=50, cpu="2").nominated_node_name("n1")
    world = PreemptionWorld([_node("n1")], [_pod("a", "n1", 10), _pod("b", "n1", 5), lower])
    world.nominator.add(world.pod("lower"))
    preemptor = world.add(_pod("preemptor", priority=100, cpu="2"))
    result, status = world.post_filter(preemptor)
    assert status.success
    assert result == _nominated("n1")
    assert world.plugin.pre_enqueue(preemptor).message == "waiting for the preemption for this pod to be finished"

    watched = world.api.list_page(PODS).resource_version
    world.run_jobs()
    assert world.alive() == {"lower", "preemptor"}
    assert world.plugin.pre_enqueue(preemptor).success
    assert not world.api.get(PODS, "lower", "default").status.nominated_node_name
    note = f"Preempted by pod {preemptor.uid} on node n1"
    assert world.events.seen == [("a", "Preempted", note), ("b", "Preempted", note)]
    told = []
    with_watch = world.api.watch(PODS, resource_version=watched)
    for event in with_watch:
        pod = event.object
        assert isinstance(pod, corev1.Pod)
        if event.type.value == "DELETED":
            condition = next(known for known in pod.status.conditions if known.type == "DisruptionTarget")
            told.append((pod.name, condition.status, condition.reason, condition.message))
        if len(told) == 2:
            with_watch.stop()
            break
    text = "default-scheduler: preempting to accommodate a higher priority pod"
    assert told == [(name, "True", "PreemptionByScheduler", text) for name in ("a", "b")]


def test_a_preemptor_whose_eviction_failed_is_tried_again() -> None:
    world = PreemptionWorld([_node("n1")], [_pod("a", "n1", 10, "2")])
    preemptor = world.add(PREEMPTOR)
    victim = world.pod("a")
    world.post_filter(preemptor)
    world.api.delete(PODS, "a", "default")
    world.add(_pod("a", "", 10))  # another pod of the name: its UID is not the victim's
    assert world.api.get(PODS, "a", "default").uid != victim.uid
    world.run_jobs()
    assert world.activated == ["preemptor"]
    assert "a" in world.alive()


@pytest.mark.faults
@pytest.mark.parametrize("call", ["patch", "delete", "event"])
def test_a_preemptor_is_tried_again_after_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Or it was never tried again: only its victims' deletion would have brought it back."""
    lower = _pod("lower", priority=50, cpu="2").nominated_node_name("n1")
    world = PreemptionWorld([_node("n1")], [_pod("a", "n1", 10), _pod("b", "n1", 5), lower])
    preemptor = world.add(PREEMPTOR)
    world.post_filter(preemptor)

    def broken(*args: object, **options: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(world.events if call == "event" else world.api, call, broken)
    world.run_jobs()
    assert world.activated == ["preemptor"]
    assert not world.plugin.executor.is_running_preemption(preemptor.uid)


def test_a_victim_that_is_gone_already_is_no_error() -> None:
    world = PreemptionWorld([_node("n1")], [_pod("a", "n1", 10, "2")])
    preemptor = world.add(PREEMPTOR)
    world.post_filter(preemptor)
    world.api.delete(PODS, "a", "default")
    world.run_jobs()
    assert (world.activated, world.events.seen) == ([], [])


def test_a_waiting_pod_is_preempted_in_memory() -> None:
    world = PreemptionWorld([_node("n1")], [_pod("a", "n1", 10, "2")])
    preemptor = world.add(PREEMPTOR)
    victim = world.pod("a")
    world.framework.add_waiting_pod(victim, "n1", {"Coscheduling": 60.0})
    world.post_filter(preemptor)
    world.run_jobs()
    status = world.framework.wait_on_permit(victim)
    assert (status.code, status.message) == (Code.ERROR, "waiting on permit for pod: preempted")
    assert "a" in world.alive()
    assert world.events.seen[0][2].endswith("on node n1 (in kube-scheduler memory).")


def test_a_pod_in_pre_bind_is_cancelled() -> None:
    world = PreemptionWorld([_node("n1")], [_pod("a", "n1", 10, "2")])
    preemptor = world.add(PREEMPTOR)
    victim = world.pod("a")
    with world.framework.pods_in_pre_bind.running(victim.uid) as running:
        world.post_filter(preemptor)
        world.run_jobs()
        assert running.finish() == "preempted by DefaultPreemption"
    assert "a" in world.alive()


@pytest.mark.parametrize(
    ("args", "nodes", "enough"),
    [
        pytest.param(DefaultPreemptionArgs(10, 100), 50, 50, id="never more than there are"),
        pytest.param(DefaultPreemptionArgs(10, 100), 500, 100, id="at least the absolute number"),
        pytest.param(DefaultPreemptionArgs(10, 100), 5000, 500, id="the percentage where that is more"),
        pytest.param(DefaultPreemptionArgs(0, 1), 5000, 1, id="one"),
    ],
)
def test_how_many_candidates_are_enough(args: DefaultPreemptionArgs, nodes: int, enough: int) -> None:
    offset, number = PreemptionWorld([_node("n1")], [], args=args).plugin.get_offset_and_num_candidates(nodes)
    assert 0 <= offset < nodes
    assert number == enough


class FakeExtender:
    """Answers with `answer`, or fails if that is None."""

    name = "fake"
    supports_preemption = True

    def __init__(self, answer: set[str] | None, *, ignorable: bool = False, interested: bool = True) -> None:
        self._answer = answer
        self._interested = interested
        self.ignorable = ignorable
        self.asked: list[set[str]] = []

    def is_interested(self, pod: corev1.Pod) -> bool:
        return self._interested

    def process_preemption(
        self, pod: corev1.Pod, victims: Mapping[str, Victims], nodes: NodeInfoLister
    ) -> dict[str, Victims]:
        self.asked.append(set(victims))
        if self._answer is None:
            raise ExtenderCallError("it does not answer")
        return {
            name: Victims(()) if f"{name}!" in self._answer else found
            for name, found in victims.items()
            if {name, f"{name}!"} & self._answer
        }


@pytest.mark.parametrize(
    ("extenders", "code", "outcome"),
    [
        pytest.param([FakeExtender({"n2"})], Code.SUCCESS, "n2", id="takes the node that is left"),
        pytest.param(
            [FakeExtender({"n1", "n2"}), FakeExtender({"n1"})],
            Code.SUCCESS,
            "n1",
            id="the second sees what the first left",
        ),
        pytest.param(
            [FakeExtender(set())], Code.UNSCHEDULABLE, "preemption: no candidate node for preemption", id="a veto"
        ),
        pytest.param([FakeExtender(None)], Code.ERROR, "preemption: it does not answer", id="its failure is an error"),
        pytest.param(
            [FakeExtender(None, ignorable=True), FakeExtender({"n2"})], Code.SUCCESS, "n2", id="unless ignorable"
        ),
        pytest.param(
            [FakeExtender({"n1!", "n2"})],
            Code.ERROR,
            'preemption: expected at least one victim pod on node "n1"',
            id="a node without victims is an error",
        ),
        pytest.param(
            [FakeExtender({"n1!", "n2"}, ignorable=True)], Code.SUCCESS, "n2", id="dropped if it is ignorable"
        ),
        pytest.param(
            [FakeExtender(None, interested=False), FakeExtender({"n1"})], Code.SUCCESS, "n1", id="not asked at all"
        ),
    ],
)
def test_extenders(extenders: list[FakeExtender], code: Code, outcome: str) -> None:
    nodes, pods = [_node("n1"), _node("n2")], [_pod("a", "n1", 1, "2"), _pod("b", "n2", 9, "2")]
    world = PreemptionWorld(nodes, [*pods, PREEMPTOR], extenders=extenders)
    result, status = world.post_filter(world.pod("preemptor"))
    assert status.code is code
    assert (result.nominated_node_name if result is not None else status.message) == outcome


def test_a_pod_that_the_lister_does_not_have_is_an_error() -> None:
    world = PreemptionWorld([_node("n1")], [_pod("a", "n1", 5, "2")])
    _, status = world.post_filter(PREEMPTOR.obj())
    assert (status.code, status.message) == (Code.ERROR, 'preemption: pod "preemptor" not found')


def test_victims_of_nominated_pods_room_are_not_enough() -> None:
    """A nominated pod of the same priority takes part of what the victim frees."""
    world = PreemptionWorld(
        [_node("n1")], [_pod("a", "n1", 5, "2"), _pod("other", "", 100, "1").nominated_node_name("n1")]
    )
    world.nominator.add(world.pod("other"))
    preemptor = world.add(_pod("preemptor", priority=100, cpu="2"))
    result, status = world.post_filter(preemptor)
    assert status.code is Code.UNSCHEDULABLE
    assert result == _nominated("")
