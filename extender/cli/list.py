"""`list`: gangs, those that wait first, in their order."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlencode

from extender.cli import asking, namespaces, output, pod_group_status, terminal
from extender.cli.asking import Extender
from extender.cli.errors import NoAnswerError

EXAMPLES = {
    "list": "the gangs of the namespace that is chosen",
    "list -A -o wide": "all gangs, with what is missing",
    "list -n team-a -w": "and those that change, until it is interrupted",
    "list -A -o name": "their names, for a script",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    namespaces.add_arguments(parser, lists=True)
    output.add_arguments(parser, "wide", "name", watch=True)
    asking.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Of the command explain too, where it is given no name."""
    namespace = namespaces.listed(args)
    try:
        _ask(args, namespace)
    except NoAnswerError as error:
        if not pod_group_status.serves(args):
            raise
        groups = pod_group_status.listed(args, namespace, error)
        wide = args.output == "wide"
        now = datetime.now(UTC)
        output.show(pod_group_status.listing(groups, now, terminal.of(), wide=wide, namespace=namespace))
    return 0


def _ask(args: argparse.Namespace, namespace: str | None) -> None:
    with asking.extender_of(args) as extender:
        if args.output in output.FOR_PROGRAMS:
            output.dump(_read(extender, namespace), args.output)
        elif args.watch:
            for body, changed in output.changes(lambda: _read(extender, namespace)):
                output.show(_lines(body, args.output, changed, namespace))
        else:
            output.show(_lines(_read(extender, namespace), args.output, None, namespace))


def _read(extender: Extender, namespace: str | None) -> bytes:
    """The extender shows a tenant its own namespaces alone."""
    if namespace is None:
        return asking.answer(extender, "/gangs")
    return of_namespace(asking.answer(extender, f"/gangs?{urlencode({'namespace': namespace})}"), namespace)


def of_namespace(body: bytes, namespace: str) -> bytes:
    """Of a list of groups those of one namespace, with all their fields."""
    try:
        return json.dumps([each for each in json.loads(body) if each["namespace"] == namespace]).encode()
    except (ValueError, TypeError, KeyError) as error:
        raise NoAnswerError(f"what answers is no list of groups: {error!r}") from error


def _lines(body: bytes, form: str, changed: set[int] | None, namespace: str | None) -> Iterator[str]:
    """changed: which of them to show, below what was shown; None: all."""
    from extender.api import codec
    from extender.cli import explain_text
    from extender.plugins.coscheduling.report.gang_status import GangSummary

    gangs = codec.decode(body, list[GangSummary])
    if changed is not None:
        gangs = [gang for number, gang in enumerate(gangs) if number in changed]
    if form == "name":
        yield from (gang.key for gang in gangs)
        return
    lines = explain_text.listing(gangs, datetime.now(UTC), terminal.of(), wide=form == "wide", namespace=namespace)
    yield from lines if changed is None else list(lines)[1:]
