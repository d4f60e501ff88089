"""Members of an earlier phase that have Succeeded, by which room for those of the next is found again after a restart.

No watch shows them: the API server is asked, and what it answers is noted in their Group. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.reading import Reading
from extender.plugins.coscheduling.spec.start_record import StartRecord


@dataclass(frozen=True, slots=True)
class EndedPhase:
    """number: how many they are. like: the largest. requests: of all together. began: when the last start of them did; None where no
    record says so."""

    number: int
    like: PodInfo
    requests: Resource
    began: datetime | None

    @classmethod
    def of(cls, pods: Sequence[corev1.Pod]) -> EndedPhase:
        """pods: at least one."""
        infos = [PodInfo(pod) for pod in pods]
        total = Resource()
        for info in infos:
            total.add(info.requests)
        began = [record.began for record in map(record_on, pods) if record is not None]
        return cls(len(infos), max(infos, key=size_of), total, max(began, default=None))


def size_of(info: PodInfo) -> tuple[int, int, int, str]:
    """The larger, the more of what is scarce a pod asks for."""
    asked = info.requests
    return sum(asked.scalar.values()), asked.milli_cpu, asked.memory, info.pod.name


def record_on(pod: corev1.Pod) -> StartRecord | None:
    """None where the annotation is no record, or not there."""
    return Reading().value(pod.metadata, START)
