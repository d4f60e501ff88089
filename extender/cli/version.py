"""`gang-extender version`."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version

from extender.cli import output

NAME = "gang-extender"

EXAMPLES = {"version": "name and version", "version -o json": "for programs, with the version of Python"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    output.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.output == "text":
        print(f"{NAME} {version(NAME)}")
    else:
        output.show_value({"name": NAME, "version": version(NAME), "python": platform.python_version()}, args.output)
    return 0
