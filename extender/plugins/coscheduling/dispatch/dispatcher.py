"""Dispatches members of planned gangs to kube-scheduler, wave by wave: freed of our gate, nominated, or both.

PlanningRounds plans and the slots keep the places; Dispatcher decides which members kube-scheduler may schedule now.
kube-scheduler evaluates one pod at a time, against the siblings that it has assumed: a member that needs a sibling in place
(required affinity, spread) is dispatched once that sibling is held or bound. A member whose filter call comes takes any free slot
of its shape among the nodes offered. No counterpart in kube-scheduler: its own gang cycle (alpha in 1.36) evaluates all members
in one turn.
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
    """steering: shared by all code that decides on a gang's members. It is called outside the manager's lock, and returns at once."""

    def __init__(self, manager: PodGroupManager, dependencies: CoschedulingDependencies, bind_slots: BindSlots) -> None:
        self._manager = manager
        self._with = dependencies
        self.bind_slots = bind_slots
        self._displaced: set[str] = set()  # keys of groups in which a sibling took a member's slot; the lock guards it
        self._sent_back: set[str] = set()  # UIDs of members to nominate once their filter call is refused; likewise
        self.steering = OrderedSteering(dependencies.steering, manager.quarantine)

    def dispatch(self, group: Group, caller: str = "", only: str | None = None) -> None:
        """Dispatches the members of the current wave: those that are gated or were refused, and those whose slot has moved.

        Members that have a filter call in progress need no patch: the caller, and those whose call waits for the plan.
        only: the UID of the one member to dispatch, where the gang gathers and its siblings were dispatched before.
        """
        offers_all, offers_few = self._with.offers_all(), self._with.offers_few()
        with self._manager.lock:
            gang_set = gang_set_of(self._manager, group)
            answered = {uid for each in gang_set for uid, call in each.calls.items() if call.waiting} | {caller}
            places, early = self._due(group, answered, only)
            alone = {places[0][0].uid} if len(places) == 1 else set()
            no_nominations = self._may_come_undispatched(group, answered | alone)
            early = [pod for pod in early if not self._forget_dispatch(group, pod.uid)]
            on_their_way = {
                pod.uid
                for pod, _ in places
                if group.members[pod.uid].ungated_without_nomination and pod.uid not in group.refused
            }
            without_nomination = {
                pod.uid
                for pod, _ in places
                if self._needs_no_nomination(group, pod.uid, offers_all=offers_all, offers_few=offers_few)
            }
            for pod, node_name in places:
                member = group.members[pod.uid]
                member.nomination = node_name
                member.ungated_without_nomination = pod.uid in without_nomination
                member.rejection_facts = ""
                group.happened(pod.uid, MemberEvent.DISPATCHED)
            self._displaced.discard(group.key)
            places = [(pod, node_name) for pod, node_name in places if pod.uid not in on_their_way]
            to_ungate = {
                pod.uid for pod, _ in places if pod.uid in without_nomination or (no_nominations and pod.gated)
            }
            others = [(pod, node_name) for pod, node_name in places if pod.uid not in to_ungate]
            self.steering.clear_nominations(group.key, early)
            self.steering.ungate(group.key, [pod for pod, _ in places if pod.uid in to_ungate])
            if no_nominations:
                self.steering.activate(group.key, [pod for pod, _ in others])
            else:
                self.steering.nominate(group.key, others)
        self.steering.carry_out()

    def _needs_no_nomination(self, group: Group, uid: str, *, offers_all: bool, offers_few: bool) -> bool:
        """Whether the member finds its slot without a nomination: our filter answers with the slot's node, or moves the slot to one that is
        offered. Removing the gate moves a pod to the active queue once: one that was refused since needs the nomination. Lock held."""
        if uid in group.refused:
            return False
        member = group.members[uid]
        if member.ungated_without_nomination or uid not in group.gated or member.nomination is not None:
            return member.ungated_without_nomination
        slot = self._manager.slots.get(uid)
        return offers_all or (offers_few and slot is not None and is_free_to_move(self._manager, group, slot))

    def _forget_dispatch(self, group: Group, uid: str) -> bool:
        """Returns whether the member was dispatched without a nomination: then there is none to clear. Lock held."""
        group.happened(uid, MemberEvent.NOMINATION_WITHDRAWN)
        member = group.members[uid]
        without_nomination = member.ungated_without_nomination
        member.forget_dispatch()
        return without_nomination

    def _may_come_undispatched(self, group: Group, but: set[str]) -> bool:
        """Whether the gang goes in waves, and kube-scheduler may try a member without our dispatching it: one that is not gated, and
        is not in `but`. Lock held.

        No member is nominated then. kube-scheduler counts nominated siblings against a pod and never for it: its in-tree filters would
        refuse the member that comes, and no patch of ours would have it retried.
        """
        return self.in_waves(group) and any(
            each.members.keys() - each.assigned - each.held.keys() - each.admitted - each.gated - but
            for each in gang_set_of(self._manager, group)
        )

    def send_after_answer(self, group: Group, caller: str) -> None:
        """Dispatches members again after the caller's filter call: siblings whose slots the caller took go to the slots that are free now.

        A caller that had come without a nomination and was refused is nominated if it has a slot, so that kube-scheduler retries it;
        so is a member of which `send_back` was called.
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
        """(Members to dispatch now, each with the node of its slot; those of later waves with a nomination to clear). Lock held."""
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
        """Slots of members that are neither held nor bound, in the order in which they were planned. only: of this member. Lock held."""
        among = group.members if only is None else (only,)
        free = (uid for uid in among if uid in group.members and uid not in group.held and uid not in group.assigned)
        return sorted(filter(None, map(self._manager.slots.get, free)), key=lambda slot: slot.id)

    def tick(self) -> None:
        """About once a second."""
        with self._manager.lock:
            self.bind_slots.forget_past()
        self.send_those_that_wait()

    def send_those_that_wait(self) -> None:
        """Dispatches gang sets that waited until enough bind calls are free, and extra members that waited for one."""
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
        """Whether the members of its gang set are dispatched wave by wave. Lock held."""
        waves = self._manager.slots.waves
        return bool(waves) and any(each.key in waves for each in gang_set_of(self._manager, group))

    def _turn(self, group: Group, *, asked: bool = False) -> int | None:
        """The first wave with members that are not in place: members up to this wave may be scheduled now. None where all may.

        A member is in place once it is held or bound. asked: on a filter call; members that Filter has admitted are in place then, too,
        as kube-scheduler has assumed them.
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
        """Whether the member has a slot, and members of an earlier wave are not in place yet: kube-scheduler might accept it now, and
        would then refuse one of those. Lock held."""
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
        """Clears the nominations of members that have no slot any more."""
        with self._manager.lock:
            self.decide_withdrawal(group)
        self.steering.carry_out()

    def decide_withdrawal(self, group: Group) -> None:
        """Decides what clear_nominations then carries out. Lock held."""
        lost = [uid for uid in group.nominated() if self._manager.slots.get(uid) is None and uid not in group.held]
        self.steering.clear_nominations(
            group.key, [group.members[uid].pod for uid in lost if not self._forget_dispatch(group, uid)]
        )

    def take_slot(self, group: Group, uid: str, offered: frozenset[str]) -> str | None:
        """Returns the node of the slot that the member takes, among the nodes offered: its own slot, if its wave may be scheduled now,
        else a free slot of the same shape in a wave that may. Lock held.

        The sibling that the taken slot was for gets this member's own slot; without one, it waits for the next plan.
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
            manager.begun.follow(group, manager.specs.of(group))  # decides whether the slot is firm
        self._displace(group, slot)
        return slot.node_name

    def _free_slot(self, group: Group, uid: str, offered: frozenset[str], turn: int | None) -> Slot | None:
        """One kept for a member to come, else a sibling's that is not nominated there, else any sibling's. Lock held."""
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
        """Updates the sibling that the taken slot was for: it has another slot now, or none. Lock held."""
        member = group.members.get(taken.uid)
        if member is None:
            return
        if self._manager.slots.get(taken.uid) is None:  # the gang has one member more than it needs
            if member.nomination is None and taken.uid in group.refused - group.gated:
                self.steering.activate(group.key, [member.pod])
            group.place_lost(taken.uid)
            self._manager.queue.move_to_active((group.key,))
            self._displaced.add(group.key)
        elif member.nomination is not None:
            self._displaced.add(group.key)


def waves_of(placement: planner.Placement) -> list[frozenset[str]]:
    """The waves in which a placement's members are dispatched; empty where no member needs a sibling in place."""
    return list(placement.waves) if len(placement.waves) > 1 else []


def needs_siblings(info: PodInfo) -> bool:
    """Whether kube-scheduler's filters look at where its siblings are: required affinity, or a spread that must hold."""
    spread = info.pod.spec.topology_spread_constraints
    return bool(info.required_affinity_terms) or any(
        constraint.when_unsatisfiable == "DoNotSchedule" for constraint in spread
    )


def cannot_be_woken(gang_set: Sequence[Group], waves: Sequence[frozenset[str]], caller: str) -> bool:
    """Whether a member of a later wave might be refused by kube-scheduler's in-tree filters and not be retried.

    That is one without a gate that needs a sibling in place: the filters refuse it until the sibling is held, which is no event for
    kube-scheduler, and no patch of ours would have it retried. A member whose own required affinity term selects it passes as the
    first of its kind; the caller has passed already.
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
