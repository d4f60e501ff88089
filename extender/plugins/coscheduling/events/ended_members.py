"""Members that have ended, of gangs that wait for siblings: the API server is asked for them, since no watch shows them.

The pods' informer leaves out what is Succeeded or Failed, as kube-scheduler's does, and a member that leaves it so looks like one that
was deleted. GangObserver tells which gangs are short of members; of those that have run before, the Succeeded pods of the namespace are
listed, and those that belong to the gang count as siblings. docs/design/0038 says which do. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from extender.api import corev1
from extender.client.ended_pods import ListPace
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.spec.named_groups import namespace_of
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import controller_of
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import is_as_young, needs, note_ended
from extender.plugins.coscheduling.state.starts import note_replaced

AGAIN_SECONDS = 30.0  # between two questions about one gang, while it is short
Then = Callable[[Collection[str]], None]


def _nothing(keys: Collection[str]) -> None:
    """What is told where nothing but the count is asked for."""


class EndedMembers:
    """The manager's lock guards what is noted; it is let go while the API server is asked."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        schedule_planning: Callable[[], None],
        steering: OrderedSteering,
        recheck: Callable[[Group], None],
    ) -> None:
        """recheck: starts a gang that is complete now without another bind call."""
        self._manager = manager
        self._with = dependencies
        self._steering = steering
        self._schedule_planning = schedule_planning
        self._recheck = recheck
        self._ask_at: dict[str, float] = {}  # keys of gangs that are short of members -> when
        # namespaces -> what is told, and the keys of gangs that it is told of, once the next list of the namespace has come
        self._questions: dict[str, dict[Then, set[str]]] = {}
        self._pace = ListPace()
        self._began = manager.wall()
        manager.registry.on_dropped.append(self._forget)

    def _forget(self, key: str) -> None:
        self._ask_at.pop(key, None)

    def is_short(self, key: str) -> None:
        """The gang has fewer members than it asks for."""
        with self._manager.lock:
            self._ask_at.setdefault(key, self._manager.clock())

    def tick(self) -> None:
        """About once a second: those that are due, and those that wait for a list."""
        if not self._with.may_plan():
            with self._manager.lock:
                self._questions.clear()
            return
        due: list[str] = []
        with self._manager.lock:
            now = self._manager.clock()
            for key in [key for key, at in self._ask_at.items() if at <= now]:
                if self._manager.quarantine.for_gang(key, "ended", partial(self._may_have_ended, key), otherwise=False):
                    self._ask_at[key] = now + AGAIN_SECONDS
                    due.append(key)
                else:
                    del self._ask_at[key]
        self.look_up(due)

    def look_up(self, keys: Iterable[str], then: Then = _nothing) -> None:
        """Counts the members that have ended of these gangs, and tells `then` the keys; not of those that cannot be listed. A namespace is
        listed once for all that are asked about it, now or, where it was listed often, some seconds later."""
        with self._manager.lock:
            for key in keys:
                self._questions.setdefault(namespace_of(key), {}).setdefault(then, set()).add(key)
            now = self._manager.clock()
            self._pace.forget(now)
            asked = {
                namespace: self._questions.pop(namespace)
                for namespace in tuple(self._questions)
                if self._pace.permits(namespace, now)
            }
            for namespace in asked:
                self._pace.note(namespace, now)
        for namespace, questions in asked.items():
            self._with.succeeded_pods(namespace, partial(self._found, questions))

    def _may_have_ended(self, key: str) -> bool:
        """Whether the gang is short still, and is none that was made while we looked and never ran. Lock held."""
        group = self._manager.groups.get(key)
        spec = self._manager.specs.valid(group) if group is not None else None
        if group is None or spec is None or not group.pending():
            return False
        if not group.ran and spec.created is not None and spec.created > self._began:
            return False
        return bool(needs(group, spec, group.members.keys()))

    def _found(self, questions: Mapping[Then, Collection[str]], pods: Iterable[corev1.Pod]) -> None:
        """pods: those of the namespace that have Succeeded."""
        ended: dict[str, dict[str, corev1.Pod]] = {key: {} for keys in questions.values() for key in keys}
        for pod in pods:
            ref = self._manager.labels.group_of(pod) if pod.node_name else None
            if ref is not None and ref.key in ended:
                ended[ref.key][pod.uid] = pod
        with self._manager.lock:
            for key, found in ended.items():
                self._manager.quarantine.for_gang(key, "ended", partial(self._count, key, found), None)
        for then, keys in questions.items():
            then(keys)
        self._schedule_planning()
        self._steering.carry_out()

    def _count(self, key: str, found: dict[str, corev1.Pod]) -> None:
        """Lock held."""
        manager = self._manager
        group = manager.groups.get(key)
        if group is None:
            return
        before, early, spec = group.ended.keys(), group.early, manager.specs.of(group)
        replaced = spec is not None and note_replaced(group, spec, manager.wall())
        bare = bool(group.assigned) or (spec is not None and _are_other_indices(group, spec, found.values()))
        group.ended = {uid: pod for uid, pod in found.items() if _is_sibling(group, pod, bare=bare)}
        note_ended(group, found.values())
        if group.ended.keys() == before and group.early == early and not replaced:
            return
        manager.begun.follow_broken(group, manager.specs.of(group))
        manager.places.follow(group)
        manager.notes.forget(key)
        manager.queue.move_to_active((key,))
        self._steering.activate(key, [group.members[uid].pod for uid in group.refused - group.gated])
        if group.in_permit:
            self._recheck(group)


def _is_sibling(group: Group, ended: corev1.Pod, *, bare: bool) -> bool:
    """Whether it is of the same run of the gang as the members that wait, or, of a gang that has started, any member: of the same
    controller. bare: whether pods without a controller count, those that are no older than the gang's object."""
    owner = controller_of(ended)
    siblings = [each.info for each in group.members.values()] if group.whole_of else group.pending()
    if ended.uid in group.members or all(controller_of(info.pod) != owner for info in siblings):
        return False
    if owner:
        return True
    return bare and is_as_young(group, ended)


def _are_other_indices(group: Group, spec: GroupSpec, ended: Collection[corev1.Pod]) -> bool:
    """Whether pods without a controller are of one run with the members, of which none is on a node: by their indices. An index that has
    succeeded is not made again in its run."""
    succeeded = {spec.rank_of(pod) for pod in ended if not controller_of(pod)}
    there = {spec.rank_of(each.pod) for each in group.members.values()}
    return bool(succeeded) and None not in succeeded | there and succeeded.isdisjoint(there)
