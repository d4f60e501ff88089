"""`explain [NAMESPACE/NAME]`: what a gang waits for, and what would make it fit; without a name, all gangs.

The page's JSON is what `-o json` prints.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from extender.cli import asking, namespaces, output, pod_group_status, terminal
from extender.cli import list as gang_list
from extender.cli.errors import NoAnswerError, NotThereError

EXAMPLES = {
    "explain": "all gangs, those in line first",
    "explain team-a/train": "why one waits, and what would make it fit",
    "explain train -n team-a -w": "and again whenever that changes",
    "explain -n team-a -o json": "a namespace's, for programs; `gang-extender schema gangs` describes it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", nargs="?", metavar="NAMESPACE/NAME", help="the group; without it, a list of all")
    namespaces.add_arguments(parser, lists=True)
    output.add_arguments(parser, "wide", watch=True)
    asking.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 with an answer, whatever it says of the gang; 1 where there is none."""
    if args.group is None:
        return gang_list.run(args)
    group = namespaces.whole(args, args.group)
    try:
        _ask(args, group)
    except NotThereError:
        raise
    except NoAnswerError as error:
        if not pod_group_status.serves(args):
            raise
        found = pod_group_status.one(args, group, error)
        output.show(pod_group_status.page(found, datetime.now(UTC), terminal.of()))
    return 0


def _ask(args: argparse.Namespace, group: str) -> None:
    missing = f"no group {group} is known; `{args.program} explain` lists those that are"
    path = asking.path_of("gangs", *group.split("/"))
    with asking.extender_of(args) as extender:
        read = partial(asking.answer, extender, path, missing=missing)
        output.show_page(read, args, _lines)


def _lines(body: bytes, form: str) -> Iterator[str]:
    from extender.api import codec
    from extender.cli import explain_text
    from extender.plugins.coscheduling.report.gang_status import GangStatus

    status = codec.decode(body, GangStatus)
    return explain_text.page(status, datetime.now(UTC), terminal.of(), wide=form == "wide")
