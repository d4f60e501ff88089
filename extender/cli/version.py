"""`gang-extender version`."""

from __future__ import annotations

import argparse
from importlib.metadata import version

EXAMPLES = {"version": "name and version"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Takes no arguments."""


def run(args: argparse.Namespace) -> int:
    print(f"gang-extender {version('gang-extender')}")
    return 0
