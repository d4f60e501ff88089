"""The commands of README and docs/ that need no cluster, word for word: what stands below a command is what it prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.cli.main import build_parser, main
from extender.client.interface import COMPOSITE_POD_GROUPS, FOREIGN_POD_GROUPS, IN_TREE_GROUPS, LEASES, RESOURCE_TYPES
from tests.documented import PAGES, PROJECT, dump_commands, ended_blocks

COMMAND = ".venv/bin/gang-extender "
NEED_A_SERVER = ("explain", "whatif")  # tests/server/test_documented_calls.py runs them


def _shown() -> Iterator[tuple[str, str]]:
    """Each command whose output is shown."""
    for page in PAGES:
        for command, output in ended_blocks(page):
            arguments = command.removeprefix(".venv/bin/").removeprefix("gang-extender ")
            if arguments != command and arguments.split()[0] not in NEED_A_SERVER:
                yield arguments, output


@pytest.mark.parametrize(("arguments", "output"), [pytest.param(*shown, id=shown[0]) for shown in _shown()])
def test_a_command_prints_what_stands_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, output: str
) -> None:
    monkeypatch.chdir(PROJECT)
    assert main(arguments.split()) == int(arguments.startswith("doctor") and "error: " in output)
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


def test_a_dump_has_every_kind_that_simulate_reads() -> None:
    """By README's commands; PodGroups of other APIs, which few clusters have, are named below them."""
    dumped = {kind for arguments, _ in dump_commands() for each in arguments[-1:] for kind in each.split(",")}
    read = {
        str(kind) if kind.plural.endswith("podgroups") else kind.plural for kind in RESOURCE_TYPES if kind is not LEASES
    }
    others = {str(each) for each in (*IN_TREE_GROUPS, COMPOSITE_POD_GROUPS, *FOREIGN_POD_GROUPS)}
    assert dumped == read - others
    for kind in others - {"podgroups.v1alpha2.scheduling.k8s.io"}:  # the same in an older release
        assert f"`{kind}`" in (PROJECT / "README.md").read_text()


def test_simulate_is_shown_with_the_files_that_the_dump_writes() -> None:
    [command] = re.findall(rf"^{re.escape(COMMAND)}(simulate cluster.*)$", PAGES[0].read_text(), re.MULTILINE)
    assert {file for _, file in dump_commands()} <= set(command.split())


APPLIED = re.compile(r"kubectl apply(.*)")


@pytest.mark.parametrize(
    "file",
    [*PAGES, *sorted((PROJECT / "manifests").rglob("kustomization.yaml"))],
    ids=lambda file: str(file.relative_to(PROJECT)),
)
def test_manifests_are_applied_by_the_server_everywhere(file: Path) -> None:
    """One after the other, client-side and server-side applies conflict."""
    assert [each for each in APPLIED.findall(file.read_text()) if "--server-side" not in each] == []


WRITTEN = re.compile(r"(?:^ *|`|\$ )(?:\.venv/bin/)?gang-extender ([a-z]+(?: [^`\n#&|>]*)?)", re.MULTILINE)
OF_THE_READER = "manifests/mine"
APPLIES = re.compile(r"kubectl (?:apply|delete|diff)[^\n`]*? -[kf] ([\w./-]+)")


def _lines_of_blocks(page: Path) -> str:
    return "\n".join(re.findall(r"^ *```(?:sh)?\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_in_a_block_is_one_that_there_is(page: Path) -> None:
    """Also where its output is not shown: its flags are known."""
    for arguments in WRITTEN.findall(_lines_of_blocks(page)):
        name, *rest = shlex.split(arguments.partition(" 2")[0])
        if not any("..." in each or each.isupper() or each.startswith("$") for each in rest) and name != "help":
            build_parser([name]).parse_args([name, *rest])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_manifest_that_is_applied_is_there(page: Path) -> None:
    named = [
        each
        for each in APPLIES.findall(page.read_text())
        if each.startswith(("manifests", "docs", "install")) and each != OF_THE_READER
    ]
    assert [each for each in named if not (PROJECT / each).exists()] == []
