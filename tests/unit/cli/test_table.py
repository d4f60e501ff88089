"""Tables for people: their order, their last column, and what tenants wrote in them."""

from __future__ import annotations

import pytest

from extender.cli.table import natural, table
from extender.cli.terminal import Terminal

HEADS = ("POD", "STATE", "MESSAGE")
ROW = ("web-1", "Pending", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. " * 3)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["n2", "n10"], id="numbers count as numbers"),
        pytest.param(["n", "n1", "n1-a2", "n1-a10"], id="each run of digits for itself, the shorter name first"),
        pytest.param(["n01", "n1", "n2"], id="zeros in front count last"),
        pytest.param(["1", "02", "3", "a"], id="names that begin with digits"),
        pytest.param(["n" + "9" * 5000, "n1" + "0" * 5000], id="numbers of any length"),
    ],
)
def test_natural_order(names: list[str]) -> None:
    names_in_disorder = names[::-1]
    assert sorted(names_in_disorder, key=natural) == names


def test_in_a_pipe_a_row_is_a_line() -> None:
    assert list(table(HEADS, [ROW])) == [
        "POD     STATE     MESSAGE",
        f"web-1   Pending   {ROW[2]}".rstrip(),
    ]


def test_on_a_terminal_a_message_is_folded_below_its_head_and_cut() -> None:
    lines = list(table(HEADS, [ROW], Terminal(width=60)))
    assert [line[:18].strip() for line in lines] == ["POD     STATE     ".strip(), "web-1   Pending", "", ""]
    assert max(map(len, lines)) <= 60
    assert lines[-1].endswith(" ...")


def test_where_there_is_no_room_beside_them_messages_stand_below_their_rows() -> None:
    lines = list(table(HEADS, [ROW], Terminal(width=40)))
    assert lines[:2] == ["POD     STATE     MESSAGE", "web-1   Pending"]
    assert [line[:4] for line in lines[2:]] == [" " * 4] * 3
    assert max(map(len, lines)) <= 40


def test_a_state_has_its_colour_and_stays_aligned() -> None:
    lines = list(table(HEADS, [("a", "Bound", "x"), ("b", "Waiting", "x")], Terminal(200, colours=True)))
    assert lines[1:] == ["a     \x1b[32mBound  \x1b[0m   x", "b     Waiting   x"]


def test_what_a_tenant_wrote_is_one_line_without_commands_to_the_terminal() -> None:
    assert list(table(("A", "B"), [("x", "a\nb\x1b[2J")])) == ["A   B", r"x   a\nb\x1b[2J"]
