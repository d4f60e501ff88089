"""`-o`: a page's JSON as it came, as YAML, or what people read; and `-w`, which shows what has changed until it is interrupted."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from extender.cli import standard_output

FOR_PROGRAMS = ("json", "yaml")
WATCH_SECONDS = 2.0
TIMES = frozenset(("since", "waitingSince", "until"))
"""Fields that differ by a second from one answer to the next though nothing has changed."""


def add_arguments(parser: argparse.ArgumentParser, *more: str, watch: bool = False) -> None:
    """more: forms besides text, json and yaml. Where wide is one, it leaves nothing out, or has more columns."""
    forms = ("text", *more, *FOR_PROGRAMS)
    parser.add_argument("-o", "--output", choices=forms, default="text", help="(%(default)s)")
    if watch:
        parser.add_argument(
            "-w",
            "--watch",
            action="store_true",
            help="go on with what changes, until it is interrupted (text and wide)",
        )


def dump(body: bytes, output: str) -> None:
    """json or yaml."""
    show_value(json.loads(body), output)


def show_value(value: Any, output: str) -> None:
    """Likewise."""
    if output == "json":
        as_json(value)
        return
    import yaml

    yaml.safe_dump(value, sys.stdout, sort_keys=False, allow_unicode=standard_output.has_unicode())


def as_json(value: Any) -> None:
    """As every command prints it. In ASCII: nothing in it is a character that a terminal obeys."""
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")


def show(lines: Iterable[str]) -> None:
    print("\n".join(lines), flush=True)


def show_page(
    read: Callable[[], bytes], args: argparse.Namespace, lines: Callable[[bytes, str], Iterable[str]]
) -> None:
    """A page on one thing, once or whenever it changes. read: its JSON. lines: of its JSON, by the form that is asked for."""
    if args.output in FOR_PROGRAMS:
        dump(read(), args.output)
    elif not args.watch:
        show(lines(read(), args.output))
    else:
        for number, (body, _) in enumerate(changes(read)):
            show([""] if number else [])
            show(lines(body, args.output))


def pause() -> None:
    """Between two looks."""
    time.sleep(WATCH_SECONDS)


def changes(read: Callable[[], bytes]) -> Iterator[tuple[bytes, set[int] | None]]:
    """Each answer that differs from the one before; of a list also the numbers of the items that do. Never ends."""
    known: Any = None
    while True:
        body = read()
        found = without_times(json.loads(body))
        if found != known:
            yield (
                body,
                {number for number, each in enumerate(found) if each not in known}
                if known is not None and isinstance(found, list)
                else None,
            )
            known = found
        pause()


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value
