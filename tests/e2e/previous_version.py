"""The program of an earlier commit, beside the one that is tested: for an upgrade, and for the way back.

There is no release yet; the commit is the last one before the extender could run apart from kube-scheduler. It runs with the libraries that
are installed. Used by test_two_versions.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.documented import PROJECT
from tests.e2e.build import in_ci
from tests.e2e.extender import Extender

COMMIT = "830fcb7324e143a5b660ccf29e28b0cce69c0da7"


def unpack(folder: Path) -> Path:
    """The tree of that commit. Skips, or in CI fails, where the history does not go back so far: a shallow clone, or no clone."""
    archive = folder / "previous.tar"
    command = ["git", "-C", str(PROJECT), "archive", f"--output={archive}", COMMIT, "extender", "manifests"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = f"no earlier version to run beside this one: {done.stderr.strip()}"
        if in_ci():
            pytest.fail(f"where CI=true this must run; fetch the whole history: {reason}", pytrace=False)
        pytest.skip(reason)
    tree = folder / "previous"
    with tarfile.open(archive) as opened:
        opened.extractall(tree, filter="data")
    return tree


def run_from(tree: Path, extender: Extender) -> None:
    """In place of the version that is tested."""
    extender.program.command[:0] = ["env", f"--chdir={tree}", f"PYTHONPATH={tree}"]
