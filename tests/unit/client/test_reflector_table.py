"""Each transition of the reflector: what it asks for next, and after which wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from urllib3.util import Timeout

from extender import metrics
from extender.client import backoff, reflector, transport
from extender.client import connection as connection_module
from extender.client.connection import Connection
from extender.client.errors import ApiError
from extender.client.informer import Informer
from extender.client.interface import NODES
from extender.client.reflector_table import TRANSITIONS, Doing, Input, input_of
from extender.retry import Retry
from tests.fakes.api_server import PATIENCE, Answer, FakeAPIServer, event, node, page, status_of

LIST, CHECK, WATCH = Doing.LIST, Doing.CHECK, Doing.WATCH
AT_ONCE, BACK_OFF, LATER = "at once", "back-off", "later"
HANGING = Answer(hang=True)
LISTED = page(node("a"), version="5")
TOO_LARGE = status_of(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}])
SILENCE = Answer(until=threading.Event())  # for longer than a call may take
ERROR = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


@dataclass(frozen=True)
class Row:
    """What comes of the thing that it does, and what it asks for next."""

    came: Input
    answer: Answer
    then: Doing
    wait: str


def rows(*of: tuple[str, Input, Answer, Doing, str]) -> list[Any]:
    return [pytest.param(Row(came, answer, then, wait), id=text) for text, came, answer, then, wait in of]


AFTER_A_LIST = rows(
    ("a list is taken in", Input.DONE, LISTED, WATCH, AT_ONCE),
    ("504, a version that the server has not", Input.BEHIND, TOO_LARGE, LIST, BACK_OFF),
    ("410, the token of the next page has expired", Input.GONE, status_of(410, "Expired"), LIST, AT_ONCE),
    ("401", Input.UNAUTHORIZED, status_of(401, "Unauthorized"), LIST, BACK_OFF),
    ("403", Input.FORBIDDEN, status_of(403, "Forbidden"), LIST, LATER),
    ("404", Input.NOT_FOUND, status_of(404, "NotFound"), LIST, LATER),
    ("429", Input.TOO_MANY, status_of(429, "TooManyRequests"), LIST, BACK_OFF),
    ("500", Input.FAILED, status_of(500, "InternalError"), LIST, BACK_OFF),
    ("400", Input.REFUSED, status_of(400, "BadRequest"), LIST, BACK_OFF),
    ("no answer", Input.CUT, Answer(no_answer=True), LIST, BACK_OFF),
    ("silence", Input.SILENT, SILENCE, LIST, BACK_OFF),
    ("no list", Input.UNREADABLE, Answer(body="nothing of the kind"), LIST, BACK_OFF),
)
AFTER_A_CHECK = rows(
    ("the server is as far as we are", Input.DONE, page(version="5"), WATCH, AT_ONCE),
    ("the server's version is lower than ours", Input.BEHIND, page(version="4"), LIST, AT_ONCE),
    ("410", Input.GONE, status_of(410, "Expired"), LIST, AT_ONCE),
    ("401", Input.UNAUTHORIZED, status_of(401, "Unauthorized"), CHECK, BACK_OFF),
    ("403", Input.FORBIDDEN, status_of(403, "Forbidden"), LIST, BACK_OFF),
    ("404", Input.NOT_FOUND, status_of(404, "NotFound"), LIST, BACK_OFF),
    ("429", Input.TOO_MANY, status_of(429, "TooManyRequests"), CHECK, BACK_OFF),
    ("500", Input.FAILED, status_of(500, "InternalError"), CHECK, BACK_OFF),
    ("400", Input.REFUSED, status_of(400, "BadRequest"), LIST, BACK_OFF),
    ("no answer", Input.CUT, Answer(no_answer=True), CHECK, BACK_OFF),
    ("silence", Input.SILENT, SILENCE, CHECK, AT_ONCE),
    ("no list", Input.UNREADABLE, Answer(body="nothing of the kind"), LIST, BACK_OFF),
)
AFTER_A_WATCH = rows(
    ("the server ends it after an event", Input.DONE, Answer(lines=[event("ADDED", node("b", "6"))]), WATCH, AT_ONCE),
    ("the server ends it without a word", Input.QUIET, Answer(), CHECK, AT_ONCE),
    ("504, a version that the server has not", Input.BEHIND, TOO_LARGE, LIST, AT_ONCE),
    ("410 as the answer", Input.GONE, status_of(410, "Expired"), LIST, AT_ONCE),
    ("410 in the watch", Input.GONE, Answer(lines=[event("ERROR", ERROR)]), LIST, AT_ONCE),
    ("401", Input.UNAUTHORIZED, status_of(401, "Unauthorized"), CHECK, BACK_OFF),
    ("403", Input.FORBIDDEN, status_of(403, "Forbidden"), LIST, BACK_OFF),
    ("404", Input.NOT_FOUND, status_of(404, "NotFound"), LIST, BACK_OFF),
    ("429", Input.TOO_MANY, status_of(429, "TooManyRequests"), CHECK, BACK_OFF),
    ("500", Input.FAILED, status_of(500, "InternalError"), CHECK, BACK_OFF),
    ("500 in the watch", Input.FAILED, Answer(lines=[event("ERROR", {"code": 500})]), CHECK, BACK_OFF),
    ("400", Input.REFUSED, status_of(400, "BadRequest"), LIST, BACK_OFF),
    ("no answer", Input.CUT, Answer(no_answer=True), CHECK, BACK_OFF),
    ("cut off in the middle of an event", Input.CUT, Answer(cut='{"type":"ADDED"'), CHECK, BACK_OFF),
    ("ended in the middle of an event", Input.CUT, Answer(stub='{"type":"ADDED"'), CHECK, BACK_OFF),
    ("silence", Input.SILENT, HANGING, CHECK, AT_ONCE),
    ("a line that is no JSON", Input.UNREADABLE, Answer(stub="nonsense\n"), LIST, BACK_OFF),
    ("an event of a type unheard of", Input.UNREADABLE, Answer(lines=[event("OTHER", node("b"))]), LIST, BACK_OFF),
    ("an object without a name", Input.UNREADABLE, Answer(lines=[event("ADDED", {})]), LIST, BACK_OFF),
)


class NoWait(threading.Event):
    """In place of the reflector's own: notes how long it would wait, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self.longest = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        seconds = timeout or 0.0
        self.longest = max(self.longest, seconds)
        self.waits.append(AT_ONCE if seconds == 0 else LATER if seconds == reflector.LATER_SECONDS else BACK_OFF)
        return self.is_set()


@pytest.fixture
def run(
    server: FakeAPIServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Row, Sequence[Doing]], tuple[Informer[Any], NoWait]]]:
    """Runs a reflector until it has asked for all that is named."""
    monkeypatch.setattr(reflector, "LATER_SECONDS", 10.0)
    made: Informer[Any] = Informer(connection, NODES, watch_seconds=0.0)
    waits = made._reflector._stopping = NoWait()

    def start(row: Row, asked: Sequence[Doing]) -> tuple[Informer[Any], NoWait]:
        read = 1.0 if row.came is Input.SILENT else PATIENCE
        monkeypatch.setattr(transport, "_TIMEOUT", Timeout(connect=PATIENCE, read=read))
        monkeypatch.setattr(connection_module, "SILENT_SECONDS", read)
        made.start()
        # a 401 is asked for twice by the connection itself
        again = row.came is Input.UNAUTHORIZED and asked[-2] is not WATCH
        server.await_calls(len(asked) + again)
        requests = server.requests()
        if again:
            del requests[len(asked) - 2]
        assert requests[: len(asked)] == [doing.value for doing in asked]
        return made, waits

    yield start
    SILENCE.until.set()  # type: ignore[union-attr]
    made.stop()
    SILENCE.until.clear()  # type: ignore[union-attr]


def answers(row: Row) -> list[Answer]:
    """To a list or a check: the connection itself asks once more after a 401."""
    return [row.answer] * (2 if row.came is Input.UNAUTHORIZED else 1)


def restarts(came: Input) -> float:
    return float(metrics.watch_restarts.labels("nodes", came.value)._value.get())


@pytest.mark.parametrize("row", AFTER_A_LIST)
def test_after_a_list(server: FakeAPIServer, run: Any, row: Row) -> None:
    server.lists.extend([*answers(row), LISTED])
    server.watches.append(HANGING)
    _, event = run(row, [LIST, row.then])
    assert event.waits[0] == row.wait


@pytest.mark.parametrize("row", AFTER_A_CHECK)
def test_after_a_check(server: FakeAPIServer, run: Any, row: Row) -> None:
    server.lists.append(LISTED)
    server.checks.clear()
    server.checks.extend([*answers(row), page(version="5")])
    server.watches.extend([Answer(), HANGING])
    _, event = run(row, [LIST, WATCH, CHECK, row.then])
    assert event.waits[:3] == [AT_ONCE, AT_ONCE, row.wait]


@pytest.mark.parametrize("row", AFTER_A_WATCH)
def test_after_a_watch(server: FakeAPIServer, run: Any, row: Row) -> None:
    server.lists.append(LISTED)
    server.watches.extend([row.answer, HANGING])
    before = restarts(row.came)
    made, event = run(row, [LIST, WATCH, row.then])
    assert event.waits[:2] == [AT_ONCE, row.wait]
    assert restarts(row.came) - before >= (row.came not in (Input.DONE, Input.QUIET)), "it is counted"
    assert made.store.get("a") is not None


def test_after_a_watch_that_ends_at_once(server: FakeAPIServer, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "BRIEF_SECONDS", 60.0)
    server.lists.append(LISTED)
    server.watches.extend([Answer(lines=[event("ADDED", node("b", "6"))]), HANGING])
    _, waited = run(Row(Input.BRIEF, Answer(), CHECK, BACK_OFF), [LIST, WATCH, CHECK, WATCH])
    assert waited.waits[:3] == [AT_ONCE, BACK_OFF, AT_ONCE]


def test_a_wait_is_spared_once_only(server: FakeAPIServer, run: Any) -> None:
    """A server that answers each watch with 410 is not asked for list after list."""
    server.lists.append(LISTED)
    server.watches.extend([status_of(410, "Expired")] * 3 + [HANGING])
    asked = [LIST, WATCH, LIST, WATCH, LIST, WATCH]
    _, waited = run(Row(Input.GONE, Answer(), LIST, AT_ONCE), asked)
    assert waited.waits[:5] == [AT_ONCE, AT_ONCE, AT_ONCE, BACK_OFF, AT_ONCE]


def test_a_kind_that_was_served_a_moment_ago_is_asked_for_again_soon(
    server: FakeAPIServer, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "REFUSED_SECONDS", 60.0)
    server.lists.extend([LISTED, status_of(404, "NotFound"), LISTED])
    server.watches.extend([status_of(404, "NotFound"), HANGING])
    _, waited = run(Row(Input.NOT_FOUND, Answer(), LIST, BACK_OFF), [LIST, WATCH, LIST, LIST, WATCH])
    assert waited.waits[:4] == [AT_ONCE, BACK_OFF, BACK_OFF, AT_ONCE]


@pytest.mark.parametrize(
    ("answer", "longest"),
    [
        pytest.param(Answer(no_answer=True), 20.0, id="not there: it is found within 60 s once it is back"),
        pytest.param(status_of(500, "InternalError"), 60.0, id="there, and failing"),
    ],
)
def test_a_server_in_trouble_is_asked_less_and_less(
    server: FakeAPIServer, run: Any, monkeypatch: pytest.MonkeyPatch, answer: Answer, longest: float
) -> None:
    monkeypatch.setattr(backoff, "RETRY", Retry(0.008, 30.0))
    server.lists.extend([answer] * 20 + [LISTED])
    _, waited = run(Row(Input.CUT, answer, LIST, BACK_OFF), [LIST] * 20 + [LIST, WATCH])
    assert longest / 2 <= waited.longest <= longest


@pytest.mark.faults
@pytest.mark.parametrize(
    ("doing", "asked"),
    [(LIST, [LIST, LIST]), (CHECK, [LIST, WATCH, CHECK, LIST]), (WATCH, [LIST, WATCH, LIST])],
)
def test_after_an_exception_of_ours_everything_is_listed_again(
    server: FakeAPIServer,
    run: Any,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    doing: Doing,
    asked: list[Doing],
) -> None:
    def read(*args: Any, **options: Any) -> Any:
        answer = original(*args, **options)
        if server.requests()[-1] == doing.value and not broken:
            broken.append(True)
            raise KeyError("a fault of ours")
        return answer

    broken: list[bool] = []
    name = "watch" if doing is WATCH else "list_page"
    original = getattr(connection, name)
    monkeypatch.setattr(connection, name, read)
    server.lists.append(LISTED)
    server.watches.extend([Answer(), HANGING])
    _, waited = run(Row(Input.UNEXPECTED, Answer(), LIST, BACK_OFF), asked)
    assert waited.waits[len(asked) - 2] == BACK_OFF


def test_each_transition_has_a_row() -> None:
    tested = {
        LIST: {param.values[0].came for param in AFTER_A_LIST},
        CHECK: {param.values[0].came for param in AFTER_A_CHECK},
        WATCH: {param.values[0].came for param in AFTER_A_WATCH} | {Input.BRIEF},
    }
    never_of_a_check = {Input.QUIET, Input.BRIEF}
    for doing, transitions in TRANSITIONS.items():
        wanted = set(transitions) - {Input.UNEXPECTED} - (never_of_a_check if doing is CHECK else set())
        assert tested[doing] == wanted


@pytest.mark.parametrize(
    ("codes", "came"),
    [
        pytest.param((400, 401, 403, 404, 405, 409, 410, 422, 429, 451, 499), Input.REFUSED, id="4xx"),
        pytest.param((500, 501, 502, 503, 504, 599), Input.FAILED, id="5xx"),
    ],
)
def test_each_answer_of_no_kind_of_its_own_is_an_input(codes: Sequence[int], came: Input) -> None:
    """With a transition from everything that a reflector does."""
    assert {input_of(ApiError("no", code=code)) for code in codes} == {came}
    assert all(came in transitions for transitions in TRANSITIONS.values())
