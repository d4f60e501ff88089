"""Where pods are nominated, and what each update does to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from extender.api import corev1
from extender.backend.queue.nominator import Nominator
from extender.framework import listers
from extender.framework.interface import NominatingMode, PostFilterResult
from tests.unit.backend.objects import a_pod


def override(node: str) -> PostFilterResult:
    return PostFilterResult(node, NominatingMode.OVERRIDE)


class Pods:
    """The informer's pods."""

    def __init__(self, *pods: corev1.Pod) -> None:
        self.pods = {pod.key: pod for pod in pods}

    def list(self) -> Sequence[corev1.Pod]:
        return [*self.pods.values()]

    def by_namespace(self, namespace: str) -> Iterable[corev1.Pod]:
        return self.pods.values()

    def get(self, key: str) -> corev1.Pod | None:
        return self.pods.get(key)


@pytest.mark.parametrize(
    ("pod", "info", "node"),
    [
        pytest.param(a_pod("p"), None, None, id="nothing names a node"),
        pytest.param(a_pod("p", nominated="n1"), None, "n1", id="its status names one"),
        pytest.param(a_pod("p", nominated="n1"), override("n2"), "n2", id="override wins over the status"),
        pytest.param(a_pod("p", nominated="n1"), PostFilterResult("n2"), "n1", id="noop leaves it to the status"),
        pytest.param(a_pod("p", nominated="n1"), override(""), "", id="override with no node is kept under no node"),
    ],
)
def test_add(pod: corev1.Pod, info: PostFilterResult | None, node: str | None) -> None:
    nominator = Nominator()
    nominator.add(pod, info)
    assert nominator.nominated_node("uid-p") == node
    assert list(nominator.nominated_pods()) == ([] if node is None else [node])


def test_add_again_takes_the_place_of_the_first() -> None:
    nominator = Nominator()
    nominator.add(a_pod("p"), override("n1"))
    nominator.add(a_pod("p"), override("n2"))
    assert list(nominator.nominated_pods()) == ["n2"]
    nominator.add(a_pod("p"), None)
    assert nominator.nominated_pods() == {}


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        pytest.param([a_pod("p")], True, id="waiting in the informer"),
        pytest.param([], False, id="not in the informer"),
        pytest.param([a_pod("p", "n3")], False, id="has a node by now"),
    ],
)
def test_add_asks_the_informer(seen: list[corev1.Pod], kept: bool) -> None:
    nominator = Nominator(Pods(*seen))
    nominator.add(a_pod("p"), override("n1"))
    assert (nominator.nominated_node("uid-p") == "n1") is kept


@pytest.mark.parametrize(
    ("old", "new", "node"),
    [
        pytest.param("", "", "n0", id="neither names a node: the one in memory stays"),
        pytest.param("", "n1", "n1", id="named now"),
        pytest.param("n0", "n1", "n1", id="named anew"),
        pytest.param("n0", "", None, id="no longer named"),
    ],
)
def test_update(old: str, new: str, node: str | None) -> None:
    nominator = Nominator()
    nominator.add(a_pod("p"), override("n0"))
    nominator.update_nominated_pod(a_pod("p", nominated=old), a_pod("p", nominated=new))
    assert nominator.nominated_node("uid-p") == node


def test_update_of_a_pod_that_is_not_nominated_nominates_nothing() -> None:
    nominator = Nominator()
    nominator.update_nominated_pod(a_pod("p"), a_pod("p"))
    assert nominator.nominated_pods() == {}


def test_delete_leaves_the_others() -> None:
    nominator: listers.Nominator = Nominator()
    for name in ("p", "q", "r"):
        nominator.add_nominated_pod(a_pod(name), "n1")
    nominator.delete_nominated_pod_if_exists(a_pod("q"))
    nominator.delete_nominated_pod_if_exists(a_pod("unknown"))
    assert [pod.name for pod in nominator.nominated_pods_for_node("n1")] == ["p", "r"]
    assert nominator.nominated_pods_for_node("n2") == []


def test_pods_are_looked_up_and_bare_where_they_are_unknown() -> None:
    full = a_pod("p", priority=7)
    nominator = Nominator(lookup=lambda ref: full if ref.name == "p" else None)
    nominator.add(a_pod("p"), override("n1"))
    nominator.add(a_pod("gone", priority=9), override("n1"))
    known, bare = nominator.nominated_pods_for_node("n1")
    assert known is full
    assert (bare.name, bare.uid, bare.priority, bare.spec.containers) == ("gone", "uid-gone", 0, ())


def test_without_a_queue_the_informer_knows_the_pods_but_not_one_made_anew() -> None:
    pods = Pods(a_pod("p", priority=7))
    nominator = Nominator(pods)
    nominator.add(a_pod("p"), override("n1"))
    assert nominator.nominated_pods_for_node("n1")[0].priority == 7
    pods.pods["default/p"] = a_pod("p", uid="new", priority=8)
    assert nominator.nominated_pods_for_node("n1")[0].priority == 0


@pytest.mark.parametrize(
    ("known", "others"),
    [
        pytest.param({"uid-a", "uid-b"}, [], id="all are known"),
        pytest.param({"uid-a", "uid-b", "uid-c"}, [], id="and more"),
        pytest.param({"uid-a"}, [("n1", "b")], id="one is not"),
        pytest.param(set(), [("n1", "a"), ("n1", "b")], id="none is"),
    ],
)
def test_nominated_pods_but_those_that_are_known(known: set[str], others: list[tuple[str, str]]) -> None:
    nominator = Nominator()
    for name in ("a", "b"):
        nominator.add(a_pod(name, nominated="n1"))
    nominator.add(a_pod("nowhere", nominated="n1"), override(""))
    assert [(name, pod.name) for name, pod in nominator.nominated_pods_but(known)] == others


def test_a_pod_that_is_bound_while_it_is_nominated_is_nominated_nowhere() -> None:
    """It was counted on its node twice, until it was deleted. The lister is asked in the same step, so that what says that it is bound
    comes after.
    """

    class Locked(Pods):
        def get(self, key: str) -> corev1.Pod | None:
            locked.append(nominator._lock.locked())
            return super().get(key)

    locked: list[bool] = []
    pod = a_pod("p")
    nominator = Nominator(Locked(pod))
    nominator.add(pod, override("n1"))
    nominator.update_nominated_pod(pod, pod)
    assert locked == [True, True]
    assert nominator.nominated_node(pod.uid) == "n1"
