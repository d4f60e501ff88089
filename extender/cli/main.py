"""The commands `gang-extender` and `kubectl gang`: finds the subcommand, runs it, turns its errors into exit codes.

Exit codes: 0 done, 1 it did not work, 2 wrong use; 130 interrupted, 141 the reader of standard output has gone, as shells show them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.api.codec import DecodeError
from extender.cli import completion, standard_error, standard_output
from extender.cli.errors import UsageError

COMMANDS = {
    "serve": "run the extender: filter, prioritize, preempt and bind over HTTP",
    "demo": "watch gangs start whole, wait, preempt and find their rack, on an embedded cluster",
    "simulate": "run the scheduler over a cluster of YAML files until nothing moves",
    "evaluate": "what every plugin says of the scenarios in a file",
    "list": "the gangs, those that wait first, in their order",
    "explain": "what a gang waits for, and what would make it fit",
    "why": "the gang of a pod, and what it waits for",
    "whatif": "whether a gang that is not there yet would fit, where, or what is missing",
    "drain": "which gangs would fall below minMember if a node were drained, and where their members would go",
    "doctor": "what is wrong with the configuration files of an installation, and what to do about it",
    "schema": "JSON schemas of the extender's configuration and of what the commands print",
    "completion": "print a script that completes these commands in a shell",
    "version": "print the version",
}


@dataclass(frozen=True, slots=True)
class Program:
    """A name under which the commands are called, and those that it has. file: of the program, for completion. examples: of its
    own help. finds_leader: the extender that is asked is the leader's by default, not the one on loopback."""

    name: str
    file: str
    description: str
    commands: Sequence[str]
    examples: Mapping[str, str]
    finds_leader: bool = False


GANG_EXTENDER = Program(
    "gang-extender",
    "gang-extender",
    "Gang scheduling for the stock kube-scheduler.",
    tuple(COMMANDS),
    {
        "demo": "gangs that start, wait and preempt, without a cluster",
        "simulate cluster.yaml gang.yaml": "where the pods of a cluster's files would go",
        "doctor --kube-scheduler-config kube-scheduler.yaml --config extender.yaml": "before an installation",
        "explain team-a/train": "why a gang waits, asked in the extender's pod",
        "help simulate": "examples of one command",
    },
)
KUBECTL_GANG = Program(
    "kubectl gang",
    "kubectl-gang",
    "Why the gangs of a cluster wait, whether a new gang would fit, and what a drain would break.",
    ("list", "explain", "why", "whatif", "drain", "doctor", "completion", "version"),
    {
        "list": "the gangs of the namespace that is chosen",
        "explain train": "why one waits, and what would make it fit",
        "whatif --members 8 --requests cpu=4,nvidia.com/gpu=8": "would eight such pods start now, and where",
        "drain node-7": "before `kubectl drain node-7`: what that would do to gangs",
        "help whatif": "examples of one command",
    },
    finds_leader=True,
)
PROGRAMS = (GANG_EXTENDER, KUBECTL_GANG)
OF_SERVER = frozenset(
    ("cachetools", "flask", "gevent", "greenlet", "gunicorn", "kubernetes", "numpy", "rich", "werkzeug")
)
"""Packages of the extra `server`."""


def build_parser(commands: Sequence[str] = (), program: Program = GANG_EXTENDER) -> argparse.ArgumentParser:
    """commands: those to parse with their arguments; only these are imported, as serve has to patch before any other import.
    Empty: all commands, by name alone.
    """
    parser = argparse.ArgumentParser(
        prog=program.name,
        description=program.description,
        epilog=_examples(program.examples, program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help=COMMANDS["version"])
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in commands or program.commands:
        sub = subparsers.add_parser(
            name,
            help=COMMANDS[name],
            description=COMMANDS[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in commands:
            command = importlib.import_module(f"extender.cli.{name}")
            command.add_arguments(sub)
            sub.set_defaults(program=program.name, finds_leader=program.finds_leader)
            sub.epilog = _examples(command.EXAMPLES, program)
    return parser


def _examples(examples: Mapping[str, str], program: Program) -> str:
    """As kubectl shows them: what for, and below it the command."""
    lines = (f"  # {what}\n  {program.name} {command}" for command, what in examples.items())
    return "\n".join(["examples:", *lines])


def kubectl_gang(argv: Sequence[str] | None = None) -> int:
    """The program `kubectl-gang`, which kubectl runs as `kubectl gang`."""
    return main(argv, KUBECTL_GANG)


def main(argv: Sequence[str] | None = None, program: Program = GANG_EXTENDER) -> int:
    standard_output.provide()
    if completion.ASKED in os.environ:
        completion.complete(program)
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv), program)
        finally:
            standard_output.flush()  # after `--help` too
    except UsageError as error:
        return _fail(program, error, 2)
    except BrokenPipeError:
        standard_output.give_up()
        return standard_output.CLOSED
    except OSError as error:
        if error.filename is None:
            full = error.errno in standard_output.CANNOT_WRITE
            return _fail(program, f"standard output: {error.strerror}" if full else error, 1)
        return _fail(program, f"{error.filename}: {error.strerror}", 2)  # a file that an argument names
    except DecodeError as error:
        return _fail(program, error, 1)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OF_SERVER:
            raise
        return _fail(program, f"this needs the package {package}: pip install 'gang-extender[server]'", 1)
    except KeyboardInterrupt:
        return standard_output.INTERRUPTED


def _run(arguments: list[str], program: Program) -> int:
    if arguments[:1] == ["--version"]:
        arguments = ["version", *arguments[1:]]
    elif arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if not arguments or arguments[0] not in program.commands:
        build_parser(program=program).parse_args(arguments)
        return 2
    name = arguments[0]
    args = build_parser([name], program).parse_args(arguments)
    result: int = importlib.import_module(f"extender.cli.{name}").run(args)
    return result


def _fail(program: Program, error: Exception | str, code: int) -> int:
    standard_output.give_up()
    first, *more = error.args if isinstance(error, UsageError) else [error]
    standard_error.say(f"{program.name}: {first}", *more)
    return code


if __name__ == "__main__":
    sys.exit(main())
