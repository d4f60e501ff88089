"""Which step of its job a member is, by the labels that its controller puts on pods: what tells that other members come later.

Trainer's initializers run before its nodes are made, MPI's workers (nodes, in a TrainJob) before the launcher, a Spark driver makes its
executors itself.
No counterpart: gang schedulers count pods, so that such a job waits for ever
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.plugins.coscheduling.spec import keys
from extender.plugins.coscheduling.spec.reading import Reading

STARTED_MOST = 64  # characters of a condition's message that are looked at


class Step(StrEnum):
    INITIALIZER = "initializer"  # of Trainer: the others are made once these have succeeded
    WORKER = "worker"  # of MPI: the launcher may be made only once these are ready
    NODE = "node"  # of a TrainJob whose JobSet has further Jobs: its launcher may be made only once these are ready
    DRIVER = "driver"  # of Spark: minMember counts it alone, minResources its executors too


def step_of(pod: corev1.Pod) -> Step | None:
    """None for a pod whose labels say nothing of it."""
    metadata = pod.metadata
    if not metadata.labels:
        return None
    if keys.SPARK_ROLE.text(metadata) == "driver":
        return Step.DRIVER
    if "worker" in (keys.JOB_ROLE.text(metadata), keys.MPI_JOB_ROLE.text(metadata)):
        return Step.WORKER
    names = keys.REPLICATED_JOB.text(metadata), keys.TRAIN_JOB_STEP.text(metadata)
    if any(name.endswith("initializer") for name in names):
        return Step.INITIALIZER
    return Step.NODE if names[0] == "node" and jobs_of(pod) > 1 else None


def jobs_of(pod: corev1.Pod) -> int:
    """How many Jobs the pod's JobSet has; 0 for a pod whose labels say nothing of it."""
    return Reading().value(pod.metadata, keys.JOBSET_JOBS) or 0


_STARTED = re.compile(r"([0-9]{1,9}) initializers of minMember ", re.ASCII)


def started_early(conditions: Iterable[Condition]) -> int:
    """How many initializers the condition of a PodGroup says to have started; 0 where it says nothing of any."""
    told = (_STARTED.match(each.message[:STARTED_MOST]) for each in conditions if each.type == "Scheduled")
    return next((int(found[1]) for found in told if found), 0)


_OF_MINIMUM = re.compile(r"minMember (?:of )?([0-9]{1,10})\b", re.ASCII)


def size_told(condition: Condition) -> int:
    """The minMember of which a condition of ours says that the gang started; 0 where it says none."""
    found = _OF_MINIMUM.search(condition.message[:STARTED_MOST]) if condition.status == "True" else None
    return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class Rest:
    """Of the members that minMember counts and that are not there: been have ended, to_come are still to be made."""

    been: int = 0
    to_come: int = 0


def rest_of(steps: Mapping[Step, int], members: int, missing: int, ended: int, jobs_after: int = 0) -> Rest:
    """What is plain of the missing members; those that are neither are waited for. steps: how many members are at each.

    members, missing: how many there are, and how many more minMember asks for. ended: how many initializers have succeeded.
    jobs_after: how many Jobs a JobSet has beside those of its nodes and of the initializers that have started.
    """
    missing = max(0, missing)
    been = min(missing, ended)
    if steps.get(Step.INITIALIZER) == members > 0:
        return Rest(been, missing - been)
    if steps.get(Step.WORKER) == members > 0 and missing == 1:
        return Rest(0, 1)
    if steps.get(Step.NODE) == members > 0 and missing - been == jobs_after == 1:
        return Rest(been, 1)
    return Rest(been)
