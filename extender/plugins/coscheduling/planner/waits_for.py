"""What a gang that was refused waits for: its members' kinds, and what else an event may change for it.

Noted with the refusal (GangSetPlanning), read with each event (scheduling/gang_hints). kube-scheduler notes the plugins that refused a
pod: pkg/scheduler/framework/types.go (QueuedPodInfo.UnschedulablePlugins)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.members import DO_NOT_SCHEDULE, shape_of
from extender.plugins.coscheduling.planner.room import Amounts, asked_of


@dataclass(frozen=True, slots=True, eq=False)
class MemberKind:
    """Members that any node treats alike. first: one of them, by which plugins are asked.

    keys: node labels that say where they may go. domain_keys: the topology keys of required affinity and anti-affinity.
    """

    shape: object
    first: PodInfo
    asked: Amounts
    keys: frozenset[str]
    domain_keys: frozenset[str]
    spreads: bool

    @property
    def minds_pods(self) -> bool:
        return bool(self.domain_keys)

    @property
    def has_volumes(self) -> bool:
        return bool(self.first.pod.spec.volumes)


@dataclass(frozen=True, slots=True, eq=False)
class WaitsFor:
    """priority: the gang's; pods below it may be evicted for it. level_keys: labels of the topology levels that it may require.

    anything: every event that could help any pod may help it, since its refusal does not say what it lacks. room_anywhere: it
    waits for room in the cluster as a whole (minResources), whatever node it is on.
    """

    kinds: Sequence[MemberKind]
    priority: int = 0
    level_keys: frozenset[str] = frozenset()
    anything: bool = False
    room_anywhere: bool = False


def kinds_of(members: Iterable[PodInfo]) -> list[MemberKind]:
    found: dict[object, PodInfo] = {}
    for member in members:
        found.setdefault((shape_of(member), frozenset(member.pod.labels.items())), member)
    return [_kind(shape, member) for shape, member in found.items()]


def _kind(shape: object, member: PodInfo) -> MemberKind:
    hard = [c for c in member.pod.spec.topology_spread_constraints if c.when_unsatisfiable == DO_NOT_SCHEDULE]
    terms = (*member.required_affinity_terms, *member.required_anti_affinity_terms)
    return MemberKind(
        shape,
        member,
        asked_of(member.requests),
        frozenset(_node_keys(member)) | {constraint.topology_key for constraint in hard},
        frozenset(term.topology_key for term in terms),
        bool(hard),
    )


def _node_keys(member: PodInfo) -> Collection[str]:
    spec = member.pod.spec
    keys = set(spec.node_selector or ())
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        keys.update(requirement.key for requirement in term.match_expressions)
    return keys
