"""What would become of gangs that are not there yet, and of the gangs on a node that is drained; how a pod's gang is doing.

Frozen values: `questions/` makes them for the pages, and the command line decodes the very same structs from the pages' JSON.
No counterpart upstream; Slurm answers the like with `sbatch --test-only`.
"""

from __future__ import annotations

from msgspec.structs import replace

from extender.plugins.coscheduling.report.gang_status import (
    GangStatus,
    PreemptionView,
    Relaxation,
    Shortfall,
    Shown,
    keys_within,
)


class Place(Shown, frozen=True):
    """A member, and the node that it would go to."""

    member: str
    node: str


class GangOutlook(Shown, frozen=True):
    """Groups that would start together, on the cluster as it is at this moment. groups: their keys, nearly always one.

    needed: how many of the members have to find places. fits: at once; then `places` has all that do, and `domain` is the narrowest
    that holds them. Otherwise reason says why not, in one text for one cause, and shortfall and relaxations say what is missing and
    what would make it fit. preemption: the victims that it would need; None if none would help, or none are needed;
    places_then: where the members would go once the victims have gone. ahead: how many gangs that wait would be planned before it.
    notes: what the answer takes for granted.
    """

    groups: tuple[str, ...]
    min_member: int
    members: int
    needed: int
    priority: int
    fits: bool
    places: tuple[Place, ...] = ()
    domain: str = ""
    reason: str = ""
    shortfall: Shortfall | None = None
    reserved_for: tuple[str, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    preemption: PreemptionView | None = None
    places_then: tuple[Place, ...] = ()
    ahead: int = 0
    notes: tuple[str, ...] = ()

    def within_namespace(self, namespace: str) -> GangOutlook:
        """For users that may see no gang of another namespace. The nodes that its own members would go to stay."""
        preemption = self.preemption.within_namespace(namespace) if self.preemption is not None else None
        return replace(self, preemption=preemption, reserved_for=keys_within(namespace, self.reserved_for))


class QuotaRefusal(Shown, frozen=True):
    """A ResourceQuota that would not let the pods be created, all of them together. quota: its key; empty where the quotas of the
    namespace are not known. message: by how much, or why."""

    namespace: str
    quota: str
    resource: str
    message: str


class WhatIf(Shown, frozen=True):
    """Each as if the others were not asked about. standby: the replica that answers does not lead, and knows of no places that are
    promised to others. quotas: filled in by the command line, with the caller's rights."""

    gangs: tuple[GangOutlook, ...]
    standby: bool = False
    quotas: tuple[QuotaRefusal, ...] = ()

    def within_namespace(self, namespace: str) -> WhatIf:
        return replace(self, gangs=tuple(each.within_namespace(namespace) for each in self.gangs))


class DrainedGang(Shown, frozen=True):
    """A gang of which members are on the node, or are to come there.

    here: these members. left: how many would run on. below: fewer than minMember, or than a role's minimum, would. fits: all of
    `here` that it needs again find places elsewhere; `places` has those that do. promised: members that are not on the node yet: they
    are planned anew. asked: False where time ran out before this gang was planned.
    """

    group: str
    min_member: int
    here: tuple[str, ...]
    left: int
    below: bool
    fits: bool
    places: tuple[Place, ...] = ()
    reason: str = ""
    shortfall: Shortfall | None = None
    promised: tuple[str, ...] = ()
    asked: bool = True


class UsedUpBudget(Shown, frozen=True):
    """A PodDisruptionBudget that allows fewer evictions now than it counts pods on the node. pods: these, by `namespace/name`."""

    budget: str
    allowed: int
    pods: tuple[str, ...]


class DrainOutlook(Shown, frozen=True):
    """Those that would fall below minMember first, then by priority. others: how many pods of no gang are on the node. budgets: at which
    the drain would wait, of gangs' pods and others'."""

    node: str
    gangs: tuple[DrainedGang, ...]
    others: int = 0
    unschedulable: bool = False
    standby: bool = False
    budgets: tuple[UsedUpBudget, ...] = ()


class PodStatus(Shown, frozen=True):
    """group: empty for a pod of no gang; gang: None where nothing is known of it. message: of the pod's own PodScheduled condition."""

    pod: str
    scheduler_name: str
    node: str = ""
    phase: str = ""
    message: str = ""
    group: str = ""
    gang: GangStatus | None = None
