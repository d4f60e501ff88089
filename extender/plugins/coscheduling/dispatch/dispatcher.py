"""Dispatches members of planned gangs to kube-scheduler, wave by wave: freed of our gate, nominated, or both.

PlanningRounds plans and the slots keep the places; this says which members may come now. kube-scheduler judges one pod at a
time, with the siblings that it has assumed in place, so a member that needs another (required affinity, spread) is sent
once that one is held or bound. Alike members own slots, not names: the member that comes takes a place that was offered.
kube-scheduler has no counterpart; its own gang cycle (alpha in 1.36) judges all members in one turn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.bind_slots import BindSlots
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot


class Dispatcher:
    """Steering is asked outside the manager's lock, and returns at once. steering: for all that decide of a gang's members."""

    def __init__(self, manager: PodGroupManager, dependencies: CoschedulingDependencies, bind_slots: BindSlots) -> None:
        self._manager = manager
        self._with = dependencies
        self.bind_slots = bind_slots
        self.steering = OrderedSteering(dependencies.steering, manager.quarantine)

    def dispatch(self, group: Group, caller: str = "") -> None:
        """Steers the members whose turn it is: those that wait for us, and those whose place has moved. One that is being
        answered this moment needs no patch: the caller, and members whose filter call waits for the plan.
        """
        offers_all = self._with.offers_all()
        with self._manager.lock:
            gang_set = gang_set_of(self._manager, group)
            answered = {uid for each in gang_set for uid, call in each.calls.items() if call.waiting} | {caller}
            places, early = self._due(group, answered)
            alone = {places[0][0].uid} if len(places) == 1 else set()
            quiet = self._may_come_unbidden(group, answered | alone)
            early = [pod for pod in early if not self._forget_sent(group, pod.uid)]
            on_their_way = {
                pod.uid
                for pod, _ in places
                if group.members[pod.uid].ungated_without_nomination and pod.uid not in group.refused
            }
            unnamed = {pod.uid for pod, _ in places if self._needs_no_name(group, pod.uid, offers_all)}
            for pod, node_name in places:
                member = group.members[pod.uid]
                member.nomination = node_name
                member.ungated_without_nomination = pod.uid in unnamed
                member.rejection_facts = ""
                group.happened(pod.uid, MemberEvent.DISPATCHED)
            group.moved = False
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

    def _needs_no_name(self, group: Group, uid: str, offers_all: bool) -> bool:
        """Whether a member finds its place without a nomination: our filter says where. Lock held.

        A gate once gone wakes no pod: a member that has come and was refused is woken by its nomination.
        """
        if uid in group.refused:
            return False
        member = group.members[uid]
        first = uid in group.gated and member.nomination is None
        return member.ungated_without_nomination or (first and offers_all)

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
        if not group.waves:
            return False
        gang_set = gang_set_of(self._manager, group)
        return any(
            each.members.keys() - each.assigned() - each.held.keys() - each.answered - each.gated - but
            for each in gang_set
        )

    def send_after_answer(self, group: Group, caller: str) -> None:
        """Steers those whose place has changed hands while the caller was given its own.

        A caller that came unnamed and was refused has a place perhaps, and is woken by its nomination.
        """
        with self._manager.lock:
            member = group.members.get(caller)
            nominate = member is not None and member.ungated_without_nomination and caller in group.refused
            moved = group.moved
        if nominate:
            self.dispatch(group)
        elif moved:
            self.dispatch(group, caller)

    def _due(self, group: Group, answered: Collection[str]) -> tuple[list[tuple[corev1.Pod, str]], list[corev1.Pod]]:
        """The members to nominate, and where; and those whose nomination, to a place that it has no more, would come too early."""
        invited = self._invited(group)
        due: list[tuple[corev1.Pod, str]] = []
        early: list[corev1.Pod] = []
        for slot in self._manager.slots.of_group(group.key):
            uid = slot.uid
            member = group.members.get(uid)
            if member is None or uid in answered or uid in group.held or member.nomination == slot.node_name:
                continue
            if self.bind_slots.is_kept_back(uid):
                continue
            waits = uid in group.gated or uid in group.refused
            if invited is not None and uid not in invited:
                if member.nomination:
                    early.append(member.pod)
            elif member.nomination is not None or waits:
                due.append((member.pod, slot.node_name))
        if due and not self.bind_slots.lets_in(group):
            due.clear()
        return due, early

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

    def _invited(self, group: Group, *, asked: bool = False) -> set[str] | None:
        """The members whose wave has come; None for all.

        asked: kube-scheduler asks about the next one, so those that it was answered are in place for it.
        """
        if not group.waves:
            return None
        gang_set = gang_set_of(self._manager, group)
        coming = {uid for each in gang_set for uid in each.members.keys() - each.assigned() - each.held.keys()}
        if asked:
            coming -= {uid for each in gang_set for uid in each.answered}
        invited: set[str] = set()
        for wave in group.waves:
            invited |= wave
            if wave & coming:
                return invited
        if not asked:
            group.waves.clear()
        return None

    def too_early(self, group: Group, uid: str) -> bool:
        """Whether those that are to come before a planned member are not all in place. Lock held.

        kube-scheduler accepts it now perhaps, but would refuse one of those then.
        """
        invited = self._invited(group, asked=True)
        return invited is not None and uid not in invited and self._manager.slots.get(uid) is not None

    def on_waiting_or_bound(self, pod: corev1.Pod) -> None:
        """A member is held or bound: the next wave may be due."""
        with self._manager.lock:
            group = self._manager.find(pod)
            if group is None:
                return
            if not group.waves:
                return
            gang_set = gang_set_of(self._manager, group)
        for each in gang_set:
            self.dispatch(each)

    def advance(self, group: Group, uid: str, offered: frozenset[str]) -> None:
        """The member that is being asked about takes the turn of an alike sibling, where its own would come later. Lock held."""
        own = self._manager.slots.get(uid)
        if own is not None and self.too_early(group, uid):
            self.take_slot(group, own, offered)

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

    def take_slot(self, group: Group, own: Slot, offered: frozenset[str]) -> str | None:
        """A free place of an alike sibling among the nodes offered, in exchange for the member's own. Lock held.

        Where members come in waves: the place, and the turn, of one whose turn it is.
        """
        slots = self._manager.slots
        invited = self._invited(group, asked=True)
        taken = group.held.keys() | group.answered | {own.uid}
        shape = planner.shape_of(own.pod_info)
        for other in slots.of_group(group.key):
            free = other.uid not in taken and (invited is None or other.uid in invited)
            if free and other.node_name in offered and planner.shape_of(other.pod_info) == shape:
                slots.reserve(replace(own, node_name=other.node_name))
                slots.reserve(replace(other, node_name=own.node_name))
                group.moved = group.moved or group.members[other.uid].nomination is not None
                self._trade_turns(group, own.uid, other.uid)
                return other.node_name
        return None

    def _trade_turns(self, group: Group, one: str, other: str) -> None:
        trade = {one: other, other: one}
        for each in gang_set_of(self._manager, group) if group.waves else ():
            each.waves = [frozenset(trade.get(uid, uid) for uid in wave) for wave in each.waves]


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
