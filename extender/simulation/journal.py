"""What was said of pods and gangs in a run: events and verdicts, kept in memory in place of the API's Event objects.

The report is made of it, and the driver sees by it whether anything new still happens.
"""

from __future__ import annotations

from collections.abc import Callable

from extender.api import corev1
from extender.client.events import cut
from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling.dependencies import Verdict

FAILED = "FailedScheduling"
PREEMPTED = "Preempted"


class Journal:
    """Fulfils client.interface.EventRecorder and coscheduling's Verdicts. One thread only."""

    def __init__(self, news: Callable[[object], None]) -> None:
        """news: told of everything that is said; the same thing is said again and again."""
        self._news = news
        self.failures: dict[str, str] = {}  # UID of a pod -> the last FailedScheduling
        self.preempted_by: dict[str, str] = {}  # UID of a pod -> namespace/name of the preemptor
        self.verdicts: dict[str, Verdict] = {}  # group -> the last one

    def event(
        self,
        regarding: corev1.ObjectReference,
        event_type: str,
        reason: str,
        action: str,
        note: str,
        related: corev1.ObjectReference | None = None,
    ) -> None:
        if reason == FAILED:
            self.failures[regarding.uid] = cut(note)
        elif reason == PREEMPTED and related is not None:
            self.preempted_by[regarding.uid] = f"{related.namespace}/{related.name}"
        self._news((regarding.uid, reason, note))

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        if not (verdict.event_only or verdict.disrupted):
            self.verdicts[key] = verdict
        self._news((key, verdict))

    def forget(self, key: str) -> None:
        """What was decided of a gang that has gone is part of the story."""
