"""A short fault run of all that can happen, and no gang is a fraction; `python -m tests.e2e.fault_run` makes longer ones.

Those check also that no pod waits although it fits. That depends on what was met at which moment, and no story here is to be uncertain.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.run import fault_run

SEED, STEPS = 24, 60


@pytest.mark.timeout(300)  # a fault run is as long as its waits for calm, and those are as long as what they wait for
def test_after_a_fault_run_no_gang_is_a_fraction(cluster: Cluster, tmp_path: Path) -> None:
    assert fault_run(cluster, tmp_path, SEED, STEPS, only_fractions=True) == []
