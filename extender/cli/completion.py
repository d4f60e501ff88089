"""`completion SHELL`: a script that completes these commands in a shell; and `kubectl_complete-gang`, by which kubectl does it.

argcomplete reads the parsers. Names of gangs, pods and nodes are asked for, within a moment or not at all: a completion never fails.
kubectl: pkg/cmd/plugin (kubectl_complete-NAME), github.com/spf13/cobra (ShellCompDirective)
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extender.cli.main import Program

SHELLS = ("bash", "zsh", "fish")
ASKED = "_ARGCOMPLETE"
"""The variable by which a shell's function says that it wants completions."""
SEPARATOR, BESIDE = "\v", "\t"
NO_FILES, MAY_BE_FILES = 4, 0
"""Cobra's directives, the last line for kubectl."""
OF_FILES = frozenset(
    (
        "-f",
        "--filename",
        "--config",
        "--kube-scheduler-config",
        "--kubeconfig",
        "--token-file",
        "--certificate-authority",
    )
)
SECONDS = 2.0
MOST = 500

EXAMPLES = {
    "completion bash > /etc/bash_completion.d/kubectl-gang": "for every user",
    "completion zsh > ~/.zsh/completions/_kubectl-gang": "a folder of $fpath",
    "completion fish > ~/.config/fish/completions/kubectl-gang.fish": "`kubectl gang` itself completes by kubectl_complete-gang",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    from extender.cli.main import PROGRAMS

    file = next(program.file for program in PROGRAMS if program.name == args.program)
    print(shellcode([file], shell=args.shell))
    return 0


def complete(program: Program) -> None:
    """For a shell whose function has started the program: ends the process."""
    import argcomplete

    argcomplete.autocomplete(_parser(program, os.environ.get("COMP_LINE", "").split()), always_complete_options=False)


def kubectl_complete(argv: Sequence[str] | None = None) -> int:
    """The program `kubectl_complete-gang`: kubectl gives it the words after `kubectl gang`, the last one begun or empty."""
    from extender.cli.main import KUBECTL_GANG

    words = list(sys.argv[1:] if argv is None else argv) or [""]
    for found in matches(KUBECTL_GANG, words):
        print(found)
    print(f":{MAY_BE_FILES if words[-2:-1] and words[-2] in OF_FILES else NO_FILES}")
    return 0


def matches(program: Program, words: Sequence[str]) -> list[str]:
    """What the last word may become, each with what it is, after a tab, where that is known."""
    from argcomplete import io as debugging
    from argcomplete.completers import SuppressCompleter
    from argcomplete.finders import CompletionFinder

    class Finder(CompletionFinder):
        def _init_debug_stream(self) -> None:
            """Not file descriptor 9, which is another's here."""
            debugging.debug_stream = sys.stderr

    line = " ".join([program.file, *map(shlex.quote, words[:-1]), words[-1]])
    given = {"COMP_LINE": line, "COMP_POINT": str(len(line.encode())), ASKED: "1", "_ARGCOMPLETE_IFS": SEPARATOR}
    given |= {"_ARGCOMPLETE_DFS": BESIDE, "_ARGCOMPLETE_COMP_WORDBREAKS": ""}
    before = {name: os.environ.get(name) for name in given}
    found = io.StringIO()
    os.environ.update(given)
    try:
        Finder()(
            _parser(program, words),
            always_complete_options=False,
            exit_method=_stay,
            output_stream=found,
            append_space=False,
            default_completer=SuppressCompleter(),
        )
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return [each.rstrip() for each in found.getvalue().split(SEPARATOR) if each.strip()]


def _stay(code: int = 0) -> None:
    """argcomplete would end the process."""


def _parser(program: Program, words: Sequence[str]) -> argparse.ArgumentParser:
    """With the arguments of the command that is typed alone."""
    from extender.cli.main import build_parser

    named = [word for word in words if word in program.commands][:1]
    parser = build_parser(named, program)
    for actions in [each._actions for each in _parsers(parser)]:
        for action in actions:
            if completer := COMPLETERS.get(action.dest):
                action.completer = completer  # type: ignore[attr-defined]
    return parser


def _parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return [parser, *(each for action in below for each in action.choices.values())]


Completer = Callable[..., list[str]]


def _quietly(names: Callable[[argparse.Namespace], list[str]]) -> Completer:
    def completer(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
        from extender.client.time_limit import within

        try:
            with within(SECONDS):
                return [each for each in names(_with_defaults(parsed_args)) if each.startswith(prefix)]
        except (Exception, SystemExit):  # no cluster, no rights, no leader: nothing to offer
            return []

    return completer


def _with_defaults(parsed: argparse.Namespace) -> argparse.Namespace:
    """What a line that is not whole leaves out."""
    from extender.cli import asking

    given = {"server": None, "kubeconfig": None, "context": "", "lease": asking.LEASE, "ops_port": asking.OPS_PORT}
    given |= {
        "token_file": None,
        "certificate_authority": None,
        "namespace": None,
        "all_namespaces": False,
        "finds_leader": True,
    }
    return argparse.Namespace(**{**given, **{key: value for key, value in vars(parsed).items() if value is not None}})


def _gangs(args: argparse.Namespace) -> list[str]:
    """Those of the namespace by their names, the others by namespace and name."""
    import json

    from extender.cli import asking, namespaces

    namespace = namespaces.chosen(args)
    with asking.extender_of(args) as extender:
        found = json.loads(asking.answer(extender, "/gangs"))
    names = [each["name"] for each in found if each["namespace"] == namespace]
    return [*names, *(f"{each['namespace']}/{each['name']}" for each in found)]


def _pods(args: argparse.Namespace) -> list[str]:
    from extender.cli import asking, namespaces
    from extender.client.interface import PODS

    with asking.cluster_of(args) as cluster:
        page = cluster.list_page(PODS, namespace=namespaces.chosen(args) or namespaces.DEFAULT, limit=MOST)
    return [pod.name for pod in page.items]


def _nodes(args: argparse.Namespace) -> list[str]:
    from extender.cli import asking
    from extender.client.interface import NODES

    with asking.cluster_of(args) as cluster:
        return [node.metadata.name for node in cluster.list_page(NODES, limit=MOST).items]


def _namespaces(args: argparse.Namespace) -> list[str]:
    from extender.cli import asking
    from extender.client.interface import NAMESPACES

    with asking.cluster_of(args) as cluster:
        return [each.metadata.name for each in cluster.list_page(NAMESPACES, limit=MOST).items]


COMPLETERS: dict[str, Completer] = {
    "group": _quietly(_gangs),
    "pod": _quietly(_pods),
    "node": _quietly(_nodes),
    "namespace": _quietly(_namespaces),
}
"""By the argument's name."""
