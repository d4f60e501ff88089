"""What a test asks of a running extender, and what it is answered."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import asked_extender
from tests.e2e.asked_extender import Answers, Books, note_reached


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_extender, "BETWEEN_SECONDS", 0.0)


def asked(folder: Path, *looks: list[str]) -> list[str] | None:
    """looks: what is wrong each time that the extender looks."""
    books, ended = Books(folder), threading.Event()
    found: Iterator[list[str]] = iter(looks)
    answers = Answers(folder, lambda: next(found), lambda text: None)

    def answer() -> None:
        while not ended.wait(0.01):
            answers.look()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        return books.wrong(within=5)
    finally:
        ended.set()
        thread.join()


def test_books_without_a_fault(tmp_path: Path) -> None:
    assert asked(tmp_path, []) == []


def test_what_is_wrong_in_each_look_is_told_and_what_was_on_its_way_is_not(tmp_path: Path) -> None:
    assert asked(tmp_path, ["a", "b"], ["b"], ["b", "c"]) == ["b"]


def test_a_rule_that_raises_is_told(tmp_path: Path) -> None:
    (said,) = asked(tmp_path) or []
    assert said == "the books cannot be read: StopIteration()"


def test_no_answer_comes(tmp_path: Path) -> None:
    assert Books(tmp_path).wrong(within=0.1) is None


def test_failpoints_are_armed_once_and_disarmed(tmp_path: Path) -> None:
    armed: list[str] = []
    books, answers = Books(tmp_path), Answers(tmp_path, list, armed.append)
    for text in ("relist=exit", "relist=exit", ""):
        books.arm(text)
        answers.look()
    assert armed == ["relist=exit", ""]


def test_a_failpoint_is_reached_once_and_then_anew_when_it_is_armed_again(tmp_path: Path) -> None:
    books = Books(tmp_path)
    assert books.reached() is None
    books.arm("relist=raise")
    note_reached(tmp_path)
    first = books.reached()
    note_reached(tmp_path)
    books.arm("")
    assert first is not None
    assert books.reached() == first
    books.arm("relist=raise")
    assert books.reached() is None


def test_it_goes_on_where_no_descriptor_can_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(file: Path) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    answers = Answers(tmp_path, list, lambda text: None)
    with monkeypatch.context() as lacking:
        lacking.setattr(Path, "read_text", none_left)
        answers.look()
