"""An informer keeps its store like the server, on good days and bad ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.client import reflector
from extender.client.connection import Connection
from extender.client.informer import Informer
from extender.client.interface import NODES, POD_GROUPS
from tests.fakes.api_server import Answer, FakeAPIServer, bookmark, event, node, page, status_of

GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


class Told:
    """A handler that notes what it hears, and can be awaited."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.story: list[str] = []

    def _note(self, text: str) -> None:
        with self._changed:
            self.story.append(text)
            self._changed.notify_all()

    def on_add(self, obj: Any) -> None:
        self._note(f"+{obj.metadata.name}")

    def on_update(self, old: Any, new: Any) -> None:
        self._note(f"~{new.metadata.name}@{new.metadata.resource_version}")

    def on_delete(self, obj: Any) -> None:
        self._note(f"-{obj.metadata.name}")

    def wait_until_there(self, *names: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: {text[1] for text in self.story} >= set(names), 5), self.story

    def wait(self, *story: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.story == list(story), 5), self.story


class _Fragile:
    """Another object, with one method in place of its own."""

    def __init__(self, of: Any, name: str, method: Callable[..., Any]) -> None:
        self._of = of
        setattr(self, name, method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


@pytest.fixture
def informer(connection: Connection) -> Iterator[Callable[..., tuple[Informer[Any], Told]]]:
    started: list[Informer[Any]] = []

    def start(resource: Any = NODES, **options: Any) -> tuple[Informer[Any], Told]:
        made, told = Informer(connection, resource, **options), Told()
        made.add_handler(told)
        made.start()
        started.append(made)
        return made, told

    yield start
    for each in started:
        each.stop()


Start = Callable[..., tuple[Informer[Any], Told]]


def test_pages_are_joined_and_the_watch_goes_on_from_there(server: FakeAPIServer, informer: Start) -> None:
    server.lists.extend([page(node("a"), version="5", next="token"), page(node("b"), version="5")])
    server.watches.append(Answer(lines=[event("ADDED", node("c", "6"))], hang=True))
    _, told = informer()
    told.wait("+a", "+b", "+c")
    watch = next(path for _, path, _, _ in server.seen if "watch=true" in path)
    assert "resourceVersion=5" in watch
    assert "allowWatchBookmarks=true" in watch


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(Answer(lines=[GONE]), id="410 as an event of a 200"),
        pytest.param(status_of(410, "Expired"), id="410 as the answer"),
    ],
)
def test_after_410_the_list_tells_what_was_missed(server: FakeAPIServer, informer: Start, gone: Answer) -> None:
    server.lists.extend([page(node("a"), node("b"), version="5"), page(node("b", "7"), node("c", "8"), version="9")])
    server.watches.extend([gone, Answer(hang=True)])
    _, told = informer()
    told.wait("+a", "+b", "-a", "~b@7", "+c")
    first, second = [path for _, path, _, _ in server.seen if "watch=true" not in path]
    assert "resourceVersion=0" in first
    assert "resourceVersion" not in second, "any server's cache would do, and it may be behind what we have seen"


def test_bookmarks_move_the_version_on(server: FakeAPIServer, informer: Start) -> None:
    server.lists.append(page(node("a"), version="5"))
    server.watches.extend([Answer(lines=[bookmark("42")]), Answer(hang=True)])
    informer()
    server.await_calls(1, lambda method, path: "watch=true" in path and "resourceVersion=42" in path)


def test_silence_ends_a_watch_and_it_begins_again(server: FakeAPIServer, informer: Start) -> None:
    server.lists.append(page(version="5"))
    server.watches.extend([Answer(hang=True), Answer(lines=[event("ADDED", node("a", "6"))], hang=True)])
    _, told = informer()
    told.wait("+a")


def test_an_event_that_is_cut_off_does_not_count(server: FakeAPIServer, informer: Start) -> None:
    server.lists.append(page(version="5"))
    server.watches.extend(
        [
            Answer(lines=[event("ADDED", node("a", "6"))], cut='{"type":"ADDED","object":{"metadata":{"name":"half'),
            Answer(lines=[event("ADDED", node("b", "7"))], hang=True),
        ]
    )
    _, told = informer()
    told.wait("+a", "+b")
    assert any("watch=true" in path and "resourceVersion=6" in path for _, path, _, _ in server.seen)


def test_events_told_twice_or_out_of_order_change_nothing(server: FakeAPIServer, informer: Start) -> None:
    server.lists.append(page(node("a", "5"), version="5"))
    server.watches.append(
        Answer(
            lines=[
                event("MODIFIED", node("a", "7")),
                event("MODIFIED", node("a", "6")),
                event("MODIFIED", node("a", "7")),
                event("DELETED", node("a", "8")),
            ],
            hang=True,
        )
    )
    _, told = informer()
    told.wait("+a", "~a@7", "-a")


NO_QUANTITY = "1e1.5"  # the pattern that CRDs have for quantities allows it


def of_cpu(name: str, version: str = "1", cpu: str = "2") -> dict[str, Any]:
    """A node with so much of it."""
    return {**node(name, version), "status": {"allocatable": {"cpu": cpu}}}


def pod_group(name: str, version: str = "1", cpu: str = "2") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": version}
    return {"metadata": metadata, "spec": {"minMember": 2, "minResources": {"cpu": cpu}}}


@pytest.mark.faults
def test_an_object_that_cannot_be_read_keeps_no_other_from_being_seen(
    server: FakeAPIServer, informer: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """One of them, and the list was asked for again and again, and nothing was ever planned."""
    server.lists.append(page(of_cpu("a"), of_cpu("b", cpu=NO_QUANTITY), of_cpu("c"), version="5"))
    lines = [
        event("ADDED", of_cpu("d", "6", NO_QUANTITY)),
        event("MODIFIED", of_cpu("a", "7", NO_QUANTITY)),
        event("ADDED", of_cpu("e", "8")),
        event("MODIFIED", of_cpu("a", "9")),
    ]
    server.watches.append(Answer(lines=lines, hang=True))
    made, told = informer()
    told.wait("+a", "+c", "-d", "-a", "+e", "+a")
    assert made.state.ok
    assert sorted(made.store.keys()) == ["a", "c", "e"]
    assert "object cannot be read, and counts as absent kind=Node namespace= name=b" in caplog.text


def test_a_pod_group_that_cannot_be_read_is_there_and_says_why(server: FakeAPIServer, informer: Start) -> None:
    server.lists.append(page(pod_group("a"), pod_group("b", cpu=NO_QUANTITY), version="5"))
    lines = [event("ADDED", pod_group("c", "6", NO_QUANTITY)), event("MODIFIED", pod_group("b", "7"))]
    server.watches.append(Answer(lines=lines, hang=True))
    made, told = informer(POD_GROUPS)
    told.wait("+a", "+b", "+c", "~b@7")
    why = {each.metadata.name: each.unreadable for each in made.store.list()}
    assert why == {"a": "", "b": "", "c": why["c"]}
    assert why["c"].startswith("spec.minResources[...]: Invalid value: quantity '1e1.5' does not match")


def test_a_version_that_is_ahead_of_the_server_is_dropped(server: FakeAPIServer, informer: Start) -> None:
    too_large = status_of(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}])
    server.lists.extend([too_large, page(node("a"), version="2")])
    server.watches.append(Answer(hang=True))
    _, told = informer()
    told.wait("+a")
    assert "resourceVersion" not in server.seen[1][1]


def test_too_many_requests_are_not_answered_with_more(server: FakeAPIServer, informer: Start) -> None:
    busy = status_of(429, "TooManyRequests")
    busy.headers["Retry-After"] = "1"
    server.lists.extend([busy, page(node("a"))])
    server.watches.append(Answer(hang=True))
    made, _ = informer()
    assert not made.wait_for_sync(0.3)
    assert len(server.seen) == 1
    assert made.wait_for_sync(5)


def test_what_is_forbidden_says_so_and_is_asked_for_again(server: FakeAPIServer, informer: Start) -> None:
    server.lists.extend([status_of(403, "Forbidden"), page(node("a"))])
    server.watches.append(Answer(hang=True))
    made, told = informer()
    server.await_calls(1)
    told.wait("+a")
    assert made.state.ok


def test_an_optional_kind_that_is_not_served_counts_as_synced_and_may_come(
    server: FakeAPIServer, informer: Start
) -> None:
    server.lists.extend([status_of(404, "NotFound")] * 2 + [page(node("g"))])
    server.watches.append(Answer(hang=True))
    made, told = informer(POD_GROUPS, optional=True)
    assert made.wait_for_sync(5)
    told.wait("+g")
    assert made.state.served


@pytest.mark.parametrize("may_be", [True, False])
def test_an_optional_kind_that_we_may_not_read(server: FakeAPIServer, informer: Start, may_be: bool) -> None:
    """It counts as absent where that was said, and only there."""
    server.lists.append(status_of(403, "Forbidden"))
    made, _ = informer(POD_GROUPS, optional=True, may_be_forbidden=may_be)
    server.await_calls(1)
    assert made.wait_for_sync(5 if may_be else 0.1) is may_be
    assert (made.state.ok, made.state.served) == (may_be, not may_be)


def test_a_kind_that_has_to_be_there_is_not_ready_without(server: FakeAPIServer, informer: Start) -> None:
    server.lists.append(status_of(404, "NotFound"))
    made, _ = informer()
    server.await_calls(2)
    assert not made.has_synced
    assert (made.state.ok, made.state.reason) == (False, "NotFound from the script")


@pytest.mark.faults
def test_a_handler_that_fails_does_not_end_the_informer(
    server: FakeAPIServer, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Told):
        def on_add(self, obj: Any) -> None:
            super().on_add(obj)
            if obj.metadata.name == "a":
                raise ValueError("as it happens")

    server.lists.append(page(node("a"), node("b")))
    server.watches.append(Answer(hang=True))
    made, told = Informer(connection, NODES), Failing()
    made.add_handler(told)
    made.start()
    try:
        told.wait("+a", "+b")
        assert made.wait_for_sync(5)
    finally:
        made.stop()
    assert "unexpected error where=handler-nodes" in caplog.text


@pytest.mark.faults
@pytest.mark.parametrize(
    ("of", "names"),
    [
        pytest.param("share", ["a", "b"], id="in the middle of a list"),
        pytest.param("put", ["a", "b"], id="while it is taken in"),
        pytest.param("get", ["a", "c"], id="in the middle of a watch"),
    ],
)
def test_an_informer_outlives_what_nobody_expected(
    of: str, names: list[str], server: FakeAPIServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread was gone, and with it all that it had to tell: it lists again."""
    monkeypatch.setattr("extender.client.backoff.INITIAL_SECONDS", 0.01)
    server.lists.append(page(node("a"), version="5"))
    server.watches.append(Answer(lines=[event("ADDED", node("c", "6"))], hang=True))
    server.lists.append(page(*(node(name, "7") for name in names), version="7"))
    server.watches.append(Answer(hang=True))
    made, told = Informer(connection, NODES), Told()
    made.add_handler(told)
    owner = made._reflector._parts if of == "share" else made.store
    original = getattr(owner, of)
    faults = iter([True])

    def once_broken(*args: Any) -> Any:
        if next(faults, False):
            raise KeyError("a fault of ours")
        return original(*args)

    fragile: Any = _Fragile(owner, of, once_broken)
    if of == "share":
        made._reflector._parts = fragile
    else:
        made._reflector._store = fragile
    made.start()
    try:
        told.wait_until_there(*names)
        assert made.wait_for_sync(5)
        assert made.state.ok
    finally:
        made.stop()


@pytest.mark.faults
def test_an_informer_outlives_a_fault_in_what_follows_a_failed_list(
    server: FakeAPIServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was raised there was nobody's to catch: the thread ended without a word."""
    monkeypatch.setattr(reflector, "UNEXPECTED_SECONDS", 0.01)
    server.lists.extend([status_of(404, "NotFound"), page(node("a"))])
    server.watches.append(Answer(hang=True))
    made, told = Informer(connection, NODES), Told()
    made.add_handler(told)

    def broken(error: Any) -> None:
        made._reflector._changes = made
        raise KeyError("a fault of ours")

    made._reflector._changes = _Fragile(made, "failed", broken)
    made.start()
    try:
        told.wait("+a")
    finally:
        made.stop()


@pytest.mark.faults
def test_handlers_catch_up_beside_the_events_of_a_watch(server: FakeAPIServer, connection: Connection) -> None:
    class Failing(Told):
        def on_add(self, obj: Any) -> None:
            super().on_add(obj)
            if obj.metadata.name == "a" and self.story.count("+a") < 3:
                raise ValueError("as it happens")

    clock = [100.0]
    server.lists.append(page(node("a")))
    server.watches.append(Answer(lines=[event("ADDED", node("b", "6"))], hang=True))
    made, told = Informer(connection, NODES, clock=lambda: clock[0]), Failing()
    made.add_handler(told)
    made.start()
    try:
        told.wait("+a", "+b")
        for _ in range(3):
            clock[0] += 60.0
            made.catch_up()
        told.wait("+a", "+b", "+a", "+a")
    finally:
        made.stop()


def test_stop_does_not_wait_for_a_silent_watch(kubeconfig: Any, server: FakeAPIServer) -> None:
    from extender.client.identity import Identity

    server.lists.append(page())
    server.watches.append(Answer(hang=True))
    patient = Connection(Identity.from_kubeconfig(str(kubeconfig)))  # 70 s of silence would be fine with it
    made = Informer(patient, NODES)
    made.start()
    server.await_calls(1, lambda method, path: "watch=true" in path)
    made.stop()
    patient.close()
