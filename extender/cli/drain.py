"""`drain NODE`: which gangs would fall below minMember if the node were drained, and where their members would go. Nothing is drained."""

from __future__ import annotations

import argparse

from extender.cli import asking, output

EXAMPLES = {
    "drain node-7": "before `kubectl drain node-7`: what that would do to gangs",
    "drain node-7 -o json": "for a script; `gang-extender schema drain` describes it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE")
    output.add_arguments(parser)
    asking.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 with an answer, whatever it says."""
    from extender.api import codec
    from extender.cli import outlook_text, terminal
    from extender.plugins.coscheduling.report.outlook import DrainOutlook

    with asking.extender_of(args) as extender:
        path = asking.path_of("drain", args.node)
        body = asking.answer(extender, path, missing=f"no node {args.node} is known")
    if args.output != "text":
        output.dump(body, args.output)
    else:
        output.show(outlook_text.of_drain(codec.decode(body, DrainOutlook), terminal.of()))
    return 0
