"""The heap gives pods in order whatever was put, replaced and removed before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extender.backend.queue.pod_heap import PodHeap
from extender.backend.queue.queued_pod import QueuedPod
from extender.framework.pod_info import PodInfo
from tests.unit.backend.objects import a_pod

PODS = {(name, priority): a_pod(name, priority=priority) for name in "abcdefgh" for priority in range(3)}
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "pop"]), st.sampled_from(list("abcdefgh")), st.integers(0, 2))
)


def by_priority(first: QueuedPod, second: QueuedPod) -> bool:
    return first.pod.priority > second.pod.priority


def entry(name: str, priority: int) -> QueuedPod:
    return QueuedPod(PodInfo(PODS[name, priority]), 0.0)


@given(STEPS)
def test_like_a_sorted_dict(steps: list[tuple[str, str, int]]) -> None:
    heap, model = PodHeap(by_priority), dict[str, int]()
    for what, name, priority in [*steps, *[("pop", "", 0)] * 9]:
        key = f"default/{name}"
        if what == "put":
            heap.put(entry(name, priority))
            model[name] = priority
        elif what == "remove":
            assert (heap.remove(key) is None) is (model.pop(name, None) is None)
        else:
            popped = heap.pop()
            assert (popped is None) is (not model)
            if popped is not None:
                assert popped.pod.priority == max(model.values()) == model.pop(popped.pod.name)
        assert len(heap) == len(model)
        assert {each.pod.name for each in heap} == set(model)


def test_equals_leave_in_order_of_arrival_and_a_replaced_one_keeps_its_place() -> None:
    heap = PodHeap(by_priority)
    for name in "abc":
        heap.put(entry(name, 1))
    heap.put(entry("a", 1))
    assert [each.pod.name for each in iter(heap.pop, None)] == ["a", "b", "c"]


def test_replacing_one_pod_forever_does_not_grow_the_heap() -> None:
    heap = PodHeap(by_priority)
    for _ in range(1000):
        heap.put(entry("a", 1))
    assert len(heap._heap) < 50
    assert heap.peek() is not None
