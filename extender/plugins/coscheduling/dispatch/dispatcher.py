"""Dispatches members of planned gangs to kube-scheduler, wave by wave: freed of our gate, nominated, or both.

PlanningRounds plans and the slots keep the places; this says which members may come now. kube-scheduler judges one pod at a
time, with the siblings that it has assumed in place, so a member that needs another (required affinity, spread) is sent
once that one is held or bound. A member that is asked about takes any free slot of its shape among the nodes offered.
kube-scheduler has no counterpart; its own gang cycle (alpha in 1.36) judges all members in one turn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.bind_slots import BindSlots
from extender.plugins.coscheduling.dispatch.free_to_move import is_free_to_move
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import WITH_NODE, Group
from extender.plugins.coscheduling.state.member import MemberEvent, MemberState
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import schedules_alone
from extender.plugins.coscheduling.state.slots import Slot, is_for_shape_of

TAKING = WITH_NODE | {MemberState.ADMITTED}  # states of members whose slots are taken


class Dispatcher:
    """Steering is asked outside the manager's lock, and returns at once. steering: for all that decide of a gang's members."""

    def __init__(self, manager: PodGroupManager, dependencies: CoschedulingDependencies, bind_slots: BindSlots) -> None:
        self._manager = manager
        self._with = dependencies
        self.bind_slots = bind_slots
        self._displaced: set[str] = set()  # groups in which another has taken the slot of a member; the lock guards it
        self._sent_back: set[str] = set()  # UIDs of callers that are refused, and nominated then; likewise
        self.steering = OrderedSteering(dependencies.steering, manager.quarantine)

    def dispatch(self, group: Group, caller: str = "", only: str | None = None) -> None:
        """Steers the members whose turn it is: those that wait for us, and those whose place has moved. One that is being
        answered this moment needs no patch: the caller, and members whose filter call waits for the plan. only: the UID of
        a member that came while its gang gathers; its siblings are sent by now.
        """
        offers_all, offers_few = self._with.offers_all(), self._with.offers_few()
        with self._manager.lock:
            gang_set = gang_set_of(self._manager, group)
            answered = {uid for each in gang_set for uid, call in each.calls.items() if call.waiting} | {caller}
            places, early = self._due(group, answered, only)
            alone = {places[0][0].uid} if len(places) == 1 else set()
            quiet = self._may_come_unbidden(group, answered | alone)
            early = [pod for pod in early if not self._forget_sent(group, pod.uid)]
            on_their_way = {
                pod.uid
                for pod, _ in places
                if group.members[pod.uid].ungated_without_nomination and pod.uid not in group.refused
            }
            unnamed = {
                pod.uid
                for pod, _ in places
                if self._needs_no_name(group, pod.uid, offers_all=offers_all, offers_few=offers_few)
            }
            for pod, node_name in places:
                member = group.members[pod.uid]
                member.nomination = node_name
                member.ungated_without_nomination = pod.uid in unnamed
                member.rejection_facts = ""
                group.happened(pod.uid, MemberEvent.DISPATCHED)
            self._displaced.discard(group.key)
            places = [(pod, node_name) for pod, node_name in places if pod.uid not in on_their_way]
            free = {pod.uid for pod, _ in places if pod.uid in unnamed or (quiet and pod.gated)}
            named = [(pod, node_name) for pod, node_name in places if pod.uid not in free]
            self.steering.clear_nominations(group.key, early)
            self.steering.ungate(group.key, [pod for pod, _ in places if pod.uid in free])
            if quiet:
                self.steering.activate(group.key, [pod for pod, _ in named])
            else:
                self.steering.nominate(group.key, named)
        self.steering.carry_out()

    def _needs_no_name(self, group: Group, uid: str, *, offers_all: bool, offers_few: bool) -> bool:
        """Whether a member finds its place without a nomination: our filter says where, or moves its slot to where it is asked about.
        Lock held.

        A gate once gone wakes no pod: a member that has come and was refused is woken by its nomination.
        """
        if uid in group.refused:
            return False
        member = group.members[uid]
        if member.ungated_without_nomination or uid not in group.gated or member.nomination is not None:
            return member.ungated_without_nomination
        slot = self._manager.slots.get(uid)
        return offers_all or (offers_few and slot is not None and is_free_to_move(self._manager, group, slot))

    def _forget_sent(self, group: Group, uid: str) -> bool:
        """Returns whether that takes no patch: the member was never nominated. Lock held."""
        group.happened(uid, MemberEvent.NOMINATION_WITHDRAWN)
        member = group.members[uid]
        unnamed = member.ungated_without_nomination
        member.forget_dispatch()
        return unnamed

    def _may_come_unbidden(self, group: Group, but: set[str]) -> bool:
        """Whether members come in waves, and one that no gate holds, but for these, may come at any time. Lock held.

        No member is nominated then: kube-scheduler counts nominated siblings against a pod and never for it, so its own
        filters would refuse the one that comes, and no patch of ours would wake it.
        """
        return self.in_waves(group) and any(
            each.members.keys() - each.assigned - each.held.keys() - each.admitted - each.gated - but
            for each in gang_set_of(self._manager, group)
        )

    def send_after_answer(self, group: Group, caller: str) -> None:
        """Steers those whose slot the caller has taken to the ones that are free.

        A caller that came unnamed and was refused has a place perhaps, and is woken by its nomination; so is one that is sent back.
        """
        with self._manager.lock:
            member = group.members.get(caller)
            nominate = member is not None and member.ungated_without_nomination and caller in group.refused
            nominate = nominate or caller in self._sent_back
            self._sent_back.discard(caller)
            displaced = group.key in self._displaced
        if nominate:
            self.dispatch(group)
        elif displaced:
            self.dispatch(group, caller)
            self.clear_nominations(group)

    def send_back(self, uid: str) -> None:
        """Has the member nominated to its slot once its filter call is answered with a refusal. Lock held."""
        self._sent_back.add(uid)

    def _due(
        self, group: Group, answered: Collection[str], only: str | None
    ) -> tuple[list[tuple[corev1.Pod, str]], list[corev1.Pod]]:
        """The members to nominate, and where; and those whose nomination, to a place that it has no more, would come too early."""
        turn = self._turn(group)
        due: list[tuple[corev1.Pod, str]] = []
        early: list[corev1.Pod] = []
        for slot in self._slots_not_taken(group, only):
            uid = slot.uid
            member = group.members[uid]
            if uid in answered or member.nomination == slot.node_name:
                continue
            if self.bind_slots.is_kept_back(uid):
                continue
            waits = uid in group.gated or uid in group.refused
            if turn is not None and slot.wave > turn:
                if member.nomination:
                    early.append(member.pod)
            elif member.nomination is not None or waits:
                due.append((member.pod, slot.node_name))
        if due and not self.bind_slots.lets_in(group):
            due.clear()
        return due, early

    def _slots_not_taken(self, group: Group, only: str | None) -> list[Slot]:
        """Of members that are not held, in the order in which they were planned. Lock held."""
        among = group.members if only is None else (only,)
        free = (uid for uid in among if uid in group.members and uid not in group.held and uid not in group.assigned)
        return sorted(filter(None, map(self._manager.slots.get, free)), key=lambda slot: slot.id)

    def tick(self) -> None:
        """About once a second."""
        with self._manager.lock:
            self.bind_slots.forget_past()
        self.send_those_that_wait()

    def send_those_that_wait(self) -> None:
        """Gang sets that waited for bind calls to come free, where that are enough now."""
        with self._manager.lock:
            groups = [group for gang_set in self.bind_slots.next_gang_sets() for group in gang_set]
            for group, uid in self.bind_slots.next_extras():
                if self._manager.slots.get(uid) is not None:
                    groups.append(group)
                else:
                    self.steering.activate(group.key, [group.members[uid].pod])
        self.steering.carry_out()
        for group in groups:
            self._manager.quarantine.for_gang(group.key, "arrivals", partial(self.dispatch, group), None)

    def in_waves(self, group: Group) -> bool:
        """Whether members of its gang set are sent one wave after the other. Lock held."""
        waves = self._manager.slots.waves
        return bool(waves) and any(each.key in waves for each in gang_set_of(self._manager, group))

    def _turn(self, group: Group, *, asked: bool = False) -> int | None:
        """The first wave of which not all are in place: its members and those before may come. None where all may.

        asked: kube-scheduler asks about the next one, so those that it was answered are in place for it.
        """
        if not self.in_waves(group):
            return None
        waves: set[int] = set()
        for each in gang_set_of(self._manager, group):
            there = each.assigned | each.held.keys() | (each.admitted if asked else set())
            slots = self._manager.slots.of_group(each.key)
            waves.update(slot.wave for slot in slots if slot.uid not in there and not slot.to_come)
            waves.update(
                member.turn for uid, member in each.members.items() if member.turn is not None and uid not in there
            )
        return min(waves, default=None)

    def too_early(self, group: Group, uid: str) -> bool:
        """Whether those that are to come before a planned member are not all in place. Lock held.

        kube-scheduler accepts it now perhaps, but would refuse one of those then.
        """
        slot = self._manager.slots.get(uid)
        turn = self._turn(group, asked=True) if slot is not None else None
        return slot is not None and turn is not None and slot.wave > turn

    def on_waiting_or_bound(self, pod: corev1.Pod) -> None:
        """A member is held or bound: the next wave may be due."""
        with self._manager.lock:
            group = self._manager.find(pod)
            if group is None or not self.in_waves(group):
                return
            gang_set = gang_set_of(self._manager, group)
        for each in gang_set:
            self.dispatch(each)

    def clear_nominations(self, group: Group) -> None:
        """Takes back the nominations that no place stands behind any more."""
        with self._manager.lock:
            self.decide_withdrawal(group)
        self.steering.carry_out()

    def decide_withdrawal(self, group: Group) -> None:
        """Likewise; what is decided is still to be carried out. Lock held."""
        lost = [uid for uid in group.nominated() if self._manager.slots.get(uid) is None and uid not in group.held]
        self.steering.clear_nominations(
            group.key, [group.members[uid].pod for uid in lost if not self._forget_sent(group, uid)]
        )

    def take_slot(self, group: Group, uid: str, offered: frozenset[str]) -> str | None:
        """The node of the slot that the member takes: its own if it can, else a free one of its shape whose turn has come, among the
        nodes offered. Lock held. The member that the slot was for is sent to the one that is free now; if none is, it waits for one.
        """
        manager, slots = self._manager, self._manager.slots
        own, turn = slots.get(uid), self._turn(group, asked=True)
        if own is not None and own.node_name in offered and (turn is None or own.wave <= turn):
            return own.node_name
        spec = manager.specs.of(group)
        if own is None and (uid in group.held or spec is None or schedules_alone(group, spec, uid)):
            return None
        slot = self._free_slot(group, uid, offered, turn)
        if slot is None:
            return None
        slots.give(slot, group.members[uid].info)
        group.members[uid].turn = None
        if own is None:
            manager.begun.follow(group, manager.specs.of(group))  # which says whether it is firm
        self._displace(group, slot)
        return slot.node_name

    def _free_slot(self, group: Group, uid: str, offered: frozenset[str], turn: int | None) -> Slot | None:
        """For the member: one that is kept for a member to come, else one whose member is not on its way there, else any. Lock held."""
        manager, info = self._manager, group.members[uid].info
        own = manager.slots.get(uid)
        fits = is_for_shape_of if own is not None else partial(manager.places.may_take, group)
        sent: Slot | None = None
        for slot in chain(manager.slots.to_come(group.key), manager.slots.of_group_on(group.key, offered)):
            other = group.members.get(slot.uid)
            if slot.uid == uid or slot.node_name not in offered or (other is not None and other.state in TAKING):
                continue
            if own is not None and (slot.ranks, slot.kind) != (own.ranks, own.kind):
                continue
            on_its_way = other is not None and other.nomination is not None
            if (turn is not None and slot.wave > turn) or (on_its_way and sent is not None) or not fits(slot, info):
                continue
            if not on_its_way:
                return slot
            sent = slot
        return sent

    def _displace(self, group: Group, taken: Slot) -> None:
        """Another member has taken the slot of this one. Lock held."""
        member = group.members.get(taken.uid)
        if member is None:
            return
        if self._manager.slots.get(taken.uid) is None:  # it is one more than the gang needs
            if member.nomination is None and taken.uid in group.refused - group.gated:
                self.steering.activate(group.key, [member.pod])
            group.place_lost(taken.uid)
            self._manager.queue.move_to_active((group.key,))
            self._displaced.add(group.key)
        elif member.nomination is not None:
            self._displaced.add(group.key)


def waves_of(placement: planner.Placement) -> list[frozenset[str]]:
    """The order of arrival that comes with a placement; empty where no member needs a sibling in place."""
    return list(placement.waves) if len(placement.waves) > 1 else []


def needs_siblings(info: PodInfo) -> bool:
    """Whether kube-scheduler's filters look at where its siblings are: required affinity, or a spread that must hold."""
    spread = info.pod.spec.topology_spread_constraints
    return bool(info.required_affinity_terms) or any(
        constraint.when_unsatisfiable == "DoNotSchedule" for constraint in spread
    )


def cannot_be_woken(gang_set: Sequence[Group], waves: Sequence[frozenset[str]], caller: str) -> bool:
    """Whether a member that is not gated needs another that will only be held: kube-scheduler's own filters refuse it
    until then, and no patch of ours wakes it after. One whose term matches itself passes as the first of its kind; the
    caller has passed.
    """
    late = (uid for wave in waves[1:] for uid in wave)
    return any(
        uid != caller
        and uid not in group.gated
        and not all(term.matches(member.pod, {}) for term in member.info.required_affinity_terms)
        for uid in late
        for group in gang_set
        if (member := group.members.get(uid)) is not None
    )
