"""An informer keeps its store like the server, on good days and bad ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.client import reflector
from extender.client.connection import Connection
from extender.client.informer import STALE_SECONDS, Informer, InformerFactory
from extender.client.interface import LEASES, NODES, POD_GROUPS, ResourceType
from extender.retry import Retry
from tests.fakes.api_server import Answer, FakeAPIServer, bookmark, event, node, page, request_of, status_of

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
        made, told = Informer(connection, resource, watch_seconds=0.0, **options), Told()
        made.add_handler(told)
        made.start()
        started.append(made)
        return made, told

    yield start
    for each in started:
        each.stop()


Start = Callable[..., tuple[Informer[Any], Told]]


def await_watches(server: FakeAPIServer, count: int) -> None:
    """What was listed before a watch is taken in by then, and said of the kind."""
    server.await_calls(count, lambda method, path: request_of(method, path) == "watch")


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
    for path in (path for method, path, _, _ in server.seen if request_of(method, path) == "list"):
        assert "resourceVersion" not in path, "any server's cache would do, and it may be behind what we have seen"
        assert path.endswith("?limit=500"), "pages: one body of a large list would take long to decode"


def test_what_a_list_brings_anew_is_told_oldest_first(server: FakeAPIServer, informer: Start) -> None:
    """Of groups that would be too many together the late ones are refused, after a restart too."""

    def made(name: str, day: int) -> dict[str, Any]:
        made = node(name)
        made["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
        return made

    young, middle, old = made("a", 3), made("b", 2), made("c", 1)
    server.lists.extend(
        [
            page(young, middle, version="5", next="token"),
            page(old, version="5"),
            page(young, made("e", 5), made("f", 4)),
        ]
    )
    server.watches.extend([Answer(lines=[GONE]), Answer(hang=True)])
    _, told = informer()
    told.wait("+c", "+b", "+a", "-c", "-b", "+f", "+e")


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
def test_an_object_that_cannot_be_read_counts_as_it_was_before(
    server: FakeAPIServer, informer: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """And keeps no other from being seen: one of them, made by any user, and nothing was ever planned."""
    server.lists.append(page(of_cpu("a"), of_cpu("b", cpu=NO_QUANTITY), of_cpu("c"), version="5"))
    lines = [
        event("ADDED", of_cpu("d", "6", NO_QUANTITY)),
        event("MODIFIED", of_cpu("a", "7", NO_QUANTITY)),
        event("ADDED", of_cpu("e", "8")),
        event("MODIFIED", of_cpu("a", "9")),
        event("MODIFIED", of_cpu("c", "10", NO_QUANTITY)),
        event("DELETED", of_cpu("d", "11", NO_QUANTITY)),
        event("ADDED", of_cpu("f", "12")),
    ]
    server.watches.append(Answer(lines=lines, hang=True))
    made, told = informer()
    told.wait("+a", "+c", "+e", "~a@9", "+f")
    assert sorted(made.store.keys()) == ["a", "c", "e", "f"]
    assert "object cannot be read kind=Node namespace= name=b" in caplog.text
    state = made.state
    assert (state.ok, state.unreadable) == (True, 2), "b and c"
    assert [each.metadata.name for each in made.unreadable] == ["b", "c"]
    assert state.reason == "objects that cannot be read: 2, see the log"


@pytest.mark.faults
def test_an_object_that_can_no_longer_be_read_survives_a_relist(
    server: FakeAPIServer, informer: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Unless it is another one of that name, or has gone."""
    unreadable = {name: of_cpu(name, "7", NO_QUANTITY) for name in ("a", "b")}
    unreadable["b"]["metadata"]["uid"] = "another"
    server.lists.append(page(*(of_cpu(name) for name in "abc"), version="5"))
    server.lists.append(page(*unreadable.values(), version="9"))
    server.lists.append(page(of_cpu("d", "10"), version="11"))
    server.watches.extend([status_of(410, "Expired"), status_of(410, "Expired"), Answer(hang=True)])
    made, told = informer()
    told.wait("+a", "+b", "+c", "-b", "-c", "-a", "+d")
    assert made.state.unreadable == 0
    assert caplog.text.count("object cannot be read") == 2


def test_a_pod_group_that_cannot_be_read_is_there_and_says_why(server: FakeAPIServer, informer: Start) -> None:
    server.lists.append(page(pod_group("a"), pod_group("b", cpu=NO_QUANTITY), version="5"))
    lines = [event("ADDED", pod_group("c", "6", NO_QUANTITY)), event("MODIFIED", pod_group("b", "7"))]
    server.watches.append(Answer(lines=lines, hang=True))
    made, told = informer(POD_GROUPS)
    told.wait("+a", "+b", "+c", "~b@7")
    why = {each.metadata.name: each.unreadable for each in made.store.list()}
    assert why == {"a": "", "b": "", "c": why["c"]}
    assert why["c"].startswith("spec.minResources[...]: Invalid value: quantity '1e1.5': wanted a number")


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
    await_watches(server, 1)
    assert made.state.ok


def test_an_optional_kind_that_is_not_served_counts_as_synced_and_may_come(
    server: FakeAPIServer, informer: Start
) -> None:
    server.lists.extend([status_of(404, "NotFound")] * 2 + [page(node("g"))])
    server.watches.append(Answer(hang=True))
    made, told = informer(POD_GROUPS, optional=True)
    assert made.wait_for_sync(5)
    told.wait("+g")
    await_watches(server, 1)
    assert made.state.served


def test_a_kind_that_comes_to_be_served_but_not_to_us_is_told_once_more(
    server: FakeAPIServer, informer: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "extender.client.reflector")
    refusals = [status_of(404, "NotFound")] * 2 + [status_of(403, "Forbidden")] * 2
    server.lists.extend([*refusals, page(node("g"))])
    server.watches.append(Answer(hang=True))
    _, told = informer(POD_GROUPS, optional=True, may_be_forbidden=True)
    told.wait("+g")
    said = [record.getMessage() for record in caplog.records if "kind is refused" in record.getMessage()]
    assert [text.rpartition("error=")[2].partition(" ")[0] for text in said] == ["NotFound", "Forbidden"]


@pytest.mark.parametrize("code", [403, 404])
def test_a_refusal_that_passes_empties_nothing(
    server: FakeAPIServer, informer: Start, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that starts refuses everything for a moment."""
    monkeypatch.setattr(reflector, "REFUSED_SECONDS", 60.0)
    refusal = status_of(code, "Refused")
    server.lists.extend([page(node("a"), version="5"), refusal, page(node("a"), node("b"), version="6")])
    server.watches.extend([refusal, Answer(hang=True)])
    made, told = informer(POD_GROUPS, optional=True, may_be_forbidden=True)
    told.wait("+a", "+b")
    await_watches(server, 2)
    assert (made.state.ok, made.state.served, made.state.reason) == (True, True, "")


@pytest.mark.parametrize("code", [403, 404])
def test_a_kind_that_is_refused_for_long_counts_as_absent_until_it_is_back(
    server: FakeAPIServer, informer: Start, code: int
) -> None:
    """Its definition was removed, or the right to read it taken away."""
    refusal = status_of(code, "Refused")
    back = Answer(until=threading.Event(), body=page(node("b"), version="6").body)
    server.lists.extend([page(node("a"), version="5"), *[refusal] * 20, back])
    server.watches.extend([refusal, Answer(hang=True)])
    made, told = informer(POD_GROUPS, optional=True, may_be_forbidden=True)
    told.wait("+a", "-a")
    state = made.state
    assert (state.ok, state.served, state.reason) == (True, False, "not served: Refused from the script")
    assert back.until is not None
    back.until.set()
    told.wait("+a", "-a", "+b")
    await_watches(server, 2)
    assert made.state.served


@pytest.mark.parametrize("code", [403, 404])
def test_a_kind_that_has_to_be_there_keeps_what_was_seen_of_it(
    server: FakeAPIServer, informer: Start, code: int
) -> None:
    server.lists.extend([page(node("a"), version="5"), status_of(code, "Refused")])
    server.watches.append(status_of(code, "Refused"))
    made, told = informer()
    server.await_calls(10, lambda method, path: request_of(method, path) == "list")
    told.wait("+a")
    assert made.state.ok is (code == 403), "not before it is stale"
    assert "Refused from the script" in made.state.reason


def test_the_rule_that_was_taken_away_is_named_until_the_server_speaks_again(
    server: FakeAPIServer, informer: Start
) -> None:
    text = 'nodes is forbidden: User "gang" cannot watch resource "nodes" in API group "" at the cluster scope'
    denied = Answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": text})
    allowed = Answer(until=threading.Event(), body=page(node("a"), version="5").body)
    server.lists.extend([page(node("a"), version="5"), denied, allowed])
    server.watches.extend([denied, Answer(hang=True)])
    clock = [100.0]
    made, _ = informer(clock=lambda: clock[0])
    server.await_calls(4)
    assert (made.state.ok, made.state.reason) == (True, text)
    clock[0] += STALE_SECONDS
    assert (made.state.ok, made.state.reason) == (False, f"{text}; nothing heard for 120s")
    assert allowed.until is not None
    allowed.until.set()
    server.await_calls(2, lambda method, path: request_of(method, path) == "watch")
    assert (made.state.ok, made.state.reason) == (True, "")


@pytest.mark.parametrize("said", [event("ADDED", node("b", "6")), bookmark("6")], ids=["an event", "a bookmark"])
def test_an_error_is_forgotten_when_the_server_speaks(server: FakeAPIServer, informer: Start, said: Any) -> None:
    server.lists.append(page(node("a"), version="5"))
    failure = status_of(500, "InternalError")
    failure.until, speaking = threading.Event(), Answer(until=threading.Event(), lines=[said])
    server.watches.extend([failure, speaking, Answer(hang=True)])
    made, _ = informer()
    server.checks[0].until = threading.Event()
    failure.until.set()
    server.await_calls(1, lambda method, path: request_of(method, path) == "check")
    assert made.state.reason == "InternalError from the script"
    made._reflector._changes = _Fragile(made, "heard", lambda: None)  # a check is an answer too
    server.checks[0].until.set()
    server.await_calls(2, lambda method, path: request_of(method, path) == "watch")
    made._reflector._changes = made
    assert speaking.until is not None
    speaking.until.set()
    server.await_calls(3, lambda method, path: request_of(method, path) == "watch")
    assert made.state.reason == ""


def test_a_server_whose_etcd_was_restored_is_followed(server: FakeAPIServer, informer: Start) -> None:
    """It is silent to a watch from a version that it has not reached."""
    server.lists.extend([page(node("a", "7"), node("b", "8"), version="9"), page(node("a", "3"), version="4")])
    server.checks.clear()
    server.checks.append(page(version="4"))
    server.watches.extend([Answer(hang=True), Answer(lines=[event("ADDED", node("c", "5"))], hang=True)])
    made, told = informer()
    told.wait("+a", "+b", "-b", "~a@3", "+c")
    assert server.requests() == ["list", "watch", "check", "list", "watch"]
    assert made.state.reason == ""


def test_a_watch_is_short_and_its_silence_is_noticed(server: FakeAPIServer, connection: Connection) -> None:
    server.watches.append(Answer(hang=True))
    for asked, at_most in ((30.0, 37.0), (5.0, 7.0)):
        watch: Any = connection.watch(NODES, resource_version="5", timeout_seconds=asked)
        assert watch._response._connection.sock.gettimeout() == pytest.approx(at_most, abs=1.0)
        watch.stop()
    assert [f"timeoutSeconds={seconds}" in path for seconds, (_, path, *_) in zip((30, 5), server.seen)] == [True] * 2


def test_the_lease_is_watched_for_a_few_seconds_at_a_time(connection: Connection) -> None:
    """Its holder loses it 15 s after it renewed it last: a watch that has stalled must be found long before."""
    factory = InformerFactory(connection)
    kinds: tuple[ResourceType[Any], ...] = (LEASES, NODES)
    seconds = {of: factory.informer(of)._reflector._watch_seconds for of in kinds}
    assert seconds == {LEASES: 5.0, NODES: 30.0}


def test_all_kinds_of_one_server_share_what_they_find_out_of_its_etcd(connection: Connection) -> None:
    factory = InformerFactory(connection)
    kinds: tuple[ResourceType[Any], ...] = (NODES, POD_GROUPS, LEASES)
    assert len({id(factory.informer(of)._reflector._restores) for of in kinds}) == 1
    assert InformerFactory(connection).informer(NODES)._reflector._restores not in [
        factory.informer(of)._reflector._restores for of in kinds
    ]


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
    assert (made.state.ok, made.state.reason) == (False, "not served: NotFound from the script")


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
def test_an_informer_outlives_an_unexpected_error(
    of: str, names: list[str], server: FakeAPIServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread was gone, and with it all that it had to tell: it lists again."""
    monkeypatch.setattr("extender.client.backoff.RETRY", Retry(0.01, 0.03))
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
    """No code caught what was raised there: the thread ended without a word."""
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
    patient = Connection(Identity.from_kubeconfig(str(kubeconfig)))
    made = Informer(patient, NODES)  # half a minute of silence would be fine with it
    made.start()
    server.await_calls(1, lambda method, path: "watch=true" in path)
    made.stop()
    patient.close()
