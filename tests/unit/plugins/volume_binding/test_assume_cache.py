"""Assumed objects. kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache_test.go"""

from __future__ import annotations

import pytest

from extender.api import corev1
from extender.client.store import Store
from extender.plugins.volume_binding.assume_cache import AssumeCache, AssumeError
from tests.unit.plugins.storage import make_volume

FIRST = make_volume("v", version="1")
ASSUMED = make_volume("v", version="1", annotations={"assumed": "yes"})
SECOND = make_volume("v", version="2")


@pytest.fixture
def store() -> Store[corev1.PersistentVolume]:
    store: Store[corev1.PersistentVolume] = Store()
    store.put(FIRST)
    return store


@pytest.fixture
def cache(store: Store[corev1.PersistentVolume]) -> AssumeCache[corev1.PersistentVolume]:
    return AssumeCache(lambda: store, "persistentvolumes")


def test_an_assumed_object_stands_for_the_watched_one(
    store: Store[corev1.PersistentVolume], cache: AssumeCache[corev1.PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    assert cache.get("v") is ASSUMED
    assert list(cache.by_index("")) == [ASSUMED]
    assert cache.get_api_object("v") is FIRST


def test_what_is_assumed_stays_so_when_others_are_assumed_after_it(
    store: Store[corev1.PersistentVolume], cache: AssumeCache[corev1.PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    for name in ("w", "x"):
        store.put(make_volume(name, version="1"))
        cache.assume(make_volume(name, version="1", annotations={"assumed": "yes"}))
    assert cache.get("v") is ASSUMED
    store.put(SECOND)
    assert cache.get("v") is SECOND


def test_the_watch_overtakes_what_was_assumed(
    store: Store[corev1.PersistentVolume], cache: AssumeCache[corev1.PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    store.put(SECOND)
    assert cache.get("v") is SECOND
    store.put(FIRST)
    cache.assume(make_volume("v", version="1", annotations={"assumed": "again"}))
    assert cache.get("v") != ASSUMED


def test_what_is_restored_is_as_the_watch_shows_it(cache: AssumeCache[corev1.PersistentVolume]) -> None:
    cache.assume(ASSUMED)
    cache.restore(SECOND)
    assert cache.get("v") is ASSUMED, "another version's assumption is not given back"
    cache.restore(ASSUMED)
    assert cache.get("v") is FIRST
    cache.restore(ASSUMED)


def test_a_deleted_object_is_not_there(
    store: Store[corev1.PersistentVolume], cache: AssumeCache[corev1.PersistentVolume]
) -> None:
    cache.assume(ASSUMED)
    store.remove("v")
    assert cache.get("v") is None
    assert list(cache.by_index("")) == []


@pytest.mark.parametrize(
    ("volume", "text"),
    [
        pytest.param(make_volume("gone"), 'persistentvolumes "gone" not found', id="gone"),
        pytest.param(SECOND, '"v" is out of sync (stored: 1, assume: 2)', id="of another version"),
    ],
)
def test_what_cannot_be_assumed(
    volume: corev1.PersistentVolume, text: str, cache: AssumeCache[corev1.PersistentVolume]
) -> None:
    with pytest.raises(AssumeError) as raised:
        cache.assume(volume)
    assert str(raised.value) == text


def test_what_the_watch_has_overtaken_is_forgotten(
    store: Store[corev1.PersistentVolume], cache: AssumeCache[corev1.PersistentVolume]
) -> None:
    for number in range(100):
        name = f"v{number}"
        store.put(make_volume(name))
        cache.assume(make_volume(name))
        store.put(make_volume(name, version="2"))
    assert len(cache._assumed) == 1


def test_objects_are_sorted_once_for_as_long_as_they_are_the_same(store: Store[corev1.PersistentVolume]) -> None:
    """Each member of a gang asks, and a cluster has thousands."""
    sorted_: list[str] = []

    def name(volume: corev1.PersistentVolume) -> str:
        sorted_.append(volume.metadata.name)
        return volume.metadata.name

    cache = AssumeCache(lambda: store, "persistentvolumes", name)
    for _ in range(3):
        assert list(cache.by_index("v")) == [FIRST]
    assert sorted_ == ["v"]
    store.put(make_volume("w", version="1"))
    assert [volume.metadata.name for volume in cache.by_index("w")] == ["w"]
    store.put(SECOND)
    assert list(cache.by_index("v")) == [SECOND]
    store.remove("v")
    assert list(cache.by_index("v")) == []
