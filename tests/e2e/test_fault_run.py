"""Three minutes of faults on a rig of its own, and all judges; `python -m tests.e2e.fault_run` makes longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.control_plane import ControlPlane
from tests.e2e.fault_run.run import Settings, fault_run

SEED, SECONDS = 24, 180.0  # and some for the start, and for the waits until it is calm


# Of a connection that is reset before its handshake CPython 3.11 leaves the SSLSocket open (ssl.SSLSocket._create); lines do that here.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(900)
def test_faults_and_all_judges(plane: ControlPlane, tmp_path: Path) -> None:
    assert fault_run(plane.binaries, tmp_path, Settings(SEED, SECONDS, rounds=2)) == []
