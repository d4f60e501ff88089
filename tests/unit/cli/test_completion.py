"""Completion: what kubectl is told, and what the shells' own functions offer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.cli import completion
from extender.cli.main import KUBECTL_GANG, PROGRAMS, kubectl_gang, main
from tests.unit.cli import leading as leaders
from tests.unit.cli.leading import Leading

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leading]:
    with leaders.leading(tmp_path_factory.mktemp("leader")) as made:
        bench = made.bench
        for name in ("train", "tune", "serve"):
            bench.pod_group(name, 1)
        nodes = {"metadata": {}, "items": [{"metadata": {"name": f"n{number}"}} for number in range(2)]}
        pods = {"metadata": {}, "items": [{"metadata": {"name": "train-0"}}]}
        made.api.objects["/api/v1/nodes"] = nodes
        made.api.objects["/api/v1/namespaces/default/pods"] = pods
        made.api.objects["/api/v1/namespaces"] = {"metadata": {}, "items": [{"metadata": {"name": "default"}}]}
        yield made


@pytest.fixture(autouse=True)
def _kubeconfig(leader: Leading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(leader.kubeconfig))


def told(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert completion.kubectl_complete(words) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param([""], [*KUBECTL_GANG.commands, ":4"], id="the commands"),
        pytest.param(["w"], ["why", "whatif", ":4"], id="a command that is begun"),
        pytest.param(["whatif", "--topology-"], ["--topology-required", "--topology-preferred", ":4"], id="a flag"),
        pytest.param(["list", "-o", ""], ["text", "wide", "name", "json", "yaml", ":4"], id="a choice"),
        pytest.param(["explain", "t"], ["train", "tune", ":4"], id="a gang of the namespace"),
        pytest.param(["explain", "default/s"], ["default/serve", ":4"], id="a gang by its namespace"),
        pytest.param(["explain", "-n", "team-a", "default/s"], ["default/serve", ":4"], id="a gang of another"),
        pytest.param(["why", "tr"], ["train-0", ":4"], id="a pod"),
        pytest.param(["drain", ""], ["n0", "n1", ":4"], id="a node"),
        pytest.param(["list", "-n", ""], ["default", ":4"], id="a namespace"),
        pytest.param(["whatif", "-f", ""], [":0"], id="a file is kubectl's to complete"),
        pytest.param(["explain", "it's"], [":4"], id="a quote"),
    ],
)
def test_what_kubectl_is_told(capsys: pytest.CaptureFixture[str], words: list[str], offered: list[str]) -> None:
    found = told(capsys, *words)
    assert [each for each in found if not (len(offered) > 1 and each.startswith("-") and not words[-1])] == offered


def test_commands_come_with_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    completion.kubectl_complete(["why"])
    assert capsys.readouterr().out.splitlines()[0].startswith("why\tthe gang of a pod")


@pytest.mark.parametrize("words", [["explain", ""], ["why", ""], ["drain", ""], ["list", "-n", ""]], ids=" ".join)
def test_without_a_cluster_nothing_is_offered_and_nothing_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")
    assert [each for each in told(capsys, *words) if not each.startswith("-")] == [":4"]
    assert capsys.readouterr().err == ""


def test_the_environment_is_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    before = dict(os.environ)
    told(capsys, "list", "")
    assert dict(os.environ) == before


@pytest.mark.parametrize("shell", completion.SHELLS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.file)
def test_each_shell_gets_a_script(shell: str, program: object, capsys: pytest.CaptureFixture[str]) -> None:
    run = kubectl_gang if program is KUBECTL_GANG else main
    assert run(["completion", shell]) == 0
    assert ("kubectl-gang" if run is kubectl_gang else "gang-extender") in capsys.readouterr().out


LINES = {
    "bash": 'COMP_LINE="kubectl-gang wha"; COMP_POINT=16; COMP_TYPE=9; _python_argcomplete kubectl-gang wha kubectl-gang; '
    'printf "%s\\n" "${COMPREPLY[@]}"',
    "fish": 'complete -C "kubectl-gang wha"',
}


@pytest.mark.parametrize("shell", LINES)
def test_a_shell_offers_what_the_script_says(shell: str, tmp_path: Path) -> None:
    """zsh has no way to ask without a terminal."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    script = tmp_path / "completion"
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    made = subprocess.run(
        [BIN / "kubectl-gang", "completion", shell], capture_output=True, text=True, check=True, timeout=30
    )
    script.write_text(made.stdout)
    ended = subprocess.run(
        [shell, "-c", f"source {script}; {LINES[shell]}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=environ,
    )
    assert ended.stdout.split()[:1] == ["whatif"], (ended.stdout, ended.stderr)


def test_kubectl_finds_the_program(leader: Leading) -> None:
    """By the names of the two files alone."""
    for name in ("kubectl-gang", "kubectl_complete-gang"):
        assert (BIN / name).exists()
    ended = subprocess.run(
        [BIN / "kubectl_complete-gang", "drain", ""], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout.splitlines()[-3:] == ["n0", "n1", ":4"]
