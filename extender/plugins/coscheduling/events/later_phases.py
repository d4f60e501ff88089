"""Room for members of later phases, found again when we begin to lead: what was kept for them is known to no other process.

What is to come is read off the API: the PodGroup's minMember and minResources, the members that are there, and, between two phases, those
that have Succeeded. PlanningRounds asks before any pod is answered. No counterpart upstream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from extender.api import corev1
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies, not_listed
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.members_to_come.foreseen import foreseen_anew
from extender.plugins.coscheduling.scheduling.plan.planned_gang_set import is_there
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.spec.named_groups import namespace_of
from extender.plugins.coscheduling.spec.sources.steps import Step
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import note_ended
from extender.plugins.coscheduling.state.starts import says_started, seconds_since_start

ENDED_SECONDS = 2.0  # for which members that have Succeeded are waited for, of all namespaces together


class LaterPhases:
    """The manager's lock is taken, and not held while the API server is asked or planned. planning: the lock around plans."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        dispatcher: Dispatcher,
        requests: PlanRequests,
        plan: Callable[[PlanQuestion], object],
        planning: AbstractContextManager[object],
    ) -> None:
        self._manager = manager
        self._with = dependencies
        self._dispatcher = dispatcher
        self._requests = requests
        self._plan = plan
        self._planning = planning

    def keep_rooms(self) -> None:
        """Of all gangs of which a phase has started and others come later, or may."""
        manager = self._manager
        if not manager.to_come_seconds:
            return
        with manager.lock:
            groups = list(manager.groups.values())
            between = [
                group.key
                for group in groups
                if manager.quarantine.for_gang(group.key, "begun", partial(_is_between_phases, group), otherwise=False)
            ]
        self._ask_for_ended(between)
        with manager.lock:
            begun = [group for group in groups if (group.steps and group.assigned) or group.ended_phase is not None]
        self.keep_rooms_of(begun)

    def keep_rooms_of(self, groups: Iterable[Group]) -> None:
        for group in groups:
            with self._planning:
                self._manager.quarantine.for_gang(group.key, "begun", partial(self._keep_room, group), None)

    def _ask_for_ended(self, keys: Sequence[str]) -> None:
        """For the members of an earlier phase, each namespace once. Where the answer comes late its gangs have their room by then, if it is
        still there; where none comes room is found with the members of the next phase."""
        if not keys or self._with.succeeded_pods is not_listed:
            return
        by_namespace: dict[str, set[str]] = {}
        for key in keys:
            by_namespace.setdefault(namespace_of(key), set()).add(key)
        left, answered, late = set(by_namespace), threading.Event(), threading.Event()

        def found(namespace: str, pods: Iterable[corev1.Pod]) -> None:
            self._note(by_namespace[namespace], pods)
            left.discard(namespace)
            if not left:
                answered.set()
            if late.is_set():
                with self._manager.lock:
                    known = (self._manager.groups.get(key) for key in sorted(by_namespace[namespace]))
                    groups = [group for group in known if group is not None]
                self.keep_rooms_of(groups)

        for namespace in sorted(by_namespace):
            self._with.succeeded_pods(namespace, partial(found, namespace))
        self._with.wait(answered, ENDED_SECONDS)
        late.set()

    def _note(self, keys: Collection[str], pods: Iterable[corev1.Pod]) -> None:
        manager = self._manager
        ended: dict[str, list[corev1.Pod]] = {}
        for pod in pods:
            ref = manager.labels.group_of(pod) if pod.node_name and self._with.ours(pod) else None
            if ref is not None and ref.key in keys:
                ended.setdefault(ref.key, []).append(pod)
        with manager.lock:
            for key, found in ended.items():
                if (group := manager.groups.get(key)) is not None:
                    manager.quarantine.for_gang(key, "ended", partial(note_ended, group, found), None)

    def _keep_room(self, group: Group) -> None:
        """For as long as is left of its time, where there is room still."""
        manager = self._manager
        with manager.lock:
            left = manager.to_come_seconds - seconds_since_start(group, manager.wall())
            room = foreseen_anew(manager, group) if left > 0 else None
        if room is None:
            return
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            question = self._requests.question((group,), room.like.pod.spec.scheduler_name, snapshot)
        result = self._plan(
            question.asking(replace(question.request, members=(), needed=0, minima=(), sliced=(), foreseen=room))
        )
        with manager.lock:
            if not isinstance(result, planner.Placement) or not is_there(manager, group):
                return
            if foreseen_anew(manager, group) is None:
                return
            manager.places.keep_for_members_to_come(group, result.kept, manager.clock() + left)
            manager.places.claim_all(group)
        self._dispatcher.dispatch(group)


def _is_between_phases(group: Group) -> bool:
    """Whether initializers have started, none is there any more, and the others have not started yet, as its object says."""
    return bool(group.early) and not group.steps[Step.INITIALIZER] and not says_started(group)
