"""What is noted of groups that wait: which were refused or permitted a moment ago, what each waits for, and what voids that.

PodGroupManager keeps it, under its lock. scheduler-plugins: pkg/coscheduling/core/core.go (lastDeniedPG, permittedPG);
kube-scheduler: pkg/scheduler/backend/queue/scheduling_queue.go (MoveAllToActiveOrBackoffQueue)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from cachetools import TTLCache

from extender.plugins.coscheduling.state.denials import MAX_NOTES, Denials
from extender.plugins.coscheduling.state.gang_queue import GangQueue
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.waits_for import brings_volumes
from extender.plugins.pod_claims import claim_uses


class Notes:
    """clock: monotonic seconds."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        *,
        denied_seconds: float,
        permitted_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._groups = groups
        self.queue = GangQueue(clock)
        self.denied = Denials(denied_seconds, clock)
        self.permitted: TTLCache[str, bool] = TTLCache(MAX_NOTES, permitted_seconds, timer=clock)
        self.epoch = 0  # grows with every event that can help a denied group
        self.cluster_epoch = 0  # likewise, but not with what we give up ourselves

    def on_capacity_freed(self, but: Collection[str] = ()) -> None:
        """Denials are void, those that are being decided on an older snapshot too. but: the gangs that gave that room up."""
        self.epoch += 1
        self.denied.clear(but)
        self.queue.move_all_to_active(but)

    def wake(self, keys: Collection[str]) -> None:
        """What has happened may help these groups: their denials are void, and they are planned again."""
        if keys:
            self.epoch += 1
        for key in keys:
            self.denied.pop(key)
        self.queue.move_to_active(keys)

    def volumes_changed(self, keys: Iterable[str], claims: Collection[str] | None = None) -> bool:
        """Likewise, for waiting groups among these that have members with volumes. Returns whether there are any.

        claims: `namespace/name` of what has changed; None for what any volume may depend on.
        """
        found = [key for key in keys if key in self.queue.waiting and _brings(self._groups[key], claims)]
        self.wake(found)
        return bool(found)

    def forget(self, key: str) -> None:
        self.denied.pop(key)
        self.permitted.pop(key, None)
        self.queue.forget_why(key)


def _brings(group: Group, claims: Collection[str] | None) -> bool:
    if claims is None:
        return any(brings_volumes(each.pod) for each in group.members.values())
    pods = (group.members[uid].pod for uid in group.claiming)
    return any(f"{pod.namespace}/{use.name}" in claims for pod in pods for use in claim_uses(pod))
