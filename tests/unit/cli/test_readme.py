"""README's commands that need no cluster, word for word: what stands below a command is what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.cli.main import main

PROJECT = Path(__file__).parents[3]
COMMAND = ".venv/bin/gang-extender "
BLOCK = re.compile(r"```\n\$ " + re.escape(COMMAND) + r"(.*)\n([\s\S]*?)```")


def _shown() -> Iterator[tuple[str, str]]:
    """Each command whose output is shown."""
    yield from BLOCK.findall((PROJECT / "README.md").read_text())


@pytest.mark.parametrize(("arguments", "output"), [pytest.param(*shown, id=shown[0]) for shown in _shown()])
def test_a_command_prints_what_stands_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, output: str
) -> None:
    monkeypatch.chdir(PROJECT)
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out == output


def test_evaluate_and_simulate_are_among_them() -> None:
    assert {"evaluate", "simulate"} <= {arguments.split()[0] for arguments, _ in _shown()}


@pytest.mark.parametrize("more", [[], ["--config", "docs/simulate/kube-scheduler.yaml"]])
def test_the_whole_example_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    """docs/simulate: with our defaults the gangs are whole or not there; with a plain configuration they are not gangs."""
    monkeypatch.chdir(PROJECT)
    files = [f"docs/simulate/{name}.yaml" for name in ("nodes", "web", "gangs")]
    assert main(["simulate", *files, *more]) == 0
    said = capsys.readouterr()
    assert ("no profile has Coscheduling" in said.err) is bool(more)
    assert ("sweep  Denied  0/3 (min 3)" in said.out) is not bool(more)
