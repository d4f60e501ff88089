"""Places that are promised: a node for each planned member, from plan to bind.

The planner and Coscheduling's Filter count them; the manager's lock guards them. kube-scheduler has no counterpart:
its nominated pods vanish on a restart or a preemption, so they are only the hint and this is the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY
from extender.plugins.coscheduling.state.group import counts_at


@dataclass(frozen=True, slots=True)
class Slot:
    """One member's place. `expires` in seconds of the clock: a member that never comes loses it.

    firm: holds whatever the others' priority, to finish a start that has begun. gang_priority: None for a pod of no gang.
    """

    pod_info: PodInfo
    group: str
    node_name: str
    expires: float
    firm: bool = False
    gang_priority: int | None = None

    @property
    def uid(self) -> str:
        return self.pod_info.pod.metadata.uid

    @property
    def pod(self) -> corev1.Pod:
        return self.pod_info.pod

    @property
    def priority(self) -> int:
        own = self.pod_info.pod.priority
        return own if self.gang_priority is None else counts_at(own, self.gang_priority)

    def holds_against(self, priority: int) -> bool:
        return self.firm or self.priority >= priority


class Slots:
    """Reservations by UID, by node and by group. Not locked: the owner's lock guards it."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Slot] = {}
        self._by_node: dict[str, dict[str, Slot]] = {}
        self._by_group: dict[str, dict[str, Slot]] = {}
        self._against: dict[int, Mapping[str, Sequence[PodInfo]]] = {}  # priority -> ..., until the next change
        self._priorities: Counter[int] = Counter()  # of the places that are not firm
        self._given_up = False
        self._followers: list[set[str]] = []

    def follow(self) -> set[str]:
        """A set that the node of each place is put into, of those that there are and as they come and go; to be emptied at will."""
        changed = set(self._by_node)
        self._followers.append(changed)
        return changed

    def unfollow(self, changed: set[str]) -> None:
        self._followers = [each for each in self._followers if each is not changed]

    def _changed(self, node_name: str) -> None:
        self._against.clear()
        for follower in self._followers:
            follower.add(node_name)

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._by_uid.values())

    def uids(self) -> Set[str]:
        """Of the pods that have a place."""
        return self._by_uid.keys()

    def get(self, uid: str) -> Slot | None:
        return self._by_uid.get(uid)

    def on_node(self, node_name: str) -> Iterable[Slot]:
        return self._by_node.get(node_name, {}).values()

    def reserve(self, slot: Slot) -> None:
        """A second slot of a pod replaces its first."""
        before = self._by_uid.get(slot.uid)
        if before is not None:
            self.release(before.uid, bound=before.node_name == slot.node_name)
        self._changed(slot.node_name)
        self._by_uid[slot.uid] = slot
        if not slot.firm:
            self._priorities[slot.priority] += 1
        self._by_node.setdefault(slot.node_name, {})[slot.uid] = slot
        self._by_group.setdefault(slot.group, {})[slot.uid] = slot

    def release(self, uid: str, *, bound: bool = False) -> Slot | None:
        """bound: the pod is on that node now, so the room does not come free for others."""
        slot = self._by_uid.pop(uid, None)
        if slot is not None:
            self._changed(slot.node_name)
            self._given_up = self._given_up or not bound
            if not slot.firm:
                self._priorities[slot.priority] -= 1
                if not self._priorities[slot.priority]:
                    del self._priorities[slot.priority]
            _drop(self._by_node, slot.node_name, uid)
            _drop(self._by_group, slot.group, uid)
        return slot

    def of_group(self, group: str) -> list[Slot]:
        return list(self._by_group.get(group, {}).values())

    def against(self, priority: int) -> Mapping[str, Sequence[PodInfo]]:
        """Node -> the pods whose places hold against one of this priority. Not to be changed."""
        found = self._against.get(priority)
        if found is None:
            by_node: dict[str, list[PodInfo]] = {}
            for slot in self._by_uid.values():
                if slot.holds_against(priority):
                    by_node.setdefault(slot.node_name, []).append(slot.pod_info)
            found = self._against[priority] = by_node
        return found

    def lowest_against(self, priority: int) -> int:
        """The lowest priority of the places that hold against this one, but for firm ones: from there to here all see the same places."""
        return min((known for known in self._priorities if known >= priority), default=ABOVE_ANY_PRIORITY)

    def given_up(self) -> bool:
        """Whether a place has ended without a binding since this was last asked."""
        given_up, self._given_up = self._given_up, False
        return given_up


def _drop(index: dict[str, dict[str, Slot]], key: str, uid: str) -> None:
    entries = index[key]
    del entries[uid]
    if not entries:
        del index[key]
