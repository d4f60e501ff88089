"""PreFilter's gates: whether a gang may start now, and where each member goes.

In order: denied before -> enough siblings -> none held back by a foreign gate -> permitted before -> minResources -> plan.
Nothing is held for a gang that has no plan, so two gangs can never block each other.
scheduler-plugins: pkg/coscheduling/core/core.go (PreFilter)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from extender import metrics
from extender.api import corev1
from extender.framework.listers import NodeInfoLister, Nominator
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.arrivals import EXCLUDED_SECONDS, Arrivals, cannot_be_woken, needs_siblings, waves_of
from extender.plugins.coscheduling.collaborators import REJECTED, Collaborators, Verdict
from extender.plugins.coscheduling.gang_observer import GangObserver
from extender.plugins.coscheduling.gates import shut_gate
from extender.plugins.coscheduling.ledger import Reservation
from extender.plugins.coscheduling.pod_group import GroupSpec
from extender.plugins.coscheduling.pod_group_manager import Group, PodGroupManager
from extender.plugins.coscheduling.stops import Reason, Stop, stop_of_plan

log = logging.getLogger(__name__)

ATTEMPTS = 3  # plans for one call: each leaves out what kube-scheduler has refused so far


class Admission:
    """Lock order: _planning, then the manager's lock. Planning itself runs under _planning only, one plan at a time."""

    def __init__(
        self,
        manager: PodGroupManager,
        collaborators: Collaborators,
        nominator: Nominator,
        *,
        denied_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._manager = manager
        self._with = collaborators
        self._nominator = nominator
        self._denied_seconds = denied_seconds
        self._lease_seconds = lease_seconds
        self._planning = threading.Lock()
        self.arrivals = Arrivals(manager, collaborators)
        self.observer = GangObserver(manager, collaborators)

    def admit(self, pod: corev1.Pod, offered: frozenset[str]) -> tuple[str | None, Status]:
        """The node that is planned for a member, None where any will do; or why it has to wait.

        offered: the nodes that kube-scheduler has found feasible for this pod.
        """
        manager = self._manager
        with manager.lock:
            group = manager.group_of(pod)
            if group is None:
                return None, SUCCESS
            status = self._gates(group, pod)
            if not status.success:
                self._refuse(group, pod)
                group.told[pod.uid] = len(manager.siblings(group, pod.spec.scheduler_name))
                return None, status
            place = self._place(group, pod, offered)
            passes = place is not None or not self._needs_plan(group, pod)
            if passes:
                group.refused.discard(pod.uid)
            moved = group.moved
        if moved:
            self.arrivals.send(group, caller=pod.uid)
        return (place, SUCCESS) if passes else self._plan_for(group, pod, offered)

    def _gates(self, group: Group, pod: corev1.Pod) -> Status:
        manager = self._manager
        cause = manager.denied.get(group.key)
        if cause is not None:
            return unresolvable(messages.denied(group.key, self._denied_seconds, cause))
        gate = shut_gate(manager, group, pod.spec.scheduler_name, pod.name)
        return unresolvable(gate.refusal) if gate is not None else SUCCESS

    def _place(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> str | None:
        """The member's own place, or, where that is not offered, the free one of an alike sibling."""
        ledger = self._manager.ledger
        own = ledger.get(pod.uid)
        if own is None:
            node = group.held.get(pod.uid)
            return node if node in offered else None
        if own.node_name in offered:
            return own.node_name
        slot = self.arrivals.take_slot(group, own, offered)
        if slot is not None:
            return slot
        if len(offered) > 1:
            until = self._manager.clock() + EXCLUDED_SECONDS
            group.excluded[pod.uid, own.node_name] = until
            ledger.release(pod.uid)
        return None

    def _needs_plan(self, group: Group, pod: corev1.Pod) -> bool:
        """An extra member of a gang that has its quorum passes as a single pod."""
        spec = self._manager.spec(group)
        if spec is None:
            return False
        return len(self._placed(group) - {pod.uid}) < spec.min_member

    def _placed(self, group: Group) -> set[str]:
        planned = {reservation.uid for reservation in self._manager.ledger.of_group(group.key)}
        return group.assigned() | set(group.held) | planned

    def _plan_for(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> tuple[str | None, Status]:
        """Plans those that come first, then the pod's own group, until the pod has a place that was offered."""
        manager = self._manager
        allowed = {pod.uid: offered} if len(offered) > 1 or not pod.status.nominated_node_name else {}
        with self._planning:
            self._plan_waiting(before=group)
            for _ in range(ATTEMPTS):
                status = self._plan_group(group, pod.spec.scheduler_name, allowed, caller=pod.uid)
                with manager.lock:
                    if not status.success:
                        self._refuse(group, pod)
                        return None, status
                    place = self._place(group, pod, offered)
                    if place is not None:
                        group.refused.discard(pod.uid)
                        return place, SUCCESS
                    if not self._needs_plan(group, pod):
                        group.refused.discard(pod.uid)
                        return None, SUCCESS
            with manager.lock:
                self._refuse(group, pod)
                group.stop(Stop(Reason.REFUTED_BY_SCHEDULER, messages.PLACE_NOT_OFFERED, manager.clock()))
            return None, unresolvable(messages.PLACE_NOT_OFFERED)

    def _refuse(self, group: Group, pod: corev1.Pod) -> None:
        """kube-scheduler parks it, and clears its nomination. Lock held."""
        group.refused.add(pod.uid)
        if pod.uid in group.steered:
            group.steered[pod.uid] = ""

    def plan_waiting(self) -> None:
        """Plans every group that waits and may fit now, in order, and steers the members that are parked."""
        with self._planning:
            self._plan_waiting(before=None)

    def _plan_waiting(self, before: Group | None) -> None:
        """Only groups that something has happened to: the others were refused on no worse a cluster."""
        manager = self._manager
        if not self._with.may_plan():
            return
        with manager.lock:
            limit = manager.order(before) if before is not None else None
            touched = [group for key in manager.dirty if (group := manager.groups.get(key)) and group is not before]
            touched.sort(key=manager.order)
        for group in touched:
            with manager.lock:
                if limit is not None and manager.order(group) > limit:
                    return
                manager.dirty.discard(group.key)
                scheduler_name = self._waits(group)
            if scheduler_name is not None:
                self._plan_group(group, scheduler_name, {}, caller="")
            else:
                self.arrivals.withdraw(group)

    def _waits(self, group: Group) -> str | None:
        """The scheduler of the members that a plan would help; None where there are none, or the gates are shut. Lock held."""
        manager = self._manager
        if group.key in manager.denied:
            return None
        unplaced = ((group.refused | group.gated) & group.members.keys()) - self._placed(group)
        pods = [pod for uid in unplaced if self._with.ours(pod := group.members[uid].pod)]
        if not pods:
            return None
        pod = min(pods, key=lambda pod: pod.name)
        if not self._gates(group, pod).success:
            return None
        if not self._needs_plan(group, pod) and not unplaced & group.gated:
            return None
        return pod.spec.scheduler_name

    def _plan_group(
        self, group: Group, scheduler_name: str, allowed: dict[str, frozenset[str]], *, caller: str
    ) -> Status:
        """One plan of one group: noted in the ledger and steered, or noted as denied before anybody hears of it."""
        manager = self._manager
        epoch = manager.epoch  # before the snapshot: what comes free after it voids a denial
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            spec = manager.spec(group)
            if spec is None:
                return unresolvable(messages.POD_GROUP_NOT_FOUND)
            request = self.request(group, spec, scheduler_name, allowed, caller=caller)
            gap = (
                ()
                if group.key in manager.permitted or not request.needed
                else self._resource_gap(group, spec, snapshot)
            )
        if gap:
            return self._deny(group, Stop(Reason.MIN_RESOURCES, messages.resource_gap(gap)), epoch)
        nodes = snapshot.list()
        result = self._with.offload(planner.plan, nodes, request, self._with.judge)
        if not isinstance(result, planner.Placement):
            if self._let_go(group):  # perhaps the gang fits otherwise than beside the places that it still has
                status = self._plan_group(group, scheduler_name, allowed, caller=caller)
                if not status.success:
                    self._room_came_free()  # for others
                return status
            stop = stop_of_plan(spec.min_member, result)
            log.info("gang refused group=%s reason=%s message=%r", group.key, stop.reason, stop.message)
            return self._deny(group, stop, epoch)
        waves = waves_of(result)
        with manager.lock:
            stuck = cannot_be_woken(group, waves, caller)
        if stuck:
            return self._deny(group, Stop(Reason.NEEDS_GATE, messages.needs_gate(manager.gate)), epoch)
        self._note(group, request, result, waves, caller)
        return SUCCESS

    def request(
        self,
        group: Group,
        spec: GroupSpec,
        scheduler_name: str,
        allowed: dict[str, frozenset[str]],
        *,
        caller: str = "",
    ) -> planner.Request:
        """What is to be planned for the group now. Lock held."""
        placed = self._placed(group)
        members = [info for info in self._manager.plannable(group, scheduler_name) if info.pod.uid not in placed]
        return planner.Request(
            members=sorted(members, key=lambda info: (info.pod.uid != caller, info.pod.name)),
            needed=max(0, spec.min_member - len(placed)),
            allowed=allowed,
            excluded=self._excluded(group),
            promised=self._promised(group),
        )

    def _room_came_free(self) -> None:
        with self._manager.lock:
            self._manager.room_came_free()
        self._with.submit("plan", self.plan_waiting)

    def _let_go(self, group: Group) -> bool:
        """Gives up the group's places but those of held members. Returns whether there were any."""
        with self._manager.lock:
            uids = [r.uid for r in self._manager.ledger.of_group(group.key) if r.uid not in group.held]
            self._manager.release_places(group, uids)
            group.waves.clear()
            group.planned = False
            group.refused.update(uid for uid in uids if uid not in group.gated)
        return bool(uids)

    def _deny(self, group: Group, stop: Stop, epoch: int) -> Status:
        """Noted before anybody hears of it; not noted, but looked at again, if something came free meanwhile."""
        cause = stop.message
        with self._manager.lock:
            group.stop(replace(stop, since=self._manager.clock()))
            if self._manager.epoch == epoch:
                self._manager.denied[group.key] = cause
            else:
                self._with.submit("plan", self.plan_waiting)
                self._manager.dirty.add(group.key)
            self._manager.permitted.pop(group.key, None)
            pod_group = group.pod_group
            gated = [info.pod for uid in group.gated if not needs_siblings(info := group.members[uid])]
        metrics.podgroup_schedule_attempts.labels("unschedulable").inc()
        verdict = Verdict(False, REJECTED, cause, stop.reason)
        if pod_group is None and gated:
            self._with.verdicts.decided(None, group.key, verdict, min(gated, key=lambda pod: pod.name))
        else:
            self._with.verdicts.decided(pod_group, group.key, verdict)
        self.arrivals.withdraw(group)
        if gated and self._with.ungate_refused:
            self._with.steering.ungate(gated)
        return unresolvable(messages.denied(group.key, self._denied_seconds, cause))

    def _excluded(self, group: Group) -> frozenset[tuple[str, str]]:
        now = self._manager.clock()
        group.excluded = {pair: until for pair, until in group.excluded.items() if until > now}
        return frozenset(group.excluded)

    def _promised(self, group: Group) -> list[tuple[str, PodInfo]]:
        """Places that hold against this group: its own, others' of equal or higher priority, and nominations likewise."""
        priority = group.priority
        return [
            (reservation.node_name, reservation.pod_info)
            for reservation in self._manager.ledger
            if reservation.group == group.key or reservation.priority >= priority
        ] + self._nominated(group, priority)

    def _nominated(self, group: Group, priority: int) -> list[tuple[str, PodInfo]]:
        """Nominations made by others; ours are in the ledger."""
        ledger, groups = self._manager.ledger, self._manager.groups
        ours = {uid for group in groups.values() for uid in group.steered}
        return [
            (node_name, PodInfo(pod))
            for node_name, pod in self._nominator_pods()
            if pod.priority >= priority
            and ledger.get(pod.uid) is None
            and pod.uid not in ours
            and pod.uid not in group.members
        ]

    def _nominator_pods(self) -> Iterable[tuple[str, corev1.Pod]]:
        for name in self._nominator.nominated_nodes():
            for pod in self._nominator.nominated_pods_for_node(name):
                yield name, pod

    def _resource_gap(self, group: Group, spec: GroupSpec, snapshot: NodeInfoLister) -> tuple[str, ...]:
        """The names of what the whole cluster has too little of for minResources, less what placed members hold."""
        if spec.min_resources is None:
            return ()
        placed = self._placed(group)
        required = spec.min_resources.clone()
        for uid in placed:
            if uid in group.members:
                required.subtract(group.members[uid].requests)
        free = _free(snapshot.list())
        names = ["cpu", "memory", "ephemeral-storage", *required.scalar]
        return tuple(name for name in names if required.amount(name) > max(0, free.amount(name)))

    def _note(
        self,
        group: Group,
        request: planner.Request,
        result: planner.Placement,
        waves: list[frozenset[str]],
        caller: str,
    ) -> None:
        manager = self._manager
        expires = manager.clock() + self._lease_seconds
        with manager.lock:
            for info in request.members:
                node_name = result.nodes.get(info.pod.uid)
                if node_name is None or info.pod.uid not in group.members:
                    continue
                manager.ledger.reserve(Reservation(info, group.key, node_name, expires))
            group.planned = True
            group.waves[:0] = waves
            group.repatched.clear()
            group.stopped = None
            manager.denied.pop(group.key, None)
            manager.permitted[group.key] = True
            displaced = self._displaced(group, result)
        log.info("gang planned group=%s members=%d", group.key, len(result.nodes))
        metrics.podgroup_schedule_attempts.labels("planned").inc()
        self.arrivals.send(group, caller)
        self.arrivals.withdraw(group)
        for key in displaced:
            self.drop_plan(key)

    def _displaced(self, group: Group, result: planner.Placement) -> set[str]:
        """Groups of lower priority with a promise on a node that this plan uses: they are planned again."""
        ledger = self._manager.ledger
        return {
            other.group
            for node_name in set(result.nodes.values())
            for other in ledger.on_node(node_name)
            if other.group != group.key and other.priority < group.priority
        }

    def drop_plan(self, key: str) -> None:
        """Takes back the places of a group that are not held. Our nominations go with the next look, if no plan renews them."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return
            if self._let_go(group):
                manager.room_came_free()
            manager.forget_notes(key)
            manager.dirty.add(key)
        self._with.submit("plan", self.plan_waiting)

    def wake_told_otherwise(self) -> None:
        """Parked members whose refusal names another number of siblings than there are by now, so that it is put right.

        Called about once a second: a gang that is being created does not wake all its members for each new one.
        """
        manager = self._manager
        pods: list[corev1.Pod] = []
        with manager.lock:
            for group in manager.groups.values():
                spec = manager.spec(group) if group.told else None
                if spec is None:
                    continue
                for uid, number in list(group.told.items()):
                    info = group.members.get(uid)
                    if info is None or uid not in group.refused:
                        del group.told[uid]
                    elif number != len(manager.siblings(group, info.pod.spec.scheduler_name)) < spec.min_member:
                        del group.told[uid]
                        pods.append(info.pod)
        self._with.steering.wake(pods)

    def expired(self) -> list[str]:
        """Groups of which a member did not come for its place in time."""
        manager = self._manager
        now = manager.clock()
        with manager.lock:
            return sorted(
                {
                    reservation.group
                    for reservation in manager.ledger
                    if reservation.expires <= now
                    and (group := manager.groups.get(reservation.group)) is not None
                    and reservation.uid not in group.held
                }
            )


def _free(nodes: Sequence[NodeInfo]) -> Resource:
    """What all nodes together have left; an over-committed node does not count against the others."""
    total = Resource()
    for node in nodes:
        if node.unschedulable:
            continue
        left = node.allocatable.clone()
        left.subtract(node.requested)
        total.milli_cpu += max(0, left.milli_cpu)
        total.memory += max(0, left.memory)
        total.ephemeral_storage += max(0, left.ephemeral_storage)
        for name, amount in left.scalar.items():
            total.scalar[name] = total.scalar.get(name, 0) + max(0, amount)
    return total
