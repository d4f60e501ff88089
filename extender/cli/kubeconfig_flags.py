"""`--kubeconfig` and `--context`, as kubectl has them: which cluster a command asks.

For commands that only read: serve says by itself what it acts on.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from extender.cli.errors import UnusableKubeconfigError, UsageError

if TYPE_CHECKING:
    from extender.client.connection import Connection
    from extender.client.kubeconfig import KubeconfigFiles


def add_arguments(parser: argparse.ArgumentParser, what_for: str) -> None:
    """what_for: in the help, what the cluster is asked for."""
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help=f"{what_for} ($KUBECONFIG, also several files, else ~/.kube/config)"
    )
    parser.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig (its current-context)")


def files_of(args: argparse.Namespace) -> KubeconfigFiles | None:
    """The kubeconfig that is named, or the one that kubectl would take; None where there is none. Raises UsageError."""
    from extender.client.credentials import IdentityError
    from extender.client.kubeconfig import KubeconfigFiles
    from extender.client.kubeconfig_files import VARIABLE, find_kubeconfig

    if args.kubeconfig == "":  # `--kubeconfig "$UNSET"`
        raise UsageError("--kubeconfig: the name of the file is empty")
    try:
        if args.kubeconfig is not None:
            return KubeconfigFiles.of(args.kubeconfig)
    except IdentityError as error:
        raise UnusableKubeconfigError(str(error)) from error
    found = find_kubeconfig()
    if found is None and args.context:
        raise UsageError(
            f"--context {args.context}: there is no kubeconfig: set ${VARIABLE}, or name one by --kubeconfig FILE"
        )
    return found


def of_caller(args: argparse.Namespace) -> KubeconfigFiles | None:
    """Beside an address: that of `kubectl gang`, as kubectl has it, and of `gang-extender` where it is named. Raises UsageError."""
    named = args.kubeconfig is not None or bool(args.context)
    return files_of(args) if named or args.finds_leader else None


def connect(files: KubeconfigFiles, context: str) -> Connection:
    """Raises UnusableKubeconfigError; whether its server answers shows later."""
    from extender.client.connection import Connection
    from extender.client.credentials import IdentityError

    try:
        return Connection.from_kubeconfig(files, context)
    except IdentityError as error:
        raise UnusableKubeconfigError(str(error)) from error
