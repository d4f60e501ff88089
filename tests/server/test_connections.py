"""Which connections a crowded listener hangs up on: no socket, no event loop."""

from __future__ import annotations

import pytest

from extender.server.connections import GRACE_SECONDS, Connections

PLACES = 10  # one is kept free, and eight at most are known


class FakeConnection:
    """One letter each: `s` a silent stranger, `k` a known one that is silent; `S` and `K` are being answered."""

    def __init__(self, letter: str) -> None:
        self.known = letter in "kK"
        self.receiving = letter.islower()
        self.gone = False

    def hang_up(self) -> None:
        self.gone = True


def line_of(letters: str, *, just_come: str = "") -> tuple[Connections, list[FakeConnection]]:
    """just_come: those after a moment."""
    now = 0.0
    line, made = Connections(PLACES, lambda: now), [FakeConnection(letter) for letter in letters + just_come]
    for number, connection in enumerate(made):
        now = GRACE_SECONDS if number >= len(letters) else 0.0
        line.opened(connection)
        if connection.known:
            line.trust(connection)
    now = GRACE_SECONDS
    return line, made


@pytest.mark.parametrize(
    ("letters", "gone"),
    [
        pytest.param("sssssssss", [], id="one place is left: none goes"),
        pytest.param("ssssssssss", [0], id="none is left: the first stranger goes"),
        pytest.param("ksssssssss", [1], id="a known one was there before: it stays"),
        pytest.param("kSssssssss", [2], id="a stranger that is being answered stays"),
        pytest.param("kkkkkkkkss", [8], id="eight known ones stay, though a stranger has just come"),
        pytest.param("kkkkkkkkkS", [0], id="a ninth known one: the one that was answered longest ago goes"),
        pytest.param("Kkkkkkkkkk", [1, 2], id="a known one that is being answered stays"),
        pytest.param("KKKKKKKKKs", [9], id="nine calls that are held, and a stranger"),
        pytest.param("KKKKKKKKKS", [], id="all are being answered: none goes"),
    ],
)
def test_where_a_listener_is_crowded(letters: str, gone: list[int]) -> None:
    line, made = line_of(letters)
    line.make_room()
    assert [number for number, connection in enumerate(made) if connection.gone] == gone
    assert len(line) == len(letters) - len(gone)
    line.make_room()
    assert sum(connection.gone for connection in made) == len(gone), "room that is being made is not made twice"


@pytest.mark.parametrize(
    ("letters", "just_come", "gone", "again"),
    [
        pytest.param("SSSSSSSSS", "s", [], True, id="the one stranger has only just come: it may be about to speak"),
        pytest.param("SSSSSSSSs", "s", [8], False, id="the one goes that has been silent"),
        pytest.param("SSSSSSSs", "sss", [7], True, id="and those that have only just come are seen to later"),
        pytest.param("SSSSSSSSS", "S", [], False, id="the one that has only just come has spoken"),
        pytest.param("kkkkkkkk", "k", [0], False, id="a known one had its turn"),
    ],
)
def test_a_caller_has_a_moment_to_speak(letters: str, just_come: str, gone: list[int], again: bool) -> None:
    line, made = line_of(letters, just_come=just_come)
    assert line.make_room() is again
    assert [number for number, connection in enumerate(made) if connection.gone] == gone


@pytest.mark.parametrize(
    ("letters", "crowded"),
    [
        pytest.param("sssssssss", False, id="nine of ten"),
        pytest.param("ssssssssss", True, id="ten of ten"),
        pytest.param("kkkkkkkk", False, id="eight known ones"),
        pytest.param("kkkkkkkkk", True, id="nine known ones"),
    ],
)
def test_a_listener_is_crowded(letters: str, crowded: bool) -> None:
    assert line_of(letters)[0].crowded is crowded


def test_a_known_one_that_is_answered_is_at_the_end_of_the_line() -> None:
    line, made = line_of("kkkkkkkkk")
    line.answered(made[0])
    line.make_room()
    assert [connection.gone for connection in made] == [False, True] + [False] * 7


def test_a_stranger_that_is_answered_is_a_stranger_still() -> None:
    """As with TLS one with a name that is not allowed: each of its calls is answered, with 403."""
    line, made = line_of("ssssssssss")
    line.answered(made[0])
    line.make_room()
    assert made[0].gone


def test_one_that_is_closed_is_forgotten() -> None:
    line, made = line_of("sk")
    for connection in made:
        line.closed(connection)
        line.trust(connection)
        line.answered(connection)
    assert len(line) == 0
