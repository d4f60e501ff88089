"""Who could be evicted for somebody, and what else would have to go with them.

A member of a running gang goes singly only while its gang has members to spare; beyond that the gang goes whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from extender.api import corev1
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.ordering import sort_by_importance


class Kind(IntEnum):
    """In the order in which they are taken."""

    LONE = 0  # of no gang, or of one that has fewer than its minimum anyway
    SURPLUS = 1  # its gang has members to spare
    BREAKING = 2  # without it its gang cannot run: all of it goes, or none


class GangVictims(IntEnum):
    """The configuration's `gangVictims`. Go has no counterpart."""

    WHOLE_OR_SURPLUS = 0
    SURPLUS_ONLY = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class RunningGang:
    """minMember, and who runs: UID -> node name."""

    key: str
    min_member: int
    running: Mapping[str, str]

    @property
    def to_spare(self) -> int:
        return max(0, len(self.running) - self.min_member)

    @property
    def complete(self) -> bool:
        return len(self.running) >= self.min_member > 0


@dataclass(frozen=True, slots=True)
class Evictable:
    """A pod that may be evicted. gang: the running one that it is of, empty for none."""

    info: PodInfo
    node_name: str
    kind: Kind
    gang: str = ""

    @property
    def pod(self) -> corev1.Pod:
        return self.info.pod

    @property
    def uid(self) -> str:
        return self.info.pod.metadata.uid

    @property
    def importance(self) -> tuple[int, float]:
        """Ascending: of lower priority, then running for less long. A pod without a start time counts as started now."""
        started = self.info.pod.status.start_time
        return self.info.pod.priority, -started.timestamp() if started is not None else float("-inf")


@dataclass(frozen=True, slots=True)
class Rules:
    """protected: UIDs that are never evicted (held in our bind, or on a node by our word only).
    started_before: a pod that runs for less long is left alone; None for no such rule. In seconds since 1970."""

    priority: int
    gang_victims: GangVictims = GangVictims.WHOLE_OR_SURPLUS
    protected: Collection[str] = ()
    started_before: float | None = None

    def may_go(self, pod: corev1.Pod) -> bool:
        if pod.priority >= self.priority or pod.metadata.uid in self.protected or pod.deleting or pod.terminal:
            return False
        if self.started_before is None:
            return True
        started = pod.status.start_time
        return started is not None and started.timestamp() <= self.started_before


def evictable_pods(snapshot: NodeInfoLister, gangs: Iterable[RunningGang], rules: Rules) -> list[Evictable]:
    """Of all nodes. A gang of which one member may not go is not broken; its surplus may go all the same."""
    gang_of = {uid: gang for gang in gangs if gang.complete for uid in gang.running}
    singles: list[Evictable] = []
    members: dict[str, list[tuple[PodInfo, str]]] = {}
    for node in snapshot.list():
        for info in node.pods:
            if not rules.may_go(info.pod):
                continue
            gang = gang_of.get(info.pod.metadata.uid)
            if gang is None or rules.gang_victims is GangVictims.ANY:
                singles.append(Evictable(info, node.name, Kind.LONE, gang.key if gang else ""))
            else:
                members.setdefault(gang.key, []).append((info, node.name))
    for gang in {gang.key: gang for gang in gang_of.values()}.values():
        singles += _of_gang(gang, members.get(gang.key, ()), rules)
    return singles


def _of_gang(gang: RunningGang, members: Sequence[tuple[PodInfo, str]], rules: Rules) -> list[Evictable]:
    """The least important members are the ones to spare."""
    infos = {info.pod.metadata.uid: (info, node_name) for info, node_name in members}
    pods = [info.pod for info, _ in members]
    sort_by_importance(pods)
    spare = {pod.metadata.uid for pod in pods[len(pods) - gang.to_spare :]} if gang.to_spare else set()
    whole = len(members) == len(gang.running) and rules.gang_victims is GangVictims.WHOLE_OR_SURPLUS
    return [
        Evictable(info, node_name, Kind.SURPLUS if uid in spare else Kind.BREAKING, gang.key)
        for uid, (info, node_name) in infos.items()
        if uid in spare or whole
    ]


def with_their_gangs(victims: Collection[Evictable], everybody: Iterable[Evictable]) -> list[Evictable]:
    """With the rest of each gang that breaks."""
    broken = {victim.gang for victim in victims if victim.kind is Kind.BREAKING}
    chosen = {victim.uid: victim for victim in victims}
    for other in everybody:
        if other.gang in broken and other.gang:
            chosen.setdefault(other.uid, other)
    return list(chosen.values())
