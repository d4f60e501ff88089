"""What an extender may have is limited in a fault run, and given back."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.fault_run import limits
from tests.e2e.fault_run.limits import few_descriptors, few_threads, little_memory


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started
        started.communicate(b"\n")


@pytest.mark.parametrize(
    ("limit", "what"),
    [
        pytest.param(few_descriptors, resource.RLIMIT_NOFILE, id="descriptors"),
        pytest.param(little_memory, resource.RLIMIT_AS, id="memory"),
    ],
)
def test_a_limit_is_put_on_and_taken_off(process: subprocess.Popen[bytes], limit: object, what: int) -> None:
    assert callable(limit)
    before = resource.prlimit(process.pid, what)
    undo = limit([process.pid])
    assert resource.prlimit(process.pid, what)[0] != before[0]
    undo()
    assert resource.prlimit(process.pid, what) == before


def test_a_process_that_has_ended_is_left_alone() -> None:
    few_descriptors([2**22 - 1])()


def test_threads_are_counted_by_the_controller_and_the_processes_go_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel shows it: one thread more than there are."""
    group = tmp_path / "gang-extender-fault-run-first"
    group.mkdir()
    (group / "pids.max").write_text("max")
    (group / "pids.current").write_text("12\n")
    monkeypatch.setattr(limits, "CONTROLLERS", (tmp_path / "missing", tmp_path))
    undo = few_threads([77], "first")
    assert undo is not None
    assert ((group / "pids.max").read_text(), (group / "cgroup.procs").read_text()) == ("13", "77")
    undo()
    assert ((group / "pids.max").read_text(), (tmp_path / "cgroup.procs").read_text()) == ("max", "77")


def test_where_no_controller_can_be_had_no_threads_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONTROLLERS", (tmp_path / "missing",))
    assert few_threads([77], "first") is None
