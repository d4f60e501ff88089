"""The points at which a fault run makes the extender fail: off unless asked for, and each is somewhere in the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from extender import failpoints
from extender.failpoints import POINTS, VARIABLE, FailpointError, parsed, reached

EXTENDER = Path(failpoints.__file__).parent


def test_nothing_happens_unless_the_environment_asks_for_it() -> None:
    for point in POINTS:
        reached(point)


def test_each_point_is_reached_in_one_place_of_the_program() -> None:
    program = "".join(file.read_text() for file in EXTENDER.rglob("*.py"))
    assert {point: program.count(f'failpoints.reached("{point}")') for point in POINTS} == dict.fromkeys(POINTS, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("relist=exit", {"relist": "exit"}, id="one"),
        pytest.param(
            "relist=sleep(2.5);nominated=raise", {"relist": 2.5, "nominated": "raise"}, id="two, of two kinds"
        ),
    ],
)
def test_what_is_asked_for(text: str, expected: dict[str, failpoints.Action]) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "elsewhere=exit", "'elsewhere' is no failpoint; there are slots-noted", id="a point that is not there"
        ),
        pytest.param("relist", "'relist': exit, raise or sleep(seconds) is to follow", id="no action"),
        pytest.param("relist=sleep(1e9)", "is to follow", id="a sleep that would not end"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(FailpointError, match=VARIABLE) as raised:
        parsed(text)
    assert said in str(raised.value)


def test_a_point_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_asked", {"relist": "raise"})
    reached("nominated")
    with pytest.raises(FailpointError, match="failpoint relist"):
        reached("relist")


def test_a_point_that_sleeps_says_so_before(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    slept: list[float] = []
    monkeypatch.setattr(failpoints, "_asked", {"relist": 2.5})
    monkeypatch.setattr("time.sleep", slept.append)
    reached("relist")
    assert slept == [2.5]
    assert caplog.messages == ["failpoint reached point=relist action=2.5"]


def test_a_point_that_ends_the_process_does_so_as_a_kill() -> None:
    code = (
        "from extender.failpoints import reached; reached('nominated'); print('on'); reached('relist'); print('over')"
    )
    environment = {**os.environ, VARIABLE: "relist=exit"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) in [(-signal.SIGKILL, []), (-signal.SIGKILL, ["on"])]
    assert done.stderr == "failpoint reached point=relist action=exit\n"
