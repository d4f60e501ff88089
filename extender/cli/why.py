"""`why POD`: the gang of a pod, what it waits for, and what would make it fit."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from extender.cli import asking, namespaces, output

EXAMPLES = {
    "why train-0": "of a pod of the namespace that is chosen",
    "why team-a/train-0": "of another namespace",
    "why train-0 -w": "and again whenever that changes",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pod", metavar="POD", help="as NAME, or NAMESPACE/NAME")
    namespaces.add_arguments(parser, lists=False)
    output.add_arguments(parser, "wide", watch=True)
    asking.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    pod = namespaces.whole(args, args.pod)
    missing = f"no pod {pod} is known: the extender has seen every pod that has not ended"
    path = asking.path_of("pods", *pod.split("/"))
    with asking.extender_of(args) as extender:
        output.show_page(partial(asking.answer, extender, path, missing=missing), args, _lines)
    return 0


def _lines(body: bytes, form: str) -> Iterator[str]:
    from extender.api import codec
    from extender.cli import outlook_text, terminal
    from extender.plugins.coscheduling.report.outlook import PodStatus

    pod = codec.decode(body, PodStatus)
    return outlook_text.of_pod(pod, datetime.now(UTC), terminal.of(), wide=form == "wide")
