"""`drain NODE`: which gangs would fall below minMember if the node were drained, and where their members would go. Nothing is drained."""

from __future__ import annotations

import argparse

from extender.cli import asking, output
from extender.cli.errors import UsageError

EXAMPLES = {
    "drain node-7": "before `kubectl drain node-7`: what that would do to gangs",
    "drain node-7 -o wide": "with all nodes, however many they are",
    "drain node-7 -o json": "for a script; `gang-extender schema drain` describes it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE")
    output.add_arguments(parser, "wide")
    asking.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 with an answer, whatever it says."""
    from extender.api import codec
    from extender.cli import outlook_text, terminal
    from extender.plugins.coscheduling.report.outlook import DrainOutlook

    if "/" in args.node:
        raise UsageError(f"drain: {args.node}: a node is in no namespace, and no name of one has a /")
    path = asking.path_of("drain", args.node)
    with asking.extender_of(args) as extender:
        body = asking.answer(extender, path, missing=f"no node {args.node} is known")
    if args.output in output.FOR_PROGRAMS:
        output.dump(body, args.output)
    else:
        found = codec.decode(body, DrainOutlook)
        output.show(outlook_text.of_drain(found, terminal.of(), wide=args.output == "wide"))
    return 0
