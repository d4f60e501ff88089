"""`why POD`: the gang of a pod, what it waits for, and what would make it fit."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from extender.cli import asking, namespaces, output

EXAMPLES = {
    "why train-0": "of a pod of the namespace that is chosen",
    "why team-a/train-0": "of another namespace",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pod", metavar="POD", help="as NAME, or NAMESPACE/NAME")
    namespaces.add_arguments(parser, lists=False)
    output.add_arguments(parser)
    asking.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from extender.api import codec
    from extender.cli import outlook_text, terminal
    from extender.plugins.coscheduling.report.outlook import PodStatus

    pod = namespaces.whole(args, args.pod)
    missing = f"no pod {pod} is known: the extender has seen every pod that has not ended"
    with asking.extender_of(args) as extender:
        body = asking.answer(extender, asking.path_of("pods", *pod.split("/")), missing=missing)
    if args.output != "text":
        output.dump(body, args.output)
    else:
        output.show(outlook_text.of_pod(codec.decode(body, PodStatus), datetime.now(UTC), terminal.of()))
    return 0
