"""Which gangs are planned when: one plan at a time, in order, and never a gang that nothing has happened to.

Admission has those planned that come before whoever it is asked about, and then that one; the watch's events and the ticks
have all that wait planned, in the background. Lock order: planning, then the manager's lock.
kube-scheduler has no counterpart: its queue is one of pods, and each is tried by itself
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from functools import partial

from extender.crash import guarded
from extender.framework.listers import Nominator
from extender.framework.status import Status, unresolvable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.arrivals import Arrivals
from extender.plugins.coscheduling.batches import recall_batches
from extender.plugins.coscheduling.collaborators import Collaborators
from extender.plugins.coscheduling.gates import shut_gate
from extender.plugins.coscheduling.group import Group
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.quorum import is_free
from extender.plugins.coscheduling.refused_unasked import refusals_stand
from extender.plugins.coscheduling.unit_planning import UnitPlanning
from extender.plugins.coscheduling.units import unit_of

BEGUN_SECONDS = 2.0  # after which no further plan is made before the first answer
BEGUN_AGAIN_SECONDS = 1.0  # after which they are looked for again where that raised
TURN_SECONDS = 5.0  # after which the background does something else, before it goes on planning


class PlanningRounds:
    """`planning` is held around every plan, by whoever has it made; `plan` and `plan_those_before` are called under it."""

    def __init__(
        self,
        manager: PodGroupManager,
        collaborators: Collaborators,
        nominator: Nominator,
        arrivals: Arrivals,
        *,
        denied_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._manager = manager
        self._with = collaborators
        self._arrivals = arrivals
        self.planning = threading.Lock()
        self._units = UnitPlanning(
            manager,
            collaborators,
            nominator,
            arrivals,
            self.look,
            denied_seconds=denied_seconds,
            lease_seconds=lease_seconds,
        )
        self.requests = self._units.requests
        self.shadows = self._units.shadows
        self._begun_finished = threading.Event()
        self._begun_again_at = -math.inf

    def finish_begun(self) -> None:
        """Once since we lead: the gangs of which a part runs are planned before anybody is answered, whatever their priority.

        They began to start before a restart, and nobody else may have the room that their missing members need.
        """
        if self._begun_finished.is_set() or not self._with.may_plan():
            return
        with self.planning:
            if self._begun_finished.is_set() or self._manager.clock() < self._begun_again_at:
                return
            if guarded("begun", self._plan_begun):
                self._begun_finished.set()
            else:  # a fault of no single gang: every call would run into it
                self._begun_again_at = self._manager.clock() + BEGUN_AGAIN_SECONDS

    def _plan_begun(self) -> None:
        manager = self._manager
        until = manager.clock() + BEGUN_SECONDS
        with manager.lock:
            refusals_stand(manager)
            recall_batches(manager)
            begun = manager.in_order(self._begun())
            manager.queue.active.update(group.key for group in begun)
        for group in begun:
            if manager.clock() >= until:
                self.look()  # the others follow in the background
                break
            manager.quarantine.for_gang(group.key, "plan", partial(self._plan_if_it_waits, group), None)

    def _begun(self) -> list[Group]:
        """Lock held."""
        manager = self._manager
        return [
            group
            for group in list(manager.groups.values())
            if manager.quarantine.for_gang(group.key, "begun", partial(manager.begun, group), otherwise=False)
        ]

    def begin_anew(self) -> None:
        """We lead no more: what others begin meanwhile is to be finished when we do again."""
        self._begun_finished.clear()

    def look(self) -> None:
        """Has `plan_waiting` run in the background."""
        self._with.submit("plan", self.plan_waiting)

    def plan_waiting(self) -> None:
        """Plans every group that waits and may fit now, in order, and steers the members that are parked."""
        with self.planning:
            self._plan_those_that_wait(before=None)

    def plan_those_before(self, group: Group) -> None:
        """Those that come before it in order."""
        self._plan_those_that_wait(before=group)

    def plan(self, group: Group, scheduler_name: str, allowed: Mapping[str, frozenset[str]], *, caller: str) -> Status:
        """A gang that another thread sets aside meanwhile keeps nothing of the plan."""
        status = self._units.plan(group, scheduler_name, allowed, caller=caller)
        if group.key in self._manager.quarantine:
            self.drop_plan(group.key)
            return unresolvable(messages.INTERNAL_ERROR)
        return status

    def _plan_those_that_wait(self, before: Group | None) -> None:
        """Only groups that something has happened to: the others were refused on no worse a cluster."""
        manager = self._manager
        if not self._with.may_plan():
            return
        with manager.lock:
            limit = manager.order(before) if before is not None else None
            own = unit_of(manager, before) if before is not None else ()
            active = [manager.groups[key] for key in manager.queue.active & manager.groups.keys()]
            touched = manager.in_order(group for group in active if group not in own)
        until = manager.clock() + TURN_SECONDS
        for group in touched:
            if before is None and manager.clock() >= until:
                self.look()  # the others, when what else there is to do has had its turn
                return
            with manager.lock:
                order = manager.quarantine.for_gang(group.key, "order", partial(manager.order, group), None)
            if limit is not None and order is not None and order > limit:
                return
            manager.quarantine.for_gang(group.key, "plan", partial(self._plan_if_it_waits, group), None)

    def _plan_if_it_waits(self, group: Group) -> None:
        with self._manager.lock:
            self._manager.queue.active.discard(group.key)
            scheduler_name = self._waits(group)
        if scheduler_name is None:
            self._arrivals.withdraw(group)
        else:
            self.plan(group, scheduler_name, {}, caller="")

    def _waits(self, group: Group) -> str | None:
        """The scheduler of the members that a plan would help; None where there are none, or the gates are shut. Lock held."""
        manager = self._manager
        spec = manager.spec(group)
        if group.key in manager.denied or spec is None:
            return None
        if len(group.members) < spec.min_member and not (group.once_whole or group.started):
            return None  # by counting alone: members come one by one, and this is asked after each
        sent = group.steered.keys()  # who lost its place while its gate went is in no other set
        waiting = group.members.keys() if manager.begun(group) else group.refused | group.gated | sent
        unplaced = (waiting & group.members.keys()) - self._manager.placed(group)
        concerned = {uid for uid in unplaced if uid in group.gated or not is_free(group, spec, uid)}
        pods = [pod for uid in concerned if self._with.ours(pod := group.members[uid].pod)]
        if not pods:
            return None
        pod = min(pods, key=lambda pod: pod.name)
        if shut_gate(manager, group, pod.spec.scheduler_name, pod.name, pod.uid) is not None:
            return None
        if not self.requests.needs_plan(group, pod.uid) and not unplaced & group.gated:
            return None
        return pod.spec.scheduler_name

    def on_no_room(self, call: Callable[[Group, str], None]) -> None:
        """call: told, with the scheduler's name, of each group that finds no room. It returns at once."""
        self._units.on_no_room = call

    def on_denied(self, end_holds: Callable[[Group, str], None]) -> None:
        """end_holds: lets go all members of a unit that are held, when there is no plan for the rest of it; with the cause."""
        self._units.end_holds = end_holds

    def drop_plan(self, key: str) -> None:
        """Takes back the places of a group, and of those it is to start with, that are not held."""
        self._units.drop(key)
