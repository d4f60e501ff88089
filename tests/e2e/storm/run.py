"""One storm from its first gust to the judges' word, on a control plane that is there.

Used by tests/e2e/test_storm.py and by `python -m tests.e2e.storm`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.e2e.bad_line import BadLine
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.pair import Pair
from tests.e2e.storm.budgets import remove_all
from tests.e2e.storm.climate import AS_SHIPPED, Climate, climate_of
from tests.e2e.storm.kubelets import Kubelets
from tests.e2e.storm.volumes import Provisioner
from tests.e2e.storm.weather import Storm
from tests.e2e.storm.wishes import TOPOLOGY

STEPS_A_GUST = 30


def storm(
    cluster: Cluster,
    folder: Path,
    seed: int,
    steps: int,
    say: Callable[[str], None] = lambda line: None,
    *,
    climate: Climate = AS_SHIPPED,
    only_fractions: bool = False,
) -> list[str]:
    """What was wrong, a sentence each. The programs' logs are in the folder.

    only_fractions: nobody is asked who waits in vain, and no important pods come in the end.
    """
    line = BadLine(cluster.plane.server, cluster.plane.ca_file, seed).start()
    provisioner = Provisioner(cluster, seed)
    kubelets = Kubelets(cluster, seed)
    try:
        provisioner.start()
        kubelets.start()
        settings = {"topology": TOPOLOGY, **climate.of_the_extender()}
        pair = Pair.of(cluster.plane, folder, server=line.url, settings=settings, change=climate.of_the_scheduler)
        with pair.running():
            blown = Storm(cluster, pair, line, provisioner, seed, climate, say=say)
            blown.blow(steps)
            if only_fractions:
                blown.settle()
                return blown.violations()
            return [*blown.calm(), *blown.last_gusts(steps // STEPS_A_GUST), *blown.violations()]
    finally:
        remove_all(cluster.api)
        provisioner.stop()
        kubelets.stop()
        line.stop()
        say(f"on the line: {', '.join(f'{count} {fault.value}' for fault, count in line.faults.items())}")


def storm_alone(plane: ControlPlane, folder: Path, seed: int, steps: int, say: Callable[[str], None]) -> list[str]:
    """On a cluster of its own; the programs' logs stay in the folder."""
    cluster = Cluster(plane)
    cluster.recorder.start()
    weather = climate_of(seed)
    say(f"climate: {weather}")
    try:
        return storm(cluster, folder, seed, steps, say, climate=weather)
    finally:
        cluster.recorder.stop()
        cluster.clean()
