"""The command `gang-extender`: finds the subcommand, runs it, turns its errors into exit codes.

Exit codes: 0 done, 1 it did not work, 2 wrong use; 130 interrupted, 141 the reader of standard output has gone, as shells show them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence

from extender.api.codec import DecodeError
from extender.cli import standard_output
from extender.cli.errors import UsageError

COMMANDS = {
    "serve": "run the extender: filter, prioritize, preempt and bind over HTTP",
    "demo": "watch gangs start whole, wait, preempt and find their rack, on an embedded cluster",
    "simulate": "run the scheduler over a cluster of YAML files until nothing moves",
    "evaluate": "what every plugin says of the scenarios in a file",
    "explain": "what a gang waits for, and what would make it fit",
    "doctor": "what is wrong with the configuration files of an installation, and what to do about it",
    "schema": "JSON schemas of the extender's configuration and of what the commands print",
    "version": "print the version",
}


def build_parser(commands: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gang-extender", description="Gang scheduling for the stock kube-scheduler.")
    parser.add_argument("--version", action="store_true", help=COMMANDS["version"])
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in commands:
        # Only what is run is imported: serve has to patch before anything else is there.
        sub = subparsers.add_parser(
            name,
            help=COMMANDS[name],
            description=COMMANDS[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if len(commands) == 1:
            command = importlib.import_module(f"extender.cli.{name}")
            command.add_arguments(sub)
            sub.epilog = _examples(command.EXAMPLES)
    return parser


def _examples(examples: Mapping[str, str]) -> str:
    """As kubectl shows them: what for, and below it the command."""
    return "\n".join(["examples:", *(f"  # {what}\n  gang-extender {command}" for command, what in examples.items())])


def main(argv: Sequence[str] | None = None) -> int:
    standard_output.provide()
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            standard_output.flush()  # after `--help` too
    except UsageError as error:
        return _fail(error, 2)
    except BrokenPipeError:
        standard_output.give_up()
        return standard_output.CLOSED
    except OSError as error:
        if error.filename is None:
            return _fail(error, 1)
        return _fail(f"{error.filename}: {error.strerror}", 2)  # a file that an argument names
    except DecodeError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return standard_output.INTERRUPTED


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        arguments = ["version"]
    elif arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if not arguments or arguments[0] not in COMMANDS:
        build_parser().parse_args(arguments)
        return 2
    name = arguments[0]
    args = build_parser([name]).parse_args(arguments)
    result: int = importlib.import_module(f"extender.cli.{name}").run(args)
    return result


def _fail(error: Exception | str, code: int) -> int:
    standard_output.give_up()
    print(f"gang-extender: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
