"""What the watch says of pods, groups and nodes: which members count, which plans are void, which gangs are planned again.

The Coscheduling plugin hands every event on to here; what follows runs in the background. Each informer calls from its own
thread. scheduler-plugins has queueing hints in this place: here a group that an event can help is planned by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from extender.api import corev1
from extender.client.short_steps import pause
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.events.object_events import ObjectEvents
from extender.plugins.coscheduling.events.pod_events import PodEvents
from extender.plugins.coscheduling.events.void_plans import VoidPlans
from extender.plugins.coscheduling.hints.helpful_events import of_node, of_pod
from extender.plugins.coscheduling.scheduling.lost_slots import lose_slot
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts


class GroupEvents:
    """The manager's lock is taken for the bookkeeping of each event, and let go before anything is planned or patched."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        dispatcher: Dispatcher,
        holds: Holds,
        recheck: Callable[[Group], None],
        dependencies: CoschedulingDependencies,
    ) -> None:
        """recheck: starts a gang that is complete now without another bind call."""
        self._manager = manager
        self._rounds = rounds
        # claims that have changed since gangs were last looked through; None: any may have
        self._claims: frozenset[str] | None = frozenset()
        self._with = dependencies
        void_plans = VoidPlans(manager, rounds)
        self._pods = PodEvents(manager, rounds, dispatcher, holds, void_plans, self.on_capacity_freed, recheck)
        self._objects = ObjectEvents(manager, rounds, dispatcher, holds, void_plans, recheck)
        self.on_pod = self._pods.on_pod
        self.on_pod_group = self._objects.on_pod_group
        self.on_foreign_pod_group = self._objects.on_foreign_pod_group
        self.on_composite_pod_group = self._objects.on_composite_pod_group

    def tick(self) -> None:
        self._pods.tick()
        self._objects.tick()

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        """A node that came or got better may help; one that went takes the plans on it with it."""
        if new is None and old is not None:
            with self._manager.lock:
                lost = list(self._manager.slots.on_node(old.name))
                for place in lost:
                    lose_slot(self._manager, place)
            if lost:
                self._rounds.schedule_planning()
        if (happened := of_node(old, new)) is not None:
            self._rounds.happened(happened)

    def on_forgotten(self, assumed: corev1.Pod) -> None:
        """The pod's binding has failed. Where it was deleted its room comes free only now, after the watch has told of that: gangs that
        were planned in between had not found it."""
        with self._manager.lock:
            gone = self._manager.is_gone(assumed)
        if gone and (happened := of_pod(assumed, None)) is not None:
            self._rounds.happened(happened)

    def on_volumes(self, old: object | None, new: object | None) -> None:
        """Volumes, claims or classes changed: gangs that wait and bring such volumes may fit now. Many changes, one look."""
        with self._manager.lock:
            of_changes = _claims_of(old, new)
            self._claims = self._claims | of_changes if self._claims is not None and of_changes is not None else None
        self._with.submit("volumes", self._volumes_changed)

    def _volumes_changed(self) -> None:
        with self._manager.lock:
            claims, self._claims = self._claims, frozenset()
            keys = self._manager.queue.index.bringing_volumes()
        waits = False
        for some in in_parts(sorted(keys)):
            with self._manager.lock:
                waits = self._manager.notes.volumes_changed(some, claims) or waits
            pause()  # other threads have their turn
        if waits:
            self._rounds.schedule_planning()

    def wake(self, keys: Collection[str]) -> None:
        """What has happened may help these groups."""
        with self._manager.lock:
            self._manager.notes.wake(keys)
        self._rounds.schedule_planning()

    def on_capacity_freed(self) -> None:
        with self._manager.lock:
            self._manager.notes.cluster_epoch += 1
            self._manager.notes.on_capacity_freed()
        self._rounds.schedule_planning()


def _claims_of(old: object | None, new: object | None) -> frozenset[str] | None:
    """`namespace/name` of the claims that a change is of; None for one that any claim may depend on: of a volume that is no claim's yet,
    of a class, of what a node can attach."""
    found = set()
    for each in (old, new):
        if isinstance(each, corev1.PersistentVolumeClaim):
            found.add(f"{each.metadata.namespace}/{each.metadata.name}")
        elif isinstance(each, corev1.PersistentVolume) and each.spec.claim_ref is not None:
            found.add(f"{each.spec.claim_ref.namespace}/{each.spec.claim_ref.name}")
        elif each is not None:
            return None
    return frozenset(found)
