"""The shadow: nodes that are kept free for the gang that has waited longest in vain, so that smaller pods that go past it do
not keep it waiting for ever.

Younger gangs and single pods may pass a gang that does not fit now. Once it has waited for shadowAfterSeconds it gets a
shadow: on these nodes nobody of equal or lower priority is admitted until it starts or shadowMaxSeconds have passed; then
the next has its turn. One at a time. ReservedRoom keeps single pods out, UnitPlanning other gangs; the tick begins and ends.
No counterpart upstream; batch schedulers call the like a reservation for the first job in line (EASY backfill).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.framework.listers import NodeInfoLister
from extender.framework.node_selector import METADATA_NAME
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.collaborators import Collaborators, Verdict
from extender.plugins.coscheduling.scheduling.gates import shut_gate
from extender.plugins.coscheduling.scheduling.plan_request import PlanRequests
from extender.plugins.coscheduling.scheduling.shadow_nodes import DAEMON_SET, Choice, choose_nodes, controlled_by
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.phases import Phase, phase_of
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.stops import Reason, Stop
from extender.plugins.coscheduling.state.units import unit_of

log = logging.getLogger(__name__)

NO_NODES: frozenset[str] = frozenset()
SHORT_OF_ROOM = frozenset((Reason.INSUFFICIENT_RESOURCES, Reason.MIN_RESOURCES, Reason.TOPOLOGY_UNSATISFIABLE))
"""What room that comes free can change; a node selector that nothing matches is no reason to keep nodes free."""
PAUSE_SECONDS = 15.0
"""Between two shadows: whoever was refused for one is woken by its end, and tried before the next begins, after kube-scheduler's
longest back-off at the latest. Else a few gangs that never fit would keep the nodes idle for good, in turn."""
AGAIN_SECONDS = 30.0  # until a gang for which no nodes were found is looked at again, at least
SHADOW = "GangShadow"  # the event's reason
BEGUN, STARTED, EXPIRED, GONE = "begun", "started", "expired", "gone"


@dataclass(frozen=True, slots=True)
class Shadow:
    """since, until: seconds of the clock. keys: of the groups that it is for, which start together."""

    group: str
    keys: frozenset[str]
    priority: int
    domain: str
    nodes: frozenset[str]
    since: float
    until: float


class Shadows:
    """The manager's lock guards everything here; the nodes are chosen outside of it, by the tick's thread.

    planning: held around that, since the judge serves one plan at a time; taken before the manager's lock.
    """

    def __init__(
        self,
        manager: PodGroupManager,
        collaborators: Collaborators,
        requests: PlanRequests,
        look: Callable[[], None],
        planning: AbstractContextManager[object],
    ) -> None:
        self._manager = manager
        self._with = collaborators
        self._rules = collaborators.shadow
        self._requests = requests
        self._look = look
        self._planning = planning
        self.current: Shadow | None = None
        self._waits_since: dict[str, float] = {}  # groups that lack room -> since when, or since their last turn
        self._turns: dict[str, int] = {}  # how many shadows they have had since then
        self._not_before: dict[str, float] = {}
        self._ended = False
        self._pause_until = -math.inf

    # What is kept from whom; under the manager's lock

    def kept_from(self, pod: corev1.Pod) -> frozenset[str]:
        """The nodes where a single pod is not admitted now. A DaemonSet's pod passes: it can run nowhere else."""
        shadow = self.current
        if shadow is None or pod.priority > shadow.priority or is_pinned(pod):
            return NO_NODES
        group = self._manager.find(pod)
        return NO_NODES if group is not None and group.key in shadow.keys else shadow.nodes

    def kept_from_unit(self, unit: Sequence[Group]) -> frozenset[str]:
        """A gang of which a part runs already is completed, whoever waits."""
        shadow = self.current
        if shadow is None or any(group.key in shadow.keys or self._manager.begun(group) for group in unit):
            return NO_NODES
        return shadow.nodes if min(map(self._manager.priority_of, unit)) <= shadow.priority else NO_NODES

    def without(self, request: planner.Request, kept: frozenset[str], snapshot: NodeInfoLister) -> planner.Request:
        """The same request, with the nodes that are kept from it left out."""
        rest = frozenset(node.name for node in snapshot.list()) - kept
        allowed = {
            uid: request.allowed[uid] - kept if uid in request.allowed else rest
            for uid in (info.pod.uid for info in request.members)
        }
        return replace(request, allowed=allowed)

    # What UnitPlanning decides

    def denied(self, group: Group, stop: Stop) -> None:
        if self._rules.on and stop.reason in SHORT_OF_ROOM:
            self._waits_since.setdefault(group.key, self._manager.clock())

    def planned(self, unit: Iterable[Group]) -> None:
        for group in unit:
            for notes in (self._waits_since, self._turns, self._not_before):
                notes.pop(group.key, None)

    # Beginning and end

    def ended(self) -> bool:
        """Whether a shadow has ended since this was last asked. Lock held."""
        ended, self._ended = self._ended, False
        return ended

    def tick(self) -> None:
        if not self._rules.on:
            return
        manager = self._manager
        with manager.lock:
            for key in [key for key in self._waits_since if key not in manager.groups]:
                self.planned([Group(key)])
            over = self._over(self.current) if self.current is not None else ""
            if over:
                self._end(over)
            pausing = self.current is not None or manager.clock() < self._pause_until
            group = self._next() if not pausing and self._with.may_plan() else None
        if over:
            self._look()
        if group is not None:
            manager.quarantine.for_gang(group.key, "shadow", partial(self._begin, group), None)

    def _over(self, shadow: Shadow) -> str:
        """Why it ends now; empty if it does not. Lock held."""
        group = self._manager.groups.get(shadow.group)
        if group is None or not self._with.may_plan():
            return GONE
        return self._manager.quarantine.for_gang(group.key, "shadow", partial(self._over_for, group, shadow), GONE)

    def _over_for(self, group: Group, shadow: Shadow) -> str:
        if phase_of(self._manager, group) in (Phase.COMMITTING, Phase.BOUND):
            return STARTED
        pods = self._pending([group])
        gate = shut_gate(self._manager, group, pods[0].spec.scheduler_name, pods[0].name) if pods else None
        if not pods or (gate is not None and gate.reason is not Reason.BACKING_OFF):
            return GONE
        return EXPIRED if self._manager.clock() >= shadow.until else ""

    def _end(self, why: str) -> None:
        shadow, self.current, self._ended = self.current, None, True
        if shadow is None:
            return
        log.info("shadow ends group=%s domain=%s result=%s", shadow.group, shadow.domain, why)
        metrics.shadows.labels(why).inc()
        metrics.shadow_nodes.set(0)
        if shadow.group in self._waits_since:
            self._waits_since[shadow.group] = self._manager.clock()
        self._pause_until = self._manager.clock() + PAUSE_SECONDS
        self._manager.room_came_free()

    def _next(self) -> Group | None:
        """Whose turn it is: the gang that had the fewest, then the first in line. Lock held."""
        manager, now = self._manager, self._manager.clock()
        due = [
            manager.groups[key]
            for key, since in self._waits_since.items()
            if now - since >= self._rules.after_seconds and self._not_before.get(key, now) <= now
        ]
        waiting = [
            group
            for group in due
            if manager.quarantine.for_gang(group.key, "shadow", partial(phase_of, manager, group), None) is Phase.DENIED
        ]
        return min(manager.in_order(waiting), key=lambda group: self._turns.get(group.key, 0), default=None)

    def _pending(self, unit: Iterable[Group]) -> list[corev1.Pod]:
        pods = [info.pod for group in unit for info in group.pending() if self._with.ours(info.pod)]
        return sorted(pods, key=lambda pod: pod.name)

    def _begin(self, group: Group) -> None:
        manager = self._manager
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            unit = unit_of(manager, group)
            pods = self._pending(unit)
            if not pods:
                return
            request = self._requests.request(unit, pods[0].spec.scheduler_name)
        most = len(snapshot.list()) * self._rules.max_nodes_percent // 100
        with self._planning:
            choice = self._with.offload(choose_nodes, snapshot, request, self._with.judge, max(1, most))
        with manager.lock:
            if not isinstance(choice, Choice) or phase_of(manager, group) is not Phase.DENIED:
                self._not_before[group.key] = manager.clock() + max(AGAIN_SECONDS, self._rules.after_seconds)
                return
            now = manager.clock()
            priority = min(map(manager.priority_of, unit))
            keys = frozenset(each.key for each in unit)
            until = now + self._rules.max_seconds
            begun = self.current = Shadow(group.key, keys, priority, choice.domain, choice.nodes, now, until)
            self._turns[group.key] = self._turns.get(group.key, 0) + 1
        self._tell(group, begun)

    def _tell(self, group: Group, shadow: Shadow) -> None:
        log.info("shadow begins group=%s domain=%s nodes=%d", shadow.group, shadow.domain, len(shadow.nodes))
        metrics.shadows.labels(BEGUN).inc()
        metrics.shadow_nodes.set(len(shadow.nodes))
        with self._manager.lock:
            pod_group = group.pod_group
            gated = [group.members[uid].pod for uid in group.gated if uid in group.members]
        verdict = Verdict(False, SHADOW, messages.shadow_begins(shadow.domain, len(shadow.nodes)), event_only=True)
        member = min(gated, key=lambda pod: pod.name) if gated and pod_group is None else None
        self._with.verdicts.decided(pod_group, group.key, verdict, member)


def is_pinned(pod: corev1.Pod) -> bool:
    """Whether it is a DaemonSet's pod: controlled by one, and its required node affinity names the one node for which it was made.

    The affinity alone, which anyone may write, pins nothing: any pod would pass a shadow by it.
    """
    if not controlled_by(pod, DAEMON_SET):
        return False
    affinity = pod.spec.affinity
    preferences = affinity.node_affinity if affinity is not None else None
    required = preferences.required_during_scheduling_ignored_during_execution if preferences is not None else None
    if required is None or len(required.node_selector_terms) != 1:
        return False
    fields = required.node_selector_terms[0].match_fields
    return any(field.key == METADATA_NAME and field.operator == "In" and len(field.values) == 1 for field in fields)
