"""Which group each pod is in, by UID; which pods are gone, which only a call has shown, and which left while they were held.

PodGroupManager keeps it beside the groups. kube-scheduler has no counterpart: its calls and its informer are one process.

    (none) --watch--> member <--watch-- by a call alone --UNSEEN_SECONDS without a watch--> gone
    member --deleted, ended--> gone    gone --GONE_SECONDS--> (none): until then no late call brings it back
"""

from __future__ import annotations

from collections.abc import Callable

from cachetools import TTLCache

from extender.api import corev1

MAX_GONE = 100_000
GONE_SECONDS = 300.0  # how long a late call cannot bring a deleted pod back
UNSEEN_SECONDS = 30.0  # how long a pod counts that only a call has shown, and no watch


class KnownPods:
    """Not locked: the manager's lock guards it. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._groups: dict[str, str] = {}  # UID -> key of the group that it is in
        self._gone: TTLCache[str, bool] = TTLCache(MAX_GONE, GONE_SECONDS, timer=clock)
        self._unseen: dict[str, float] = {}  # UID -> until when the watch has to show it
        self._left_held: dict[
            str, str
        ] = {}  # UID -> key of the group that it left, and that holds it until its call ends

    def __contains__(self, uid: object) -> bool:
        """Whether the pod is a member of a group."""
        return uid in self._groups

    def group_of(self, uid: str) -> str:
        """The key of its group; empty if it is in none."""
        return self._groups.get(uid, "")

    def joins(self, uid: str, key: str, *, by_call: bool) -> None:
        self._groups[uid] = key
        if by_call:
            self._unseen[uid] = self._clock() + UNSEEN_SECONDS
        else:
            self._unseen.pop(uid, None)
        if self._left_held.get(uid) == key:
            del self._left_held[uid]

    def leaves(self, uid: str, *, held: bool) -> None:
        """held: its bind call waits, and the group keeps the hold until that ends."""
        key = self._groups.pop(uid)
        self._unseen.pop(uid, None)
        if held:
            self._left_held[uid] = key

    def may_join_by_call(self, pod: corev1.Pod, key: str) -> bool:
        """Whether a call shows a member that was not known. What only calls have shown, the latest call may move."""
        if pod.deleting or pod.terminal or pod.uid in self._gone:
            return False
        known = self._groups.get(pod.uid)
        return known is None or (known != key and pod.uid in self._unseen)

    def unseen(self) -> list[str]:
        """UIDs of members that a call has shown and, for too long, no watch."""
        now = self._clock()
        return [uid for uid, until in self._unseen.items() if until <= now]

    def goes(self, uid: str) -> None:
        self._gone[uid] = True

    def comes_back(self, uid: str) -> None:
        """A pod that was taken for gone is none: what is said of it next counts."""
        self._gone.pop(uid, None)

    def is_gone(self, uid: str) -> bool:
        return uid in self._gone

    def holder_of(self, uid: str) -> str:
        """The key of the group that holds a pod that has left it; empty for any other."""
        return self._left_held.get(uid, "")

    def hold_is_over(self, uid: str, key: str) -> None:
        if self._left_held.get(uid) == key:
            del self._left_held[uid]
