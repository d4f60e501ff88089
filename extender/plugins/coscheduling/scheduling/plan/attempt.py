"""One look at a gang set: what it asks for, on the snapshot and beside the places of others, read under one hold of the lock.

GangSetPlanning plans it. kube-scheduler: pkg/scheduler/schedule_one.go (the snapshot that a cycle begins with)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservations
from extender.plugins.coscheduling.scheduling.plan.planned_gang_set import PlannedGangSet
from extender.plugins.coscheduling.scheduling.plan.shortages import Shortages
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Gathering, Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


@dataclass(frozen=True, slots=True)
class Attempt:
    """One look at a gang set. permitted: the question without the nodes that are kept free for another gang, which is what is planned.

    epoch: the manager's, before the snapshot. gap: of which resources the cluster has less than minResources.
    """

    group: Group
    gang_set: Sequence[Group]
    planned: PlannedGangSet
    scheduler_name: str
    allowed: Mapping[str, frozenset[str]]
    caller: str
    epoch: int
    snapshot: NodeInfoLister
    question: PlanQuestion
    permitted: PlanQuestion
    gap: tuple[str, ...]
    gathering: Gathering | None


class Attempts:
    """The manager's lock is taken here."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        requests: PlanRequests,
        reservations: BackfillReservations,
        shortages: Shortages,
    ) -> None:
        self._manager = manager
        self._with = dependencies
        self._requests = requests
        self._reservations = reservations
        self._shortages = shortages

    def ask(
        self, group: Group, scheduler_name: str, allowed: Mapping[str, frozenset[str]], caller: str
    ) -> Attempt | None:
        """None where the group names an object that is not there."""
        manager = self._manager
        with manager.lock:
            epoch = manager.notes.epoch  # before the snapshot: what comes free after it voids a denial
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            if manager.specs.of(group) is None:
                return None
            gang_set = gang_set_of(manager, group)
            planned = PlannedGangSet.of(manager, gang_set)
            question = self._requests.question(gang_set, scheduler_name, snapshot, allowed, caller=caller)
            permitted = self._reservations.permitted(gang_set, question)
            gap = {name: None for each in gang_set for name in self._shortages.gap(each, question.request, snapshot)}
            gathering = group.gathering
        return Attempt(
            group,
            gang_set,
            planned,
            scheduler_name,
            allowed,
            caller,
            epoch,
            snapshot,
            question,
            permitted,
            tuple(gap),
            gathering,
        )
