"""What the watch says of groups' objects: PodGroups, those of other systems, and the CompositePodGroups above them.

GroupEvents hands each event on. What a group was to start with, and what it starts with now, is looked at anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from extender.api.schedulingv1alpha3 import CompositePodGroup
from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.events.void_plans import VoidPlans
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.spec.group_annotations import asks_for
from extender.plugins.coscheduling.spec.in_tree import spec_of_composite
from extender.plugins.coscheduling.spec.sources.foreign import ForeignPodGroup
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, update_once_satisfied
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


class ObjectEvents:
    """The manager's lock is taken for the bookkeeping of each event, and let go before anything is planned or patched."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        dispatcher: Dispatcher,
        holds: Holds,
        void_plans: VoidPlans,
        recheck: Callable[[Group], None],
    ) -> None:
        """recheck: starts a gang that is complete now, after minMember was lowered or a group was named no longer."""
        self._manager = manager
        self._rounds = rounds
        self._dispatcher = dispatcher
        self._holds = holds
        self._void_plans = void_plans
        self._recheck = recheck

    def on_pod_group(self, old: OwnPodGroup | None, new: OwnPodGroup | None) -> None:
        """Of the CRD, or kube-scheduler's own where that is watched. Our own conditions are no news."""
        manager = self._manager
        self._on_object(
            old,
            new,
            manager.objects.pod_group_changed,
            manager.objects.pod_group_gone,
            manager.objects.pod_group_changed,
        )

    def on_foreign_pod_group(self, old: ForeignPodGroup | None, new: ForeignPodGroup | None) -> None:
        """Another system's object; its status is that system's."""
        manager = self._manager
        self._on_object(
            old, new, manager.objects.foreign_changed, manager.objects.foreign_gone, manager.objects.renew_foreign
        )

    def _on_object(
        self,
        old: OwnPodGroup | ForeignPodGroup | None,
        new: OwnPodGroup | ForeignPodGroup | None,
        changed: Callable[..., Group | None],
        gone: Callable[..., Group | None],
        renewed: Callable[..., object],
    ) -> None:
        """renewed: takes in an object that asks for the same as before."""
        if new is not None and old is not None and asks_for(old) == asks_for(new):
            with self._manager.lock:
                renewed(new)
        elif new is not None:
            self._object_changed(new.key, partial(changed, new), gone=False)
        elif old is not None:
            self._object_changed(old.key, partial(gone, old), gone=True)

    def on_composite_pod_group(self, old: CompositePodGroup | None, new: CompositePodGroup | None) -> None:
        """All groups below it ask for something else."""
        manager = self._manager
        before, after = (spec_of_composite(each) if each is not None else None for each in (old, new))
        known = after or before
        if known is None or before == after:
            return
        with manager.lock:
            keys = manager.objects.composite_changed(known.key, after)
        for key in keys:
            change = partial(self._object_changed, key, partial(manager.objects.tree_changed, key), gone=False)
            manager.quarantine.for_gang(key, "events", change, None)

    def _object_changed(self, key: str, change: Callable[[], Group | None], *, gone: bool) -> None:
        """What the group was to start with until now, and what it is to start with from now on, is looked at anew."""
        manager = self._manager
        with manager.lock:
            manager.quarantine.try_now(key)
            before = manager.groups.get(key)
            concerned = gang_set_of(manager, before) if before is not None else ()
            group = change()
            if group is None:
                return
            groups = self._void_plans.together(group, concerned)
            update_once_satisfied(manager, group)
            for each in groups:
                if gone:
                    self._holds.reject_all(each, messages.GROUP_DELETED)
                else:
                    self._recheck(each)
                manager.notes.forget(each.key)
            manager.queue.move_to_active(each.key for each in groups if each.key in manager.groups)
            void = [key] if gone else self._void_plans.void(groups)
            for each in groups:
                parked = [each.members[uid].pod for uid in each.refused - each.gated if uid in each.members]
                self._dispatcher.steering.activate(each.key, parked)
        self._void_plans.drop(void)
        self._rounds.schedule_planning()
        self._dispatcher.steering.carry_out()

    def tick(self) -> None:
        """About once a second: groups that were kept out of a full set are taken in when it has room."""
        manager = self._manager
        with manager.lock:
            fitting = manager.gang_set_index.fitting()
        for key in fitting:
            change = partial(self._object_changed, key, partial(manager.objects.try_names_again, key), gone=False)
            manager.quarantine.for_gang(key, "events", change, None)
