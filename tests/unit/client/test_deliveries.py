"""A handler that raises misses nothing for good: it hears of the object again, and keeps no other handler waiting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.client import deliveries
from extender.client.deliveries import Deliveries

pytestmark = pytest.mark.faults


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Mirror:
    """Keeps what it is told by UID, as a cache does; raises before or after it has done so, for the names that are ill."""

    def __init__(self) -> None:
        self.objects: dict[str, str] = {}
        self.story: list[str] = []
        self.ill: set[str] = set()
        self.half_way = False

    def _hear(self, text: str, obj: Any, version: str | None) -> None:
        self.story.append(text)
        if obj.metadata.name in self.ill and not self.half_way:
            raise ValueError("as it happens")
        if version is None:
            self.objects.pop(obj.metadata.uid, None)
        else:
            self.objects[obj.metadata.uid] = version
        if obj.metadata.name in self.ill:
            raise ValueError("when half of it was done")

    def on_add(self, obj: Any) -> None:
        self._hear(f"+{obj.metadata.uid}@{obj.metadata.resource_version}", obj, obj.metadata.resource_version)

    def on_update(self, old: Any, new: Any) -> None:
        if old.metadata.uid != new.metadata.uid:
            self.on_delete(old)
            self.on_add(new)
            return
        self._hear(f"~{_version(old)}>{_version(new)}", new, _version(new))

    def on_delete(self, obj: Any) -> None:
        self._hear(f"-{obj.metadata.uid}", obj, None)


def _version(obj: Any) -> str:
    return str(obj.metadata.resource_version)


def obj(name: str, version: int = 1, uid: str = "") -> Any:
    return corev1.Pod(ObjectMeta(name=name, uid=uid or name, resource_version=str(version)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mirror() -> Mirror:
    return Mirror()


@pytest.fixture
def told(mirror: Mirror, clock: Clock) -> Deliveries[Any]:
    return Deliveries(mirror, "handler-test", clock)


def test_what_raised_comes_again_after_a_second_though_nothing_happens(
    told: Deliveries[Any], mirror: Mirror, clock: Clock
) -> None:
    """It was lost to the handler until the object changed again, which may be never."""
    mirror.ill = {"a"}
    told.tell(None, obj("a"))
    mirror.ill = set()
    told.catch_up()
    assert mirror.objects == {}
    clock.now += 1
    told.catch_up()
    assert mirror.objects == {"a": "1"}
    clock.now += 100
    told.catch_up()
    assert mirror.story == ["+a@1", "+a@1"]


def test_an_update_is_told_from_what_was_taken_last_to_what_is_there_now(told: Deliveries[Any], mirror: Mirror) -> None:
    """It was told from what it had never taken, so that it could not see what had changed."""
    told.tell(None, obj("a", 1))
    mirror.ill = {"a"}
    told.tell(obj("a", 1), obj("a", 2))
    mirror.ill = set()
    told.tell(obj("a", 2), obj("a", 3))
    told.tell(obj("a", 3), obj("a", 4))
    assert mirror.story == ["+a@1", "~1>2", "~1>3", "~3>4"]


@pytest.mark.parametrize("half_way", [True, False])
def test_an_object_made_anew_under_the_name_leaves_nothing_of_the_old_behind(
    told: Deliveries[Any], mirror: Mirror, half_way: bool
) -> None:
    mirror.ill, mirror.half_way = {"a"}, half_way
    told.tell(None, obj("a", 1, "u1"))
    told.tell(obj("a", 1, "u1"), None)
    told.tell(None, obj("a", 2, "u2"))
    mirror.ill = set()
    told.tell(obj("a", 2, "u2"), obj("a", 3, "u3"))
    assert mirror.objects == {"u3": "3"}


def test_a_deletion_is_told_even_of_what_came_and_went_meanwhile(
    told: Deliveries[Any], mirror: Mirror, clock: Clock
) -> None:
    """The handler may have taken half of it."""
    mirror.ill, mirror.half_way = {"a"}, True
    told.tell(None, obj("a"))
    mirror.half_way = False
    told.tell(obj("a"), None)
    assert mirror.objects == {"a": "1"}
    mirror.ill = set()
    clock.now += deliveries.RETRY.longest_seconds
    told.catch_up()
    assert mirror.objects == {}


def test_what_always_raises_is_left_alone_ever_longer_and_delays_no_other(
    told: Deliveries[Any], mirror: Mirror, clock: Clock
) -> None:
    mirror.ill = {"bad"}
    told.tell(None, obj("bad"))
    told.tell(None, obj("good"))
    assert mirror.objects == {"good": "1"}
    times = []
    for _ in range(200):
        clock.now += 1
        heard = len(mirror.story)
        told.catch_up()
        if len(mirror.story) > heard:
            times.append(clock.now - 100)
    assert times == [1, 3, 7, 15, 31, 63, 123, 183]


def test_many_that_always_raise_cost_one_exception_a_turn_and_all_are_made_up_for_at_once(
    told: Deliveries[Any], mirror: Mirror, clock: Clock
) -> None:
    names = [f"p{n}" for n in range(50)]
    mirror.ill = set(names)
    for name in names:
        told.tell(None, obj(name))
    clock.now += 1
    mirror.story.clear()
    told.catch_up()
    told.catch_up()
    assert len(mirror.story) == 2
    mirror.ill = {"p7"}
    for _ in range(3):
        clock.now += deliveries.RETRY.longest_seconds
        told.catch_up()
    assert mirror.objects.keys() == set(names) - {"p7"}


def test_no_more_is_noted_than_memory_bears(
    told: Deliveries[Any], mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "MAX_BEHIND", 2)
    mirror.ill = {"a", "b", "c"}
    for name in "abc":
        told.tell(None, obj(name))
    assert len(told._behind) == 2


STEP = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["put", "put", "remove", "anew", "catch up"]),
    st.sets(st.sampled_from("abc")),
    st.booleans(),
)


@given(st.lists(STEP, max_size=30))
def test_whatever_raised_when_in_the_end_the_handler_knows_what_is_there(steps: list[Any]) -> None:
    clock, mirror = Clock(), Mirror()
    told: Deliveries[Any] = Deliveries(mirror, "handler-test", clock)
    store: dict[str, Any] = {}
    for version, (name, what, ill, half_way) in enumerate(steps):
        mirror.ill, mirror.half_way = ill, half_way
        old = store.get(name)
        if what == "catch up":
            clock.now += version
            told.catch_up()
        elif what == "remove":
            if store.pop(name, None) is not None:
                told.tell(old, None)
        else:
            uid = old.metadata.uid if old is not None and what == "put" else f"{name}{version}"
            store[name] = obj(name, version, uid)
            told.tell(old, store[name])
    mirror.ill = set()
    clock.now += deliveries.RETRY.longest_seconds
    told.catch_up()
    assert mirror.objects == {each.metadata.uid: _version(each) for each in store.values()}
    assert not told._behind
