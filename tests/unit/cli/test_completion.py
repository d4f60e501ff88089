"""Completion: what kubectl is told, and what the shells' own functions offer."""

from __future__ import annotations

import os
import pty
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

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
    "kubectl-gang wha": "kubectl-gang whatif",
    "kubectl-gang list -o na": "kubectl-gang list -o name",
    "kubectl-gang list --all-n": "kubectl-gang list --all-namespaces",
    "kubectl-gang explain tra": "kubectl-gang explain train",
    "kubectl-gang why train": "kubectl-gang why train-0",
    "gang-extender eval": "gang-extender evaluate",
}
"""What is typed before Tab, and what the line is then."""
TRIES = 5  # a busy machine may not answer within the moment that a completion has: Tab is pressed again


@cache
def script_of(shell: str) -> str:
    """Of both programs."""
    made = [
        subprocess.run(
            [BIN / program.file, "completion", shell], capture_output=True, text=True, check=True, timeout=30
        )
        for program in PROGRAMS
    ]
    return "\n".join(each.stdout for each in made)


def by_bash(script: Path, line: str, environ: dict[str, str]) -> str:
    """Its own function, called as bash calls it."""
    before, _, word = line.rpartition(" ")
    program, _, previous = before.partition(" ")[0], "", before.rpartition(" ")[2]
    asked = (
        f"COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_TYPE=9; "
        f"_python_argcomplete {program} {shlex.quote(word)} {shlex.quote(previous)}; printf '%s' \"${{COMPREPLY[*]}}\""
    )
    said = _run(["bash", "--norc", "-c", f"source {script}; {asked}"], environ)
    return f"{before} {said}"


def by_fish(script: Path, line: str, environ: dict[str, str]) -> str:
    said = _run(["fish", "--no-config", "-c", f"source {script}; complete -C {shlex.quote(line)}"], environ)
    offered = [each.partition("\t")[0] for each in said.splitlines()]
    return f"{line.rpartition(' ')[0]} {' '.join(offered)}"


def by_zsh(script: Path, line: str, environ: dict[str, str]) -> str:
    """It completes at a terminal only: Tab is pressed on one, and the line as it is then comes by a FIFO."""
    told = script.parent / "line"
    told.unlink(missing_ok=True)
    os.mkfifo(told)
    set_up = (
        f"PS1='> '; autoload -Uz compinit; compinit -u -D; source {script}; unsetopt beep; zstyle ':completion:*' menu no; "
        f"tab() {{ zle expand-or-complete; print -r -- $BUFFER > {told}; }}; zle -N tab; bindkey '^I' tab; print ready"
    )
    ours, shells = pty.openpty()
    terminal: Any = {"stdin": shells, "stdout": shells, "stderr": shells, "start_new_session": True}
    with subprocess.Popen(["zsh", "-f", "-i"], env={**environ, "TERM": "dumb"}, **terminal) as zsh:
        os.close(shells)
        try:
            os.write(ours, f"{set_up}\n".encode())
            seen = b""
            while seen.count(b"ready") < 2:  # the first is what was typed
                seen += os.read(ours, 4096)
            os.write(ours, f"{line}\t".encode())
            return told.read_text()
        finally:
            zsh.kill()
            os.close(ours)


def _run(command: list[str], environ: dict[str, str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=environ)
    assert ended.stderr == ""
    return ended.stdout


@pytest.mark.parametrize(("line", "completed"), LINES.items())
@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_shell_completes_what_is_typed(shell: str, line: str, completed: str, tmp_path: Path) -> None:
    """In the real one. Where CI=true each of the three is there: .ci/run installs them."""
    if shutil.which(shell) is None:
        (pytest.fail if os.environ.get("CI") == "true" and os.getuid() == 0 else pytest.skip)(f"{shell} is not here")
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    by = {"bash": by_bash, "zsh": by_zsh, "fish": by_fish}[shell]
    script = tmp_path / "completion"
    script.write_text(script_of(shell))
    lines = (by(script, line, environ).rstrip() for _ in range(TRIES))
    assert completed in lines


def test_kubectl_finds_the_program(leader: Leading) -> None:
    """By the names of the two files alone."""
    for name in ("kubectl-gang", "kubectl_complete-gang"):
        assert (BIN / name).exists()
    ended = subprocess.run(
        [BIN / "kubectl_complete-gang", "drain", ""], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout.splitlines()[-3:] == ["n0", "n1", ":4"]
