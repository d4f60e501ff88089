"""A short storm of all that can happen; `python -m tests.e2e.storm` makes longer ones."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cluster import Cluster
from tests.e2e.storm.run import storm

SEED, STEPS = 24, 60


def test_after_a_storm_no_gang_is_a_fraction_and_nobody_waits_who_fits(cluster: Cluster, tmp_path: Path) -> None:
    assert storm(cluster, tmp_path, SEED, STEPS) == []
