"""Whether anything new still happens: what ends a run in which pods are tried again and again with the same outcome.

The driver notes what it sees and hears; something that was noted before is no news.
"""

from __future__ import annotations

from typing import Any

from extender.api import corev1
from extender.client.interface import PODS, ResourceType
from extender.framework.handle import Clock

QUIET_SECONDS = 5 * 60.0 + 30.0 + 10.0 + 1.0  # the flush of pods that wait long, its tick, and the longest back-off


class Progress:
    """`since` is when something new happened last; `version` grows with each change that may make a pod fit."""

    def __init__(self, clock: Clock, patience: float = 0.0) -> None:
        """patience: how much longer than kube-scheduler's own waits something may be put off by configuration, in seconds."""
        self._clock = clock
        self._quiet = QUIET_SECONDS + patience
        self._heard: set[object] = set()
        self.since = 0.0
        self.version = 0

    def note(self, news: object) -> None:
        if news not in self._heard:
            self._heard.add(news)
            self.since = max(self.since, self._clock())

    def held(self, uid: str, until: float) -> None:
        """A pod waits in Permit: the first time its whole wait counts as news."""
        if ("held", uid) not in self._heard:
            self._heard.add(("held", uid))
            self.since = max(self.since, until)

    def seen(self, resource: ResourceType[Any], old: Any, new: Any) -> None:
        """A change of an object."""
        if resource is not PODS:
            self.version += 1
            self.note((str(resource), (new or old).metadata.key, (new or old).metadata.resource_version))
        elif old is None or new is None or _place(old) != _place(new):
            self.version += 1
            self.note((old.uid if new is None else new.uid, _place(new) if new is not None else None))

    @property
    def ends(self) -> float:
        """Nothing new by then: nothing new will come."""
        return self.since + self._quiet


def _place(pod: corev1.Pod) -> tuple[object, ...]:
    """What of a pod counts for others, and for its own next attempt."""
    return pod.node_name, pod.status.nominated_node_name, pod.gated, pod.deleting
