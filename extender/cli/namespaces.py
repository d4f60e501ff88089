"""`-n` and `-A`, as kubectl has them: which namespaces' gangs a command is about, and whole names out of short ones."""

from __future__ import annotations

import argparse

from extender.cli import asking, kubeconfig_flags
from extender.cli.errors import UsageError

DEFAULT = "default"


def add_arguments(parser: argparse.ArgumentParser, *, lists: bool) -> None:
    """lists: whether it shows the gangs of several namespaces."""
    parser.add_argument(
        "-n",
        "--namespace",
        type=named,
        metavar="NAMESPACE",
        help="the namespace of names given without one, and the only one that is listed",
    )
    if lists:
        parser.add_argument(
            "-A", "--all-namespaces", action="store_true", help="all gangs, whichever namespace is chosen"
        )


def named(text: str) -> str:
    """For parsers of -n: no API server has a namespace of another name. Empty: as if it were not given, as kubectl has it."""
    from extender.config.validation import dns_label

    if text and (wrong := dns_label(text)):
        raise argparse.ArgumentTypeError(f"{text!r}: {wrong}")
    return text


def chosen(args: argparse.Namespace) -> str | None:
    """What -n says; else the namespace of the kubeconfig's context, where the leader of a cluster is asked or pages by a token of that
    context; else None. Raises UsageError."""
    if args.namespace:
        return str(args.namespace)
    by_token = args.server is not None and args.server.startswith("https:") and args.token_file is None
    if by_token and kubeconfig_flags.of_caller(args) is not None:
        return _of_context(args)
    return _of_context(args) if asking.asks_leader(args) else None


def listed(args: argparse.Namespace) -> str | None:
    """Likewise for a list; None for those of all namespaces."""
    return None if args.all_namespaces else chosen(args)


def whole(args: argparse.Namespace, name: str) -> str:
    """NAME as NAMESPACE/NAME. Raises UsageError where no namespace is known, or -n says another."""
    if not name:  # as of a variable that is not set
        raise UsageError("the name is empty: wanted NAMESPACE/NAME, or NAME and -n NAMESPACE")
    namespace = None if "/" in name and not args.namespace else chosen(args)
    if namespace and "/" not in name:
        name = f"{namespace}/{name}"
    of, slash, rest = name.partition("/")
    if not (of and slash and rest) or "/" in rest:
        raise UsageError(f"{name}: wanted NAMESPACE/NAME, or NAME and -n NAMESPACE")
    if namespace and of != namespace:
        raise UsageError(f"{name}: not in the namespace of -n, {namespace}")
    return name


def _of_context(args: argparse.Namespace) -> str:
    from extender.client.credentials import IdentityError
    from extender.client.kubeconfig import read_kubeconfig

    files = kubeconfig_flags.files_of(args)
    if files is None:
        return DEFAULT
    try:
        return read_kubeconfig(files, args.context).namespace or DEFAULT
    except IdentityError as error:
        raise UsageError(str(error)) from error
