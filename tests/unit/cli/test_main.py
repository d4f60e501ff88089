"""The command itself: its version, its help, and one exit code for one kind of mistake."""

from __future__ import annotations

import importlib
import json
import platform
import re
import shlex
from pathlib import Path

import pytest

from extender.cli.main import COMMANDS, PROGRAMS, Program, build_parser, main


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == "gang-extender 0.1.0\n"


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_for_programs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"name": "gang-extender", "version": "0.1.0", "python": platform.python_version()}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.file)
def test_help_of_all_ends_with_examples_that_the_program_takes(
    program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"], program)
    _, _, shown = capsys.readouterr().out.partition("\nexamples:\n")
    examples = re.findall(rf"^  {program.name} (.*)$", shown, re.MULTILINE)
    assert examples == list(program.examples) != []
    for example in examples:
        command, *arguments = shlex.split(example)
        if command == "help":
            assert arguments[0] in program.commands
        else:
            build_parser([command], program).parse_args([command, *arguments])


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_what_the_option_shows(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for arguments in (["help", *filter(None, [command])], [*filter(None, [command]), "--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != ""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_examples_that_the_command_takes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    _, _, shown = capsys.readouterr().out.partition("\nexamples:\n")
    examples = re.findall(r"^  gang-extender (.*)$", shown, re.MULTILINE)
    assert examples == list(importlib.import_module(f"extender.cli.{command}").EXAMPLES)
    for example in examples:
        arguments = shlex.split(re.split(" [<>] ", example)[0])
        assert arguments[0] == command
        build_parser([command]).parse_args(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "no-such-file"],
        ["evaluate", "no-such-file"],
        ["simulate", "docs/simulate/nodes.yaml", "--config", "no-such-file"],
        ["doctor", "--config", "no-such-file"],
        ["doctor", "--kube-scheduler-config", "no-such-file"],
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", "gang-extender: no-such-file: No such file or directory\n")


def test_an_error_is_one_line_that_a_terminal_does_not_obey(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(tmp_path / "a\x1b[2J\ngang-extender: forged")]) == 2
    error = capsys.readouterr().err
    assert r"a\x1b[2J\ngang-extender: forged: No such file" in error
    assert error.count("\n") == 1


def test_every_mistake_of_a_file_has_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\na: 1\nb: 2\n")
    assert main(["simulate", "docs/simulate/nodes.yaml", "--config", str(file)]) == 2
    assert capsys.readouterr().err == f"gang-extender: {file}:3: a: unknown field\n{file}:4: b: unknown field\n"


COMMANDS_WITH_NAMESPACE = ["list", "explain", "why train-0", "whatif --members 1", "simulate docs/simulate/nodes.yaml"]


@pytest.mark.parametrize("namespace", ["Bad NS", "team_a", "-a", "a" * 64, "..", "a.b"])
@pytest.mark.parametrize("command", COMMANDS_WITH_NAMESPACE)
def test_a_namespace_that_none_can_have_is_refused(
    capsys: pytest.CaptureFixture[str], command: str, namespace: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), f"--namespace={namespace}"])
    assert ended.value.code == 2
    assert f"argument -n/--namespace: {namespace!r}: must be 1 to 63" in capsys.readouterr().err
