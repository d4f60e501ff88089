"""Folding, cutting and colours on a terminal; none of them in a pipe."""

from __future__ import annotations

import io

import pytest

from extender.cli import terminal
from extender.cli.terminal import PLAIN, Colour, Terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "colours"),
    [
        pytest.param({}, True, id="a terminal has colours"),
        pytest.param({"NO_COLOR": "1"}, False, id="not where NO_COLOR says so"),
        pytest.param({"NO_COLOR": ""}, True, id="an empty NO_COLOR says nothing"),
        pytest.param({"TERM": "dumb"}, False, id="not where it can show none"),
    ],
)
def test_colours(environ: dict[str, str], colours: bool) -> None:
    assert terminal.of(Screen(), environ).colours is colours
    assert terminal.of(Screen(), environ).width
    assert terminal.of(io.StringIO(), environ) == PLAIN


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("fits", ["fits"], id="what fits is one line"),
        pytest.param("0/3 nodes are available", ["0/3 nodes", "are", "available"], id="folded between words"),
        pytest.param("a" * 12, ["a" * 10, "aa"], id="a word that is longer than the line is broken"),
        pytest.param("a-b", ["a-b"], id="names are not broken at hyphens"),
        pytest.param("", [""], id="nothing is one empty line"),
        pytest.param("one two three four five six", ["one two", "three ..."], id="cut where it would take more lines"),
    ],
)
def test_fold(text: str, lines: list[str]) -> None:
    at_most = 2 if "six" in text else None
    assert list(Terminal(width=14).fold(text, indent=4, at_most=at_most)) == lines


def test_a_pipe_gets_the_whole_line() -> None:
    assert list(PLAIN.fold("word " * 200, at_most=1)) == ["word " * 200]
    assert PLAIN.paint("Bound", Colour.GREEN) == "Bound"


@pytest.mark.parametrize("width", range(1, 12))
def test_a_terminal_of_any_width_is_served(width: int) -> None:
    for indent in (0, 4, 40):
        assert "".join(Terminal(width).fold("some words to fold", indent)).replace(" ", "") == "somewordstofold"
        assert len(list(Terminal(width).fold("some words to fold", indent, 3))) <= 3
