"""What becomes of a gang that is set aside: it gives its room back, its holds end, and its owner is told.

The quarantine calls it for each fault; the plugin's tick follows about once a second. Firm slots, and slots of members whose start
has begun, stay until they expire. Filter refuses the members until the quarantine ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from extender.api import corev1
from extender.crash import guarded
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import QUARANTINED, CoschedulingDependencies, Verdict
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.pod_conditions import was_refused
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, update_once_satisfied
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


class SetAside:
    """Everything here runs under the manager's lock, and what it asks others for returns at once.

    The gang's state has just raised: each step is done though another raises once more. forget_phase: of a gang, by its key.
    schedule_planning: has the other gangs planned.
    """

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        dispatcher: Dispatcher,
        holds: Holds,
        forget_phase: Callable[[str], None],
        schedule_planning: Callable[[], None],
    ) -> None:
        self._manager = manager
        self._with = dependencies
        self._dispatcher = dispatcher
        self._holds = holds
        self._forget_phase = forget_phase
        self._schedule_planning = schedule_planning
        self._aside: set[str] = set()  # when the tick last looked
        self._told: set[str] = set()  # since we lead, of those that are set aside
        manager.quarantine.on_set_aside = self._begin

    def _begin(self, key: str) -> None:
        manager = self._manager
        self._aside.add(key)
        group = manager.groups.get(key)
        if group is None:
            return
        gang_set: list[Sequence[Group]] = [(group,)]
        guarded("quarantine", lambda: gang_set.append(gang_set_of(manager, group)))
        for step in (
            partial(self._give_room_back, gang_set[-1]),
            partial(self._holds.end_holds, gang_set[-1], messages.INTERNAL_ERROR),
            *(partial(self._dispatcher.decide_withdrawal, each) for each in gang_set[-1]),
            partial(self._with.submit, "steering", self._dispatcher.steering.carry_out),
            partial(self._forget_phase, key),
            partial(self._tell, group),
        ):
            guarded("quarantine", step)

    def _give_room_back(self, gang_set: Sequence[Group]) -> None:
        """Also of the groups that it is to start with: they cannot start without it."""
        manager, now = self._manager, self._manager.clock()
        found = False
        for group in gang_set:
            manager.notes.forget(group.key)
            firm = {place.uid for place in manager.slots.of_group(group.key) if place.firm and place.expires > now}
            found = manager.places.give_up(group, keep=firm | group.started) or found
        if found:
            manager.notes.on_capacity_freed([group.key for group in gang_set])
            self._schedule_planning()

    def tick(self) -> None:
        """About once a second: gangs whose quarantine has ended are planned again; of the others, firm slots that have expired are given
        up. On taking leadership, owners of gangs that were set aside before are told.
        """
        manager = self._manager
        with manager.lock:
            manager.quarantine.prune(manager.groups.keys())
            aside = set(manager.quarantine)
            over, self._aside = self._aside - aside, aside
            for group in self._there(over):
                manager.queue.move_to_active((group.key,))
                manager.quarantine.for_gang(group.key, "events", partial(self._make_up_for, group), None)
            leads = self._with.may_plan()
            self._told &= aside if leads else set()
            for group in self._there(aside):
                guarded("quarantine", partial(self._give_room_back, (group,)))
                if leads and group.key not in self._told:
                    guarded("quarantine", partial(self._tell, group))
        if over:
            self._schedule_planning()

    def _there(self, keys: Iterable[str]) -> list[Group]:
        return [group for key in sorted(keys) if (group := self._manager.groups.get(key)) is not None]

    def _make_up_for(self, group: Group) -> None:
        """What events would have noted meanwhile: members that came to nodes, or were refused by kube-scheduler's own filters."""
        update_once_satisfied(self._manager, group)
        placed = self._manager.places.placed(group)
        for info in group.pending():
            if info.pod.uid not in placed and was_refused(info.pod):
                group.happened(info.pod.uid, MemberEvent.PARKED)

    def _tell(self, group: Group) -> None:
        """The condition of a gang that runs still says that it does."""
        if self._with.may_plan():
            self._told.add(group.key)
        verdict = Verdict(_runs(group), QUARANTINED, messages.INTERNAL_ERROR, UnschedulableReason.INTERNAL_ERROR)
        self._with.verdicts.decided(group.object, group.key, verdict, _gated_member(group))


def _runs(group: Group) -> bool:
    """By its own condition: its state is not to be trusted."""
    return group.told is not None and group.told.status == "True"


def _gated_member(group: Group) -> corev1.Pod | None:
    """Of a gang without an object, the member that the event is about; others hear it when they are refused."""
    pods = [group.members[uid].pod for uid in group.gated if uid in group.members]
    return min(pods, key=lambda pod: pod.name, default=None)
