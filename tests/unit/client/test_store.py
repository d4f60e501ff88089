"""What a store finds, by key and by namespace, and what it returns of what was there."""

from __future__ import annotations

from extender.api import corev1
from extender.client.store import Store
from tests.objects import make_pod


def a_pod(name: str, namespace: str = "a", node: str = "") -> corev1.Pod:
    return make_pod().name(name).namespace(namespace).node(node).obj()


def of(*pods: corev1.Pod) -> Store[corev1.Pod]:
    store: Store[corev1.Pod] = Store()
    for pod in pods:
        store.put(pod)
    return store


def test_pods_of_one_name_in_two_namespaces_are_two() -> None:
    here, there = a_pod("p", "a"), a_pod("p", "b")
    store = of(here, there)
    assert (len(store), store.get("a/p"), store.get("b/p"), store.get("c/p")) == (2, here, there, None)
    assert list(store.keys()) == ["a/p", "b/p"]
    assert list(store.list()) == [here, there]
    assert [list(store.by_namespace(name)) for name in "abc"] == [[here], [there], []]


def test_what_is_put_takes_the_place_of_what_had_its_key() -> None:
    old, new = a_pod("p"), a_pod("p", node="n1")
    store = of()
    assert store.put(old) is None
    assert store.put(new) is old
    assert list(store.list()) == list(store.by_namespace("a")) == [new]


def test_what_is_removed_is_in_no_list_and_its_neighbour_stays() -> None:
    gone, stays = a_pod("gone"), a_pod("stays")
    store = of(gone, stays)
    assert store.remove("a/gone") is gone
    assert store.remove("a/gone") is None
    assert list(store.list()) == list(store.by_namespace("a")) == [stays]
    assert store.remove("a/stays") is stays
    assert list(store.by_namespace("a")) == []


def test_a_list_stays_as_it_was_while_the_store_changes() -> None:
    """Readers go through it while the watch goes on."""
    first = a_pod("first")
    store = of(first)
    lists = store.list(), store.by_namespace("a"), store.keys()
    store.put(a_pod("second"))
    assert [list(each) for each in lists] == [[first], [first], ["a/first"]]


def test_namespaces_that_come_and_go_leave_nothing() -> None:
    """Thousands do in a cluster of short-lived ones."""
    store = of()
    for number in range(10):
        store.put(a_pod("p", f"team-{number}"))
        store.remove(f"team-{number}/p")
    assert not store._by_namespace
