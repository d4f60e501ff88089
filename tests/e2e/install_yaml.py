"""install.yaml, for `kubectl apply -f`: manifests/sidecar as kustomize renders it. `make manifests` writes it.

Run as `python -m tests.e2e.install_yaml`. kubectl is that of tests/e2e/build.py, so that its version does not differ.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.documented import PROJECT
from tests.e2e.build import UnavailableError, binaries
from tests.e2e.control_plane import MANIFESTS

FILE = PROJECT / "install.yaml"
HEAD = """\
# gang-extender with a second, stock kube-scheduler: kubectl apply --server-side -f install.yaml
# Made by `make manifests` from manifests/sidecar; change that. Two things to set: the extender's image, to where your cluster pulls it
# from, and kube-scheduler's tag, to your cluster's own version.
"""


def rendered(kubectl: Path) -> str:
    command = [str(kubectl), "kustomize", str(MANIFESTS / "sidecar")]
    return HEAD + subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    try:
        FILE.write_text(rendered(binaries(lambda line: print(line, file=sys.stderr, flush=True)).kubectl))
    except UnavailableError as error:
        sys.exit(f"make manifests: {error}")
