"""What an informer says of itself, while its reflector tells it what happens; and which informers there are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError, ForbiddenError
from extender.client.informer import STALE_SECONDS, Informer, InformerFactory, InformerState
from extender.client.interface import LEASES, NODES, NON_TERMINAL_PODS, POD_GROUPS, PODS, Page, ResourceType, Unreadable
from tests.objects import make_node

READ = "objects that cannot be read: 2, see the log"


@pytest.mark.parametrize(
    ("synced", "served", "optional", "error", "age", "unreadable", "ok", "reason"),
    [
        pytest.param(True, True, False, "", 0.0, 0, True, "", id="all is well"),
        pytest.param(True, True, False, "", STALE_SECONDS - 0.1, 0, True, "", id="a while ago"),
        pytest.param(True, True, False, "", STALE_SECONDS, 0, False, "nothing heard for 120s", id="stale"),
        pytest.param(False, True, False, "", 0.0, 0, False, "not synced", id="not yet synced"),
        pytest.param(False, True, False, "refused", 500.0, 0, False, "refused; not synced", id="and why"),
        pytest.param(True, True, False, "refused", 0.0, 0, True, "refused", id="a failure that may pass"),
        pytest.param(True, True, False, "refused", 121.0, 0, False, "refused; nothing heard for 121s", id="for long"),
        pytest.param(True, True, False, "", 0.0, 2, True, READ, id="objects that cannot be read"),
        pytest.param(True, True, False, "cut", 0.0, 2, True, f"cut; {READ}", id="and a failure"),
        pytest.param(True, False, False, "no", 0.0, 2, False, "not served: no", id="not served"),
        pytest.param(True, False, True, "no", 500.0, 0, True, "not served: no", id="not served, and need not be"),
        pytest.param(
            False, True, True, "", 0.0, 0, False, "not synced", id="optional, and served: it has to be synced"
        ),
    ],
)
def test_state(
    synced: bool, served: bool, optional: bool, error: str, age: float, unreadable: int, ok: bool, reason: str
) -> None:
    state = InformerState("nodes", synced, served, optional, error, age, unreadable)
    assert (state.ok, state.reason) == (ok, reason)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Told:
    def __init__(self) -> None:
        self.story: list[str] = []

    def on_add(self, obj: Any) -> None:
        self.story.append(f"+{obj.metadata.name}")

    def on_update(self, old: Any, new: Any) -> None:
        self.story.append(f"~{new.metadata.name}")

    def on_delete(self, obj: Any) -> None:
        self.story.append(f"-{obj.metadata.name}")


def informer(clock: Clock | None = None, **options: Any) -> tuple[Informer[Any], Told]:
    made, told = Informer(EmbeddedAPI(), NODES, clock=clock or Clock(), **options), Told()
    made.add_handler(told)
    return made, told


def test_nothing_is_known_before_the_first_list() -> None:
    clock = Clock()
    made, _ = informer(clock)
    clock.now += 3.0
    assert made.state == InformerState("nodes", synced=False, served=True, optional=False, error="", age=3.0)
    assert not made.has_synced


def test_a_list_makes_it_synced_and_forgets_what_failed_before() -> None:
    clock = Clock()
    made, _ = informer(clock)
    made.failed(ApiError("no"))
    made.absent()
    clock.now += 3.0
    assert made.state == InformerState("nodes", synced=False, served=False, optional=False, error="no", age=3.0)
    assert not made.has_synced, "a kind that has to be there is not, without it"
    made.replaced()
    assert made.state == InformerState("nodes", synced=True, served=True, optional=False, error="", age=0.0)
    assert made.has_synced


@pytest.mark.faults
def test_what_follows_from_a_list_is_done_before_it_is_synced() -> None:
    """Though something raises."""
    made, _ = informer(Clock())
    seen: list[bool] = []

    def fails() -> None:
        raise RuntimeError("no")

    made.on_listed(fails)
    made.on_listed(lambda: seen.append(made.has_synced))
    made.replaced()
    assert (seen, made.has_synced) == ([False], True)


def test_what_is_heard_makes_it_fresh_and_forgets_the_error() -> None:
    clock = Clock()
    made, _ = informer(clock)
    made.replaced()
    made.failed(ApiError("no"))
    clock.now += 5.0
    assert (made.state.error, made.state.age) == ("no", 5.0), "a failure is no word of the server"
    made.heard()
    assert (made.state.error, made.state.age) == ("", 0.0)


@pytest.mark.parametrize(
    ("optional", "story", "kept"), [pytest.param(True, ["-a", "-b"], [], id="optional"), (False, [], ["a", "b"])]
)
def test_what_is_absent_is_empty_where_it_may_be(optional: bool, story: list[str], kept: list[str]) -> None:
    made, told = informer(optional=optional)
    for name in "ab":
        made.store.put(make_node().name(name).obj())
    made.absent()
    assert told.story == story
    assert list(made.store.keys()) == kept
    assert made.has_synced is optional
    assert made.state.optional is optional


def test_every_handler_hears_of_every_change() -> None:
    made, first = informer()
    second = Told()
    made.add_handler(second)
    old, new = make_node().name("a").obj(), make_node().name("a").obj()
    for change in ((None, old), (old, new), (new, None)):
        made.changed(*change)
    assert first.story == second.story == ["+a", "~a", "-a"]


@pytest.mark.faults
def test_a_handler_that_raised_catches_up(caplog: pytest.LogCaptureFixture) -> None:
    clock, fault = Clock(), [True]

    class Failing(Told):
        def on_add(self, obj: Any) -> None:
            super().on_add(obj)
            if fault and fault.pop():
                raise ValueError("as it happens")

    factory = InformerFactory(EmbeddedAPI(), clock)
    made, told = factory.informer(NODES), Failing()
    made.add_handler(told)
    made.changed(None, make_node().name("a").obj())
    clock.now += 60.0
    factory.catch_up()
    assert told.story == ["+a", "+a"]
    assert "unexpected error where=handler-nodes" in caplog.text


def test_stop_before_start_is_no_fault() -> None:
    made, _ = informer()
    made.stop()


def test_of_each_kind_there_is_one_with_the_options_of_its_first_use() -> None:
    factory = InformerFactory(EmbeddedAPI(), Clock())
    pods, nodes = factory.informer(PODS), factory.informer(NODES, optional=True)
    assert factory.informer(NODES) is nodes
    assert factory.all() == [pods, nodes]
    assert (pods.field_selector, nodes.field_selector) == (NON_TERMINAL_PODS, ""), "pods that have ended need no room"
    assert [state.optional for state in factory.states()] == [False, True]


def test_a_selector_of_ones_own_is_kept() -> None:
    factory = InformerFactory(EmbeddedAPI(), Clock())
    assert factory.informer(PODS, field_selector="spec.nodeName=n1").field_selector == "spec.nodeName=n1"


@pytest.fixture
def started() -> Any:
    api = EmbeddedAPI()
    for namespace in ("a", "b"):
        api.create(PODS, {"metadata": {"name": "p", "namespace": namespace}, "spec": {}})
    api.create(NODES, {"metadata": {"name": "n1"}})
    factories: list[InformerFactory] = []

    def start(make: Callable[[InformerFactory], object]) -> InformerFactory:
        factory = InformerFactory(api)
        make(factory)
        factory.start()
        factories.append(factory)
        return factory

    yield start
    for each in factories:
        each.stop()


def test_all_informers_run_until_they_are_stopped(started: Any) -> None:
    factory = started(lambda factory: [factory.informer(PODS), factory.informer(NODES)])
    assert factory.wait_for_sync(5.0)
    assert factory.has_synced()
    assert sorted(factory.informer(PODS).store.keys()) == ["a/p", "b/p"]
    assert list(factory.store_of(corev1.Node).keys()) == ["n1"]
    assert len(factory.store_of(corev1.Service)) == 0, "no informer watches these"
    names = {f"informer-{resource}" for resource in (PODS, NODES)}
    assert names <= {thread.name for thread in threading.enumerate() if thread.daemon}
    factory.stop()
    assert not names & {thread.name for thread in threading.enumerate()}


def test_one_namespace_may_be_watched_alone(started: Any) -> None:
    factory = started(lambda factory: factory.informer(PODS, namespace="b"))
    assert factory.wait_for_sync(5.0)
    assert list(factory.informer(PODS).store.keys()) == ["b/p"]


def test_while_one_has_not_synced_they_have_not() -> None:
    factory = InformerFactory(EmbeddedAPI())
    factory.informer(PODS).replaced()
    factory.informer(POD_GROUPS)
    assert not factory.has_synced()
    assert not factory.wait_for_sync(0.0)
    factory.informer(POD_GROUPS).replaced()
    assert factory.has_synced()
    assert factory.wait_for_sync(0.0)


def test_a_wait_for_all_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = Clock(), []

    def wait(self: Informer[Any], timeout: float) -> bool:
        asked.append(timeout)
        clock.now += 4.0
        return True

    monkeypatch.setattr(Informer, "wait_for_sync", wait)
    factory = InformerFactory(EmbeddedAPI(), clock)
    factory.informer(PODS)
    factory.informer(NODES)
    factory.informer(POD_GROUPS)
    assert factory.wait_for_sync(6.0)
    assert asked == [6.0, 2.0, 0.0]


class Silent:
    """A watch that shows nothing."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        self._stopped.wait()
        return iter(())

    def stop(self) -> None:
        self._stopped.set()


class Asked:
    """Notes what it is asked for, until the watch; refuses every list if it is told to."""

    def __init__(self, refusal: ApiError | None = None) -> None:
        self.refusal = refusal
        self.calls: list[dict[str, Any]] = []
        self.enough = threading.Event()

    def list_page(self, resource: Any, **how: Any) -> Page[Any]:
        self.calls.append(how)
        if self.refusal is None:
            return Page((), "1")
        if len(self.calls) > 1:
            self.enough.set()
        raise self.refusal

    def watch(self, resource: Any, **how: Any) -> Silent:
        self.calls.append(how)
        self.enough.set()
        return Silent()


def asked(api: Asked, make: Callable[[Any], Informer[Any]]) -> Informer[Any]:
    """Once the watch is open, or the second list was refused; it has stopped then."""
    made = make(api)
    made.start()
    try:
        assert api.enough.wait(5.0)
    finally:
        made.stop()
    return made


def of_a_factory(api: Any, resource: ResourceType[Any], **how: Any) -> Informer[Any]:
    return InformerFactory(api).informer(resource, **how)


@pytest.mark.parametrize(
    ("resource", "options", "selection", "longest"),
    [
        pytest.param(NODES, {}, {"namespace": "", "field_selector": ""}, 30.0, id="everything"),
        pytest.param(
            PODS,
            {"namespace": "a", "field_selector": "x=y"},
            {"namespace": "a", "field_selector": "x=y"},
            30.0,
            id="some",
        ),
        pytest.param(LEASES, {}, {"namespace": "", "field_selector": ""}, 5.0, id="the Lease, a few seconds at a time"),
    ],
)
def test_what_is_listed_and_watched(
    resource: Any, options: dict[str, Any], selection: dict[str, str], longest: float
) -> None:
    api = Asked()
    asked(api, lambda api: of_a_factory(api, resource, **options))
    listed, watched = api.calls
    assert {key: listed[key] for key in selection} == {key: watched[key] for key in selection} == selection
    assert 0.8 * longest <= watched["timeout_seconds"] <= longest


@pytest.mark.parametrize("make", [Informer, of_a_factory])
def test_a_kind_that_we_may_not_read_is_absent_where_that_was_said_and_only_there(make: Any) -> None:
    may_be: dict[str, Any] = {"optional": True, "may_be_forbidden": True}
    assert asked(Asked(ForbiddenError("no")), lambda api: make(api, POD_GROUPS, **may_be)).has_synced
    assert not asked(Asked(ForbiddenError("no")), lambda api: make(api, POD_GROUPS, optional=True)).has_synced


def test_one_informer_alone_watches_everything_for_half_a_minute() -> None:
    api = Asked()
    asked(api, lambda api: Informer(api, NODES))
    assert [(each["namespace"], each["field_selector"]) for each in api.calls] == [("", "")] * 2
    assert 24.0 <= api.calls[1]["timeout_seconds"] <= 30.0
    api = Asked()
    asked(api, lambda api: Informer(api, NODES, watch_seconds=1.0))
    assert api.calls[1]["timeout_seconds"] <= 1.0


@pytest.mark.faults
def test_objects_that_cannot_be_read_are_counted() -> None:
    made, _ = informer()
    made._reflector.unreadable.put(Unreadable(ObjectMeta(name="a"), "nonsense"))
    assert made.state.unreadable == 1
