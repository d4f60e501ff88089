"""What happened to each gang, for its page: the phases that it came through, and what was decided of it.

The observer notes phases, and every verdict passes here on its way to users. Kept in memory alone, so a story begins anew with the
extender. kube-scheduler: a pod's events are the nearest thing
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cachetools import LRUCache

from extender.api import corev1
from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling.dependencies import Verdict, Verdicts
from extender.plugins.coscheduling.quarantine import Quarantine
from extender.plugins.coscheduling.scheduling.phases import Phase

MAX_GANGS, MAX_NOTES = 2_000, 32
MAX_MESSAGE = 512  # characters


@dataclass(frozen=True, slots=True)
class Note:
    """at: seconds of the clock. Either a phase, or the reason of an event with its message."""

    at: float
    phase: str = ""
    reason: str = ""
    message: str = ""

    def says_the_same(self, other: Note) -> bool:
        return (self.phase, self.reason, self.message) == (other.phase, other.reason, other.message)


class GangStories:
    """Of the gangs that something happened to last. Fulfils Verdicts, and hands on to `verdicts` what it notes."""

    def __init__(self, verdicts: Verdicts, quarantine: Quarantine, clock: Callable[[], float]) -> None:
        self._verdicts = verdicts
        self._quarantine = quarantine
        self._clock = clock
        self._lock = threading.Lock()  # guards _stories; the innermost lock
        self._stories: LRUCache[str, deque[Note]] = LRUCache(MAX_GANGS)

    def of(self, key: str) -> Sequence[Note]:
        """The oldest first."""
        with self._lock:
            return tuple(self._stories.get(key, ()))

    def came_into(self, key: str, phase: Phase) -> None:
        note = Note(self._clock(), phase=phase.value)
        self._quarantine.for_gang(key, "story", partial(self._note, key, note), None)

    def dropped(self, key: str) -> None:
        """Another group of that name has a story of its own."""
        with self._lock:
            self._stories.pop(key, None)

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        note = Note(self._clock(), reason=verdict.reason, message=verdict.message[:MAX_MESSAGE])
        self._quarantine.for_gang(key, "story", partial(self._note, key, note), None)
        self._verdicts.decided(pod_group, key, verdict, member)

    def forget(self, key: str) -> None:
        self._verdicts.forget(key)

    def _note(self, key: str, note: Note) -> None:
        with self._lock:
            notes = self._stories.setdefault(key, deque(maxlen=MAX_NOTES))
            if not any(note.says_the_same(each) for each in list(notes)[-2:]):
                notes.append(note)
