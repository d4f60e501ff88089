"""Leadership gained and lost: a new leader plans what waits, and one that leads no more keeps no places and holds no member.

A member that it held would wait in vain: kube-scheduler does not ask the new leader about it before its bind call has an answer.

The plugin's tick has it look about once a second; whether we lead is said by the Lease, through CoschedulingDependencies.may_plan.
kube-scheduler starts its loop with the Lease and ends its process without it: cmd/kube-scheduler/app/server.go
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.scheduling.rejected_in_tree import mark_rejections_current
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

log = logging.getLogger(__name__)


class LeadChanges:
    """One caller at a time: the tick. tell_anew: has what gangs wait for told once more; the manager's lock is held.
    on_capacity_freed: voids all denials, and has every gang that waits planned."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        holds: Holds,
        tell_anew: Callable[[], None],
        may_plan: Callable[[], bool],
        on_capacity_freed: Callable[[], None],
    ) -> None:
        self._manager = manager
        self._rounds = rounds
        self._holds = holds
        self._tell_anew = tell_anew
        self._may_plan = may_plan
        self._on_capacity_freed = on_capacity_freed
        self._planning = False  # what may_plan last said

    def tick(self) -> None:
        """What follows is done again with the next tick, until it is done to its end."""
        planning = self._may_plan()
        if planning and not self._planning:
            log.info("leading: gangs are planned and started here")
            self._rounds.begun.finish()
            self._on_capacity_freed()
            with self._manager.lock:
                mark_rejections_current(self._manager)
                self._tell_anew()
        elif self._planning and not planning:
            log.info(
                "not leading any more: the places of gangs that have not started are given back, and their members' holds end"
            )
            self._rounds.begun.look_again()
            with self._manager.lock:
                planned = {slot.group for slot in self._manager.slots}
                held = [key for key, group in self._manager.groups.items() if group.held]
            for key in sorted({*planned, *held}):
                self._manager.quarantine.for_gang(key, "leadership", partial(self._give_up, key), None)
        self._planning = planning

    def _give_up(self, key: str) -> None:
        self._rounds.drop_plan(key)
        with self._manager.lock:
            if (group := self._manager.groups.get(key)) is not None:
                self._holds.end_holds([group], messages.LEADS_NO_MORE)
