"""`gang-extender demo`: the real service on loopback, an embedded cluster, and a gang's story from refusal to start."""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extender.cli import standard_output, terminal

if TYPE_CHECKING:
    from extender.server.options import ServeOptions

NEXT = {
    "{command} demo --keep": "the same, and it goes on serving: its page in a browser, its verbs by curl",
    "{command} simulate FILE...": "where the pods of your own cluster would go, from `kubectl get -o yaml`",
    "{command} help COMMAND": "examples of each command",
    "docs/tutorial.md": "ten minutes with all of them, without a cluster",
    "README.md": "a gang on your own cluster in five minutes",
}

NAME = "gang-extender"
INDENT = 4  # of what is folded

RUNNING, DONE, FAILED, UNHEARD, ENDED = range(5)

EXAMPLES = {
    "demo": "the whole story, in seconds",
    "demo --keep": "and curl the service afterwards",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave the service running after the story, for curl")


def run(args: argparse.Namespace) -> int:
    from extender.server import serve  # isort: skip  - patches: everything else comes after
    from extender.server.options import ServeOptions

    outcome = mmap.mmap(-1, 1)  # shared with the worker, which tells the story
    port, ops_port = _ports(keep=args.keep)
    options = ServeOptions(port=port, ops_port=ops_port, verbosity=0)
    code = serve.run(_builder(options, outcome, keep=args.keep), options)
    codes = {DONE: 0, FAILED: 1, UNHEARD: standard_output.CLOSED, ENDED: standard_output.INTERRUPTED}
    return codes.get(outcome[0], code or standard_output.INTERRUPTED)


def as_typed(program: str) -> str:
    """How the command can be typed where it was started: by its path, as in a virtual environment that is not on $PATH. program: the
    process's argument 0."""
    if Path(program).name != NAME:  # `python -m`
        return NAME
    found = shutil.which(NAME)
    return NAME if found is not None and Path(found).resolve() == Path(program).resolve() else program


def _next(command: str) -> str:
    """command: as it can be typed here."""
    rows = {what.format(command=command): why for what, why in NEXT.items()}
    width = max(map(len, rows))
    return "\n".join(["\nWhere to look next:", *(f"  {what:{width}}  {why}" for what, why in rows.items())])


def _ports(*, keep: bool) -> tuple[int, int]:
    """One that goes on serving is where README.md looks for it, unless another program is there."""
    from extender.server.options import ServeOptions

    shipped = ServeOptions().port, ServeOptions().ops_port
    return shipped if keep and all(map(_is_free, shipped)) else _free_ports()


def _is_free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # calls to one that has just ended may still be closing
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_ports() -> tuple[int, int]:
    with contextlib.closing(socket.socket()) as first, contextlib.closing(socket.socket()) as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def _builder(options: ServeOptions, outcome: mmap.mmap, *, keep: bool) -> Callable[[Callable[..., Any]], Any]:
    import threading

    from extender.client.embedded import EmbeddedAPI
    from extender.client.embedded.load import load_files
    from extender.config.defaults import whole_profile
    from extender.config.types import ExtenderConfig, ExtenderConfiguration, KubeSchedulerConfiguration
    from extender.plugins.registry import new_registry
    from extender.scheduler import factory
    from extender.scheduler.in_process.scheduler import InProcessScheduler
    from extender.simulation.demo import CLUSTER, RACK, Narrator, Story, StoryError

    def build(offload: Callable[..., Any]) -> Narrator:
        api = EmbeddedAPI()
        load_files(api, [CLUSTER])
        url = f"http://127.0.0.1:{options.port}"
        scheduler = InProcessScheduler(
            api,
            KubeSchedulerConfiguration(
                profiles=(whole_profile(),),
                extenders=(
                    ExtenderConfig(
                        url,
                        filter_verb="filter",
                        prioritize_verb="prioritize",
                        preempt_verb="preempt",
                        node_cache_capable=True,
                    ),
                    ExtenderConfig(url, bind_verb="bind", http_timeout_seconds=120, node_cache_capable=True),
                ),
            ),
            new_registry(),
        )

        audience = _Audience(outcome)
        say = audience.say

        def tell() -> None:
            say(f"gang-extender serves filter, prioritize, preempt and bind on {url}.")
            scheduler.start()
            try:
                Story(api, say).tell()
                audience.decide(DONE)
                say(_next(as_typed(sys.argv[0])))
            except StoryError as error:
                say(f"\nThe demo failed: {error}")
                audience.decide(FAILED)
            if keep and outcome[0] == DONE:
                page = f"http://127.0.0.1:{options.ops_port}/ui"
                say(f"\nStill serving on {url}, with its page at {page}; end it with Ctrl-C.")
            else:
                os.kill(os.getppid(), signal.SIGTERM)

        verbs = factory.build(ExtenderConfiguration(topology=(RACK,)), api, offload=offload)
        story = threading.Thread(target=tell, name="story", daemon=True)
        return Narrator(verbs, say, began=story.start, ends=lambda: audience.decide(ENDED))

    return build


class _Audience:
    """Standard output, as long as it is read. The threads of the worker share it; the story ends where the reader has gone."""

    def __init__(self, outcome: mmap.mmap) -> None:
        self._outcome = outcome
        self._terminal = terminal.of()

    def say(self, text: str) -> None:
        if self._outcome[0] == UNHEARD:
            return
        lines: list[str] = []
        for line in text.split("\n"):
            first, *more = self._terminal.fold(line, INDENT)
            lines += [first, *(" " * INDENT + each for each in more)]
        try:
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()
        except OSError:
            self._outcome[0] = UNHEARD
            os.kill(os.getppid(), signal.SIGTERM)

    def decide(self, outcome: int) -> None:
        """What comes first counts."""
        if self._outcome[0] == RUNNING:
            self._outcome[0] = outcome
