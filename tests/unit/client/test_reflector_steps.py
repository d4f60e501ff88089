"""What a reflector asks for, takes in and tells, step by step: on a scripted API, on the test's own thread, without a wait.

test_reflector.py has the same over HTTP, test_reflector_table.py each transition.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from extender import metrics
from extender.api import corev1
from extender.api.codec import convert
from extender.api.metav1 import ObjectMeta
from extender.client import reflector as reflector_module
from extender.client import short_steps
from extender.client.errors import (
    ApiError,
    ConnectionFailedError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    TimedOutError,
    TooManyRequestsError,
)
from extender.client.interface import API, NODES, EventType, Page, Unreadable, WatchEvent
from extender.client.reflector import (
    BRIEF_SECONDS,
    CUT_BACKOFF_SECONDS,
    LATER_SECONDS,
    REFUSED_SECONDS,
    UNEXPECTED_SECONDS,
    Reflector,
    Restores,
)
from extender.client.store import Store

TIMES = {
    "BRIEF_SECONDS": BRIEF_SECONDS,
    "LATER_SECONDS": LATER_SECONDS,
    "REFUSED_SECONDS": REFUSED_SECONDS,
}
ADDED, MODIFIED, DELETED, BOOKMARK = EventType.ADDED, EventType.MODIFIED, EventType.DELETED, EventType.BOOKMARK


@pytest.fixture(autouse=True)
def real_times(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in TIMES.items():
        monkeypatch.setattr(reflector_module, name, seconds)


def a_node(name: str, version: str = "1", uid: str = "", **more: Any) -> corev1.Node:
    return convert({"metadata": {"name": name, "uid": uid or name, "resourceVersion": version, **more}}, corev1.Node)


def no_node(name: str, version: str = "1", uid: str = "") -> Unreadable:
    return Unreadable(ObjectMeta(name=name, uid=uid or name, resource_version=version), "nonsense")


def page(*objects: corev1.Node | Unreadable, version: str = "5", then: str = "") -> Page[Any]:
    read = [each for each in objects if not isinstance(each, Unreadable)]
    return Page(read, version, then, [each for each in objects if isinstance(each, Unreadable)])


def event(type_: EventType, obj: corev1.Node | Unreadable) -> WatchEvent[Any]:
    return WatchEvent(type_, obj, obj.metadata.resource_version)


class Watched:
    """A watch that shows its events, raises where one is an error, and calls what can be called.

    lasts: seconds until the server ends it.
    """

    def __init__(self, *events: WatchEvent[Any] | ApiError | Callable[[], None], lasts: float = 20.0) -> None:
        self._events, self._lasts = events, lasts
        self.stops = 0
        self.clock: Clock | None = None

    def __iter__(self) -> Iterator[WatchEvent[Any]]:
        before = self.stops
        for each in self._events:
            if self.stops > before:
                return
            if isinstance(each, ApiError):
                raise each
            if isinstance(each, WatchEvent):
                yield each
            else:
                each()
        assert self.clock is not None
        self.clock.now += self._lasts

    def stop(self) -> None:
        self.stops += 1


class EndlessError(BaseException):
    """No exception that a reflector outlives."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Waits(threading.Event):
    """In place of the reflector's own: the time passes at once."""

    def __init__(self, clock: Clock, story: Callable[[str], None]) -> None:
        super().__init__()
        self._clock, self._story = clock, story
        self._waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self._waits += 1
        if self._waits > 1000:
            raise EndlessError
        if timeout:
            self._clock.now += timeout
            self._story(f"waits {timeout:g}")
        return self.is_set()


Answer = Page[Any] | ApiError | Watched | Callable[[], Any]


class Script:
    """Is the API, the handler and the back-off of a reflector that it runs until the answers are used up.

    An answer that can be called is, when it is asked for. story: what was asked for, told and waited, in order.
    """

    def __init__(self, *answers: Answer, **options: Any) -> None:
        self.answers: list[Answer] = list(answers)
        self.story: list[str] = []
        self.timeouts: list[float] = []
        self.asked: list[dict[str, str]] = []
        self.clock = Clock()
        self.store: Store[corev1.Node] = Store()
        self.fault: Exception | None = None
        self.reflector = Reflector(
            cast("API", self),
            NODES,
            self.store,
            self,
            clock=self.clock,
            **options,
        )
        self.reflector._stopping = Waits(self.clock, self._note)
        self.reflector._backoff = cast("Any", self)

    def run(self) -> list[str]:
        self.reflector.run()
        return self.story

    def _note(self, text: str) -> None:
        if not self.reflector._stopping.is_set():
            self.story.append(text)

    def _answer(self, otherwise: Any) -> Any:
        if not self.answers:
            if self.reflector._stopping.is_set():
                raise EndlessError
            self.reflector.stop()
            return otherwise
        answer = self.answers.pop(0)
        if not isinstance(answer, (Page, ApiError, Watched)):
            answer = answer()
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def list_page(self, resource: Any, *, limit: int, continue_token: str = "", **selection: str) -> Page[Any]:
        assert resource is NODES
        assert isinstance(continue_token, str)
        self.asked.append(selection)
        what = {1: "check", reflector_module.PAGE: "list"}[limit]
        self._note(f"{what} from {continue_token}" if continue_token else what)
        return cast("Page[Any]", self._answer(page()))

    def watch(self, resource: Any, *, resource_version: str, timeout_seconds: float, **selection: str) -> Watched:
        assert resource is NODES
        self.asked.append(selection)
        self.timeouts.append(timeout_seconds)
        self._note(f"watch from {resource_version}")
        watched = cast("Watched", self._answer(Watched()))
        watched.clock = self.clock
        return watched

    def next(self, retry_after: float | None, longest: float | None) -> float:
        """Of the back-off."""
        self._note(f"back-off retry_after={retry_after} longest={longest}")
        return 1.0

    def changed(self, old: Any, new: Any) -> None:
        if new is None:
            self._note(f"-{old.metadata.name}")
        else:
            self._note(f"{'+' if old is None else '~'}{new.metadata.name}@{new.metadata.resource_version}")

    def replaced(self) -> None:
        self._note("replaced")

    def failed(self, error: ApiError) -> None:
        self._note(f"failed: {error}")
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault

    def absent(self) -> None:
        self._note("absent")

    def heard(self) -> None:
        self._note("heard")


def run(*answers: Answer, **options: Any) -> list[str]:
    return Script(*answers, **options).run()


BACK_OFF = ["back-off retry_after=None longest=None", "waits 1"]
EMPTY_LIST = ["list", "replaced"]


def test_a_list_in_pages_is_taken_in_whole_and_the_watch_goes_on_from_its_version() -> None:
    assert run(page(a_node("a"), version="4", then="more"), page(a_node("b"), version="5"), Watched()) == [
        *("list", "list from more", "+a@1", "+b@1", "replaced"),
        *("watch from 5", "check"),
    ]


def test_every_call_has_the_namespace_and_the_selector() -> None:
    script = Script(page(), Watched(), page(), namespace="team-a", field_selector="spec.nodeName=")
    assert script.run() == [*EMPTY_LIST, "watch from 5", "check", "heard", "watch from 5"]
    assert script.asked == [{"namespace": "team-a", "field_selector": "spec.nodeName="}] * 4


def test_without_a_selection_everything_is_asked_for() -> None:
    script = Script(page())
    script.run()
    assert script.asked == [{"namespace": "", "field_selector": ""}] * 2


def test_watches_do_not_end_all_at_one_moment() -> None:
    script = Script(page(), *[Watched(event(ADDED, a_node("a", str(number)))) for number in range(30)])
    script.run()
    assert all(24.0 <= seconds <= 30.0 for seconds in script.timeouts)
    assert len(set(script.timeouts)) > 1


@pytest.mark.parametrize(
    ("events", "told", "version", "stored"),
    [
        pytest.param([event(ADDED, a_node("b", "6"))], ["+b@6"], "6", "ab", id="a new object"),
        pytest.param([event(MODIFIED, a_node("a", "6"))], ["~a@6"], "6", "a", id="a change"),
        pytest.param([event(DELETED, a_node("a", "6"))], ["-a"], "6", "", id="a deletion"),
        pytest.param([event(DELETED, a_node("b", "6"))], ["-b"], "6", "a", id="a deletion of what was never seen"),
        pytest.param([WatchEvent(BOOKMARK, None, "6")], [], "6", "a", id="a bookmark"),
        pytest.param([WatchEvent(BOOKMARK, None, "")], [], "5", "a", id="a bookmark without a version"),
        pytest.param([event(MODIFIED, a_node("a", "1"))], [], "1", "a", id="an event told twice"),
        pytest.param(
            [event(MODIFIED, a_node("a", "12")), event(MODIFIED, a_node("a", "9"))],
            ["~a@12"],
            "9",
            "a",
            id="an older one after a newer, by number",
        ),
        pytest.param(
            [event(MODIFIED, a_node("a", "6")), event(ADDED, a_node("a", "3", uid="another"))],
            ["~a@6", "~a@3"],
            "3",
            "a",
            id="another object of that name, whatever its version",
        ),
        pytest.param(
            [event(MODIFIED, a_node("a", "x")), event(MODIFIED, a_node("a", "x")), event(MODIFIED, a_node("a", "w"))],
            ["~a@x", "~a@w"],
            "w",
            "a",
            id="versions that are no numbers: the same one is told once",
        ),
        pytest.param(
            [event(MODIFIED, a_node("a", "")), event(MODIFIED, a_node("a", ""))],
            ["~a@", "~a@"],
            "5",
            "a",
            id="no versions at all: every event is told",
        ),
        pytest.param([event(ADDED, no_node("b", "6"))], [], "6", "a", id="a new object that cannot be read"),
        pytest.param(
            [event(MODIFIED, no_node("a", "6"))], [], "6", "a", id="one that can no longer be read is there as it was"
        ),
        pytest.param(
            [event(ADDED, no_node("a", "6", uid="another"))], ["-a"], "6", "", id="unless it is another of that name"
        ),
        pytest.param([event(DELETED, no_node("a", "6"))], ["-a"], "6", "", id="and is gone when it is deleted"),
        pytest.param(
            [event(ADDED, no_node("b", "6")), event(DELETED, no_node("b", "7"))], [], "7", "a", id="never read, deleted"
        ),
        pytest.param(
            [event(ADDED, no_node("b", "6")), event(MODIFIED, a_node("b", "7"))],
            ["+b@7"],
            "7",
            "ab",
            id="an object that can be read again",
        ),
    ],
)
@pytest.mark.faults
def test_events_of_a_watch(events: list[Any], told: list[str], version: str, stored: str) -> None:
    script = Script(page(a_node("a")), Watched(*events))
    story = script.run()
    assert story[:4] == ["list", "+a@1", "replaced", "watch from 5"]
    assert story[-1] == f"watch from {version}", "it goes on from there"
    assert [text for text in story[4:-1] if text != "heard"] == told
    assert story.count("heard") == len(events)
    assert "".join(sorted(script.store.keys())) == stored


@pytest.mark.faults
@pytest.mark.parametrize(
    ("events", "unreadable"),
    [
        pytest.param([event(ADDED, no_node("b"))], 2, id="one more"),
        pytest.param([event(MODIFIED, a_node("a", "6"))], 0, id="read again"),
        pytest.param([event(DELETED, a_node("a", "6"))], 0, id="deleted"),
    ],
)
def test_objects_that_cannot_be_read_are_counted_while_they_are_there(events: list[Any], unreadable: int) -> None:
    script = Script(page(no_node("a")), Watched(*events))
    script.run()
    assert len(script.reflector.unreadable) == unreadable


@pytest.mark.faults
def test_what_cannot_be_read_is_named_whatever_page_it_is_on(caplog: pytest.LogCaptureFixture) -> None:
    script = Script(page(no_node("a"), then="more"), page(no_node("b")))
    script.run()
    assert len(script.reflector.unreadable) == 2
    assert "object cannot be read kind=Node namespace= name=a" in caplog.text


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([page(a_node("a", annotations={"x": "1"}), a_node("b", annotations={"x": "1"}))], id="of a list"),
        pytest.param(
            [page(a_node("a", annotations={"y": "2"})), Watched(event(ADDED, a_node("b", annotations={"y": "2"})))],
            id="of a watch",
        ),
    ],
)
def test_equal_parts_of_different_objects_are_kept_once(answers: list[Answer]) -> None:
    script = Script(*answers)
    script.run()
    first, second = script.store.list()
    assert first.metadata.annotations is second.metadata.annotations


def test_what_is_known_is_told_first_then_what_is_new_by_its_age() -> None:
    days = {name: f"2026-01-{day:02}T00:00:00Z" for name, day in (("known", 9), ("old", 1), ("young", 5))}
    nodes = {name: a_node(name, "7", creationTimestamp=day) for name, day in days.items()}
    second = page(nodes["young"], nodes["old"], nodes["known"])
    story = run(page(a_node("known")), Watched(GoneError("too old")), second)
    assert story[-5:-1] == ["~known@7", "+old@7", "+young@7", "replaced"]


@pytest.mark.parametrize("at_once", [pytest.param(2, id="sorted in three runs"), pytest.param(100, id="sorted in one")])
def test_what_is_new_is_told_by_its_age_and_then_as_it_was_listed(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_steps, "SORTED_AT_ONCE", at_once)
    days = {"e": 5, "d": 1, "c": 3, "b": 1, "a": 4}
    listed = [a_node(name, creationTimestamp=f"2026-01-{day:02}T00:00:00Z") for name, day in days.items()]
    assert run(page(*listed))[1:6] == ["+d@1", "+b@1", "+c@1", "+a@1", "+e@1"]


@pytest.mark.faults
@pytest.mark.parametrize(
    ("second", "told"),
    [
        pytest.param([a_node("a"), a_node("b")], [], id="as before"),
        pytest.param([a_node("a", "6"), a_node("b")], ["~a@6"], id="changed meanwhile"),
        pytest.param([a_node("b")], ["-a"], id="deleted meanwhile"),
        pytest.param([a_node("a"), a_node("b"), a_node("c")], ["+c@1"], id="new"),
        pytest.param([no_node("a", "6"), a_node("b")], [], id="no longer to be read: as it was"),
        pytest.param([no_node("a", "6", uid="another"), a_node("b")], ["-a"], id="another, and not to be read"),
    ],
)
def test_a_second_list_tells_what_was_missed(second: list[Any], told: list[str]) -> None:
    """After a 410."""
    script = Script(page(a_node("a"), a_node("b")), Watched(GoneError("too old")), page(*second, version="9"))
    assert script.run() == [
        *("list", "+a@1", "+b@1", "replaced"),
        *("watch from 5", "failed: too old"),
        *("list", *told, "replaced"),
        "watch from 9",
    ]
    gone = {text[1:] for text in told if text.startswith("-")}
    assert set(script.store.keys()) == {each.metadata.name for each in (a_node("b"), *second)} - gone


@pytest.mark.faults
def test_what_could_not_be_read_and_is_in_no_later_list_is_forgotten() -> None:
    script = Script(page(no_node("a"), no_node("b")), Watched(GoneError("too old")), page(no_node("b")))
    script.run()
    assert len(script.reflector.unreadable) == 1
    assert script.reflector.unreadable.get("b") is not None


@pytest.mark.parametrize(
    ("version", "followed"),
    [
        pytest.param("8", ["heard", "watch from 9"], id="lower, in letters too"),
        pytest.param("9", ["heard", "watch from 9"], id="the same"),
        pytest.param("10", ["heard", "watch from 9"], id="higher, though not in letters"),
        pytest.param("", ["heard", "watch from 9"], id="none"),
    ],
)
def test_after_a_silent_watch_the_servers_version_is_checked(version: str, followed: list[str]) -> None:
    if version == "8":
        text = "the API server is at version 8, and was at 9: was its etcd restored?"
        followed = [f"failed: {text}", "list", "replaced", "watch from 8"]
    story = run(page(version="9"), Watched(), page(version=version), *([page(version="8")] if version == "8" else []))
    assert story == ["list", "replaced", "watch from 9", "check", *followed]


def test_a_version_of_letters_is_lower_than_none() -> None:
    story = run(page(version="x9"), Watched(), page(version="5"))
    assert story == [*EMPTY_LIST, "watch from x9", "check", "heard", "watch from x9"]


def test_a_watch_that_ends_at_once_is_counted_and_not_asked_for_in_a_loop() -> None:
    before = restarts("brief")
    story = run(page(), Watched(event(ADDED, a_node("a", "6")), lasts=0.9), page(version="6"), Watched(lasts=1.0))
    assert story == [
        *(*EMPTY_LIST, "watch from 5", "heard", "+a@6", *BACK_OFF),
        *("check", "heard", "watch from 6", "check"),
    ]
    assert restarts("brief") == before + 1


def restarts(reason: str) -> float:
    return float(metrics.watch_restarts.labels("nodes", reason)._value.get())


@pytest.mark.parametrize(
    ("answers", "counted", "level"),
    [
        pytest.param([TimedOutError("no")], 0, logging.WARNING, id="a list: a warning, of no watch"),
        pytest.param([page(), Watched(TimedOutError("no"))], 1, logging.INFO, id="a watch: it happens"),
        pytest.param([page(), Watched(), TimedOutError("no")], 1, logging.INFO, id="a check, which belongs to it"),
    ],
)
def test_what_failed_is_counted_and_logged(
    answers: list[Any], counted: int, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, reflector_module.__name__)
    before = restarts("silent")
    assert "failed: no" in run(*answers)
    assert restarts("silent") - before == counted
    assert [record.levelno for record in caplog.records] == [level]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([page(version="9"), Watched(), page(version="4"), page(version="4")], id="a check has found it"),
        pytest.param([page(version="9"), Watched(ForbiddenError("no")), page(version="4")], id="so does a list"),
    ],
)
def test_a_server_that_went_back_is_counted_once(answers: list[Any]) -> None:
    before = restarts("behind")
    assert run(*answers)[-1] == "watch from 4"
    assert restarts("behind") == before + 1


AGAIN = [*EMPTY_LIST, "watch from 7"]


@pytest.mark.faults
@pytest.mark.parametrize(
    ("answers", "story"),
    [
        pytest.param(
            lambda found: [Watched(found, event(ADDED, a_node("late", "6")))],
            ["watch from 5", *AGAIN],
            id="of an open watch nothing more counts",
        ),
        pytest.param(
            lambda found: [Watched(ConnectionFailedError("no")), lambda: (found(), page())[1]],
            [
                "watch from 5",
                "failed: no",
                "back-off retry_after=None longest=10.0",
                "waits 1",
                "check",
                "heard",
                *AGAIN,
            ],
            id="nor does a check that finds the server as far as this kind had come",
        ),
        pytest.param(
            lambda found: [lambda: (found(), Watched(event(ADDED, a_node("late", "6"))))[1]],
            ["watch from 5", *AGAIN],
            id="a watch that is only being opened is left",
        ),
        pytest.param(
            lambda found: [Watched(ForbiddenError("no")), lambda: (found(), page(version="6"))[1], Watched()],
            ["watch from 5", "failed: no", *BACK_OFF, *EMPTY_LIST, "watch from 6", *AGAIN],
            id="a list that was under way may be of before",
        ),
    ],
)
def test_what_another_kind_finds_out_of_a_restored_etcd_makes_this_one_list_anew(
    answers: Callable[[Callable[[], None]], list[Any]], story: list[str]
) -> None:
    """A quiet kind would go on from a version that means another history now, and never show what was made before it."""
    restores = Restores()
    before = restarts("brief")

    def found() -> None:
        restores.found(0)

    told = run(page(), *answers(found), page(version="7"), restores=restores)
    assert told == [*EMPTY_LIST, *story]
    assert restarts("brief") == before


@pytest.mark.faults
def test_an_open_watch_is_ended_for_what_another_kind_finds() -> None:
    restores = Restores()
    stopped: list[int] = []

    def found() -> None:
        restores.found(0)
        stopped.append(watched.stops)

    watched = Watched(found)
    run(page(), watched, restores=restores)
    assert stopped == [1]


@pytest.mark.faults
@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([page(version="9"), Watched(), page(version="4"), page(version="4")], id="by a check"),
        pytest.param([page(version="9"), Watched(ForbiddenError("no")), page(version="4")], id="by a list"),
    ],
)
def test_what_one_kind_finds_all_are_told_once(answers: list[Any]) -> None:
    restores, told = Restores(), [0]

    def tell() -> None:
        told[0] += 1

    restores.on_found(tell)
    story = run(*answers, Watched(), page(version="4"), Watched(), restores=restores)
    assert (restores.count, told) == (1, [1])
    assert story.count("list") == 2
    assert (restores.found(0), restores.count, told) == (1, 1, [1]), "what another kind found before it listed anew"
    assert (restores.found(1), restores.count, told) == (2, 2, [2]), "it was restored a second time"


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        pytest.param(TooManyRequestsError("no", retry_after=7.0), "retry_after=7.0 longest=None", id="429"),
        pytest.param(
            ConnectionFailedError("no"), f"retry_after=None longest={CUT_BACKOFF_SECONDS}", id="not there: found soon"
        ),
        pytest.param(ApiError("no", code=500), "retry_after=None longest=None", id="there, and failing"),
    ],
)
def test_the_back_off_knows_what_the_server_wants_and_whether_it_is_there(error: ApiError, asked: str) -> None:
    assert run(error)[:4] == ["list", "failed: no", f"back-off {asked}", "waits 1"]


def test_a_wait_is_spared_once() -> None:
    gone = GoneError("no")
    assert run(gone, gone, page()) == [*("list", "failed: no") * 2, *BACK_OFF, *EMPTY_LIST, "watch from 5"]


def test_a_spared_wait_is_spared_again_after_ten_seconds() -> None:
    quiet = [Watched(event(ADDED, a_node("a", "6")), lasts=10.0)]
    story = run(page(), Watched(GoneError("no")), page(), *quiet, Watched(GoneError("no")), page())
    assert not [text for text in story if text.startswith("waits")]
    almost = [Watched(event(ADDED, a_node("a", "6")), lasts=9.9)]
    story = run(page(), Watched(GoneError("no")), page(), *almost, Watched(GoneError("no")), page())
    assert [text for text in story if text.startswith("waits")] == ["waits 1"]


REFUSED = [
    pytest.param(NotFoundError("no"), {}, id="not served"),
    pytest.param(ForbiddenError("no"), {"may_be_forbidden": True}, id="forbidden, which it may be"),
]


@pytest.mark.parametrize(("error", "options"), REFUSED)
def test_a_kind_that_was_never_served_is_absent_and_asked_for_from_time_to_time(
    error: ApiError, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, reflector_module.__name__)
    once = ["list", "failed: no", "absent", f"waits {LATER_SECONDS:g}"]
    assert run(error, error, page(), **options) == [*once, *once, "list", "replaced", "watch from 5"]
    assert caplog.text.count("kind is refused resource=nodes error=no") == 1


@pytest.mark.parametrize(("error", "options"), REFUSED)
def test_what_was_seen_of_a_kind_counts_until_it_was_refused_for_long(error: ApiError, options: dict[str, Any]) -> None:
    before = ["list", "failed: no", *BACK_OFF]
    story = run(page(), Watched(error), *[error] * 15, page(), **options)
    assert story == [
        *(*EMPTY_LIST, "watch from 5", "failed: no", *BACK_OFF),
        *before * int(REFUSED_SECONDS - 1),
        *("list", "failed: no", "absent", f"waits {LATER_SECONDS:g}"),
        *("list", "replaced", "watch from 5"),
    ]


def test_a_refusal_counts_from_the_last_list_that_was_taken_in() -> None:
    error = NotFoundError("no")
    story = run(page(), Watched(error), error, page(), *[Watched(event(ADDED, a_node("a")))] * 2, Watched(error))
    assert "absent" not in story


@pytest.mark.faults
def test_of_a_kind_that_is_absent_nothing_is_unreadable() -> None:
    error = NotFoundError("no")
    script = Script(page(no_node("a")), Watched(error), *[error] * 15)
    assert "absent" in script.run()
    assert len(script.reflector.unreadable) == 0


def test_where_it_may_not_be_forbidden_it_is_a_failure_as_others(caplog: pytest.LogCaptureFixture) -> None:
    assert run(ForbiddenError("no"))[:2] == ["list", "failed: no"]
    assert "list failed resource=nodes error=no" in caplog.text


@pytest.mark.faults
def test_a_fault_of_ours_is_told_and_everything_is_listed_again(caplog: pytest.LogCaptureFixture) -> None:
    def fault() -> None:
        raise KeyError("a fault of ours")

    story = run(page(), Watched(fault), page())
    assert story == [
        *(*EMPTY_LIST, "watch from 5", "failed: KeyError: 'a fault of ours'", *BACK_OFF),
        *(*EMPTY_LIST, "watch from 5"),
    ]
    assert "unexpected error where=informer-nodes" in caplog.text


@pytest.mark.faults
def test_a_fault_in_what_follows_is_no_end_either(caplog: pytest.LogCaptureFixture) -> None:
    """A check would follow a watch that was cut; after this nothing is certain."""
    script = Script(page(), Watched(ConnectionFailedError("cut")), page())
    script.fault = KeyError("a fault of ours")
    assert script.run() == [
        *(*EMPTY_LIST, "watch from 5", "failed: cut", f"waits {UNEXPECTED_SECONDS:g}"),
        *(*EMPTY_LIST, "watch from 5"),
    ]
    assert "unexpected error where=informer-nodes" in caplog.text


def test_stop_ends_the_watch_that_is_open_and_no_other() -> None:
    first = Watched(event(ADDED, a_node("a", "6")))
    seen: list[Sequence[int]] = []

    def stop() -> None:
        script.reflector.stop()
        seen.append((first.stops, second.stops))

    second = Watched(stop, event(ADDED, a_node("b", "7")), event(ADDED, a_node("c", "8")))
    script = Script(page(), first, second)
    script.run()
    assert seen == [(1, 1)], "the first had ended by itself; the second is told at once"
    assert script.store.get("c") is None


def test_a_stop_while_a_watch_is_opened_ends_it_before_its_first_event() -> None:
    watch = Watched(event(ADDED, a_node("a", "6")))

    def opening() -> Watched:
        script.reflector.stop()
        return watch

    script = Script(page(), opening)
    script.run()
    assert watch.stops == 1
    assert script.store.get("a") is None


def test_a_stop_between_two_pages_takes_in_none_and_asks_no_more() -> None:
    def stopped() -> Page[Any]:
        script.reflector.stop()
        return page(a_node("a"), then="more")

    script = Script(stopped, page(a_node("b")))
    script.run()
    assert len(script.answers) == 1
    assert list(script.store.keys()) == []


def test_what_fails_because_of_the_stop_is_not_told() -> None:
    told: list[ApiError] = []

    def cut() -> ApiError:
        script.reflector.stop()
        return ConnectionFailedError("cut")

    script = Script(cut)
    script.failed = told.append  # type: ignore[assignment,method-assign]
    script.run()
    assert told == []


def test_a_reflector_has_waits_and_a_back_off_of_its_own() -> None:
    """In the other tests the script stands in for both."""
    script = Script(ConnectionFailedError("no"), page())
    script.reflector = Reflector(cast("API", script), NODES, script.store, script, clock=script.clock)
    assert script.run() == ["list", "failed: no", "list", "replaced", "watch from 5"]
