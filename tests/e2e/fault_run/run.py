"""One fault run from its first fault to the result of the checks, on a control plane that is there.

Used by tests/e2e/test_fault_run.py and by `python -m tests.e2e.fault_run`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.fault_run.budgets import remove_all
from tests.e2e.fault_run.drawn_configuration import AS_SHIPPED, DrawnConfiguration, draw_configuration
from tests.e2e.fault_run.faults import FaultRun
from tests.e2e.fault_run.kubelets import Kubelets
from tests.e2e.fault_run.volumes import Provisioner
from tests.e2e.fault_run.wishes import TOPOLOGY
from tests.e2e.faulty_connection import FaultyConnection
from tests.e2e.pair import Pair

STEPS_A_ROUND = 30


def fault_run(
    cluster: Cluster,
    folder: Path,
    seed: int,
    steps: int,
    say: Callable[[str], None] = lambda line: None,
    *,
    configuration: DrawnConfiguration = AS_SHIPPED,
    only_fractions: bool = False,
) -> list[str]:
    """What was wrong, a sentence each. The programs' logs are in the folder.

    only_fractions: no check of what waits although it fits, and no important pods come in the end.
    """
    line = FaultyConnection(cluster.plane.server, cluster.plane.ca_file, seed).start()
    provisioner = Provisioner(cluster, seed)
    kubelets = Kubelets(cluster, seed)
    try:
        provisioner.start()
        kubelets.start()
        settings = {"topology": TOPOLOGY, **configuration.of_the_extender()}
        pair = Pair.of(cluster.plane, folder, server=line.url, settings=settings, change=configuration.of_the_scheduler)
        with pair.running():
            run = FaultRun(cluster, pair, line, provisioner, seed, configuration, say=say)
            run.inject(steps)
            if only_fractions:
                run.settle()
                return run.violations()
            return [*run.calm(), *run.check_preemption(steps // STEPS_A_ROUND), *run.violations()]
    finally:
        remove_all(cluster.api)
        provisioner.stop()
        kubelets.stop()
        line.stop()
        say(f"on the line: {', '.join(f'{count} {fault.value}' for fault, count in line.faults.items())}")


def fault_run_alone(plane: ControlPlane, folder: Path, seed: int, steps: int, say: Callable[[str], None]) -> list[str]:
    """On a cluster of its own; the programs' logs stay in the folder."""
    cluster = Cluster(plane)
    cluster.recorder.start()
    configuration = draw_configuration(seed)
    say(f"configuration: {configuration}")
    try:
        return fault_run(cluster, folder, seed, steps, say, configuration=configuration)
    finally:
        cluster.recorder.stop()
        cluster.clean()
