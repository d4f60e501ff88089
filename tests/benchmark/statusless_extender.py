"""`gang-extender` that writes no status of a PodGroup: `python -m tests.benchmark.statusless_extender serve ...`. Used by status_writes."""

from extender.server import serve as serve  # isort: skip  - patches: everything else comes after

import sys
from collections.abc import Sequence

from extender.api.metav1 import Condition
from extender.cli import main as command
from extender.client.interface import OwnPodGroup
from extender.scheduler.pod_groups.writer import PodGroupStatusWriter


def _leave_as_it_is(
    writer: PodGroupStatusWriter, pod_group: OwnPodGroup, conditions: Sequence[Condition]
) -> OwnPodGroup:
    """In place of PodGroupStatusWriter.write."""
    return pod_group


def main(*arguments: str) -> int:
    setattr(PodGroupStatusWriter, "write", _leave_as_it_is)  # noqa: B010
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
