"""Which kubeconfig a command reads where none is named: one of $KUBECONFIG, else ~/.kube/config.

Used by the command line only: a server says what it acts on. client-go: tools/clientcmd/loader.go
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from extender.client.credentials import IdentityError
from extender.client.kubeconfig import read_kubeconfig

VARIABLE = "KUBECONFIG"


def find_kubeconfig(
    context: str = "", environ: Mapping[str, str] = os.environ, home: Path | None = None
) -> Path | None:
    """None where there is none. context: empty for the current one.

    Of several files in $KUBECONFIG the first in which the context is whole, with its cluster and its user: unlike client-go's, files
    are not merged. Where it is whole in none of them the first that is there: reading it tells what is wrong.
    """
    files = [Path(name) for name in environ.get(VARIABLE, "").split(os.pathsep) if name]
    if not files:
        default = (home or Path.home()) / ".kube" / "config"
        return default if default.exists() else None
    there = [file for file in files if file.exists()]
    for file in there:
        with contextlib.suppress(IdentityError):
            read_kubeconfig(file, context)
            return file
    return (there or files)[0]
