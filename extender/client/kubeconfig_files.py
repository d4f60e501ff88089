"""Which kubeconfig a command reads where none is named: the files of $KUBECONFIG, else ~/.kube/config.

Used by the command line only: a server says what it acts on. client-go: tools/clientcmd/loader.go
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from extender.client.kubeconfig import KubeconfigFiles

VARIABLE = "KUBECONFIG"


def find_kubeconfig(environ: Mapping[str, str] = os.environ, home: Path | None = None) -> KubeconfigFiles | None:
    """None where there is none. Files that $KUBECONFIG names need not be there."""
    files = tuple(dict.fromkeys(Path(name) for name in environ.get(VARIABLE, "").split(os.pathsep) if name))
    if files:
        return KubeconfigFiles(files)
    default = (home or Path.home()) / ".kube" / "config"
    return KubeconfigFiles((default,)) if default.exists() else None
