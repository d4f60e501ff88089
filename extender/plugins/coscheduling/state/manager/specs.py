"""What each group asks for: what its object says, or its pods; less where a part of it comes later; and with which groups it starts.

PodGroupManager keeps it, under its lock. scheduler-plugins: pkg/coscheduling/core/core.go (GetPodGroup)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from extender.plugins.coscheduling.composites import Composites
from extender.plugins.coscheduling.spec.in_tree import spec_of_in_tree
from extender.plugins.coscheduling.spec.named_groups import Keys
from extender.plugins.coscheduling.spec.pod_group import (
    GroupSpec,
    spec_of_labels,
    spec_of_pod_group,
    too_many_together,
)
from extender.plugins.coscheduling.spec.sources.foreign import KINDS, ForeignPodGroup, spec_of_foreign
from extender.plugins.coscheduling.state.gang_queue import GangQueue
from extender.plugins.coscheduling.state.gang_set_index import GangSetIndex
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.quorum import comes_in_phases, in_phase


class Specs:
    def __init__(self, groups: Mapping[str, Group], queue: GangQueue, *, to_come_seconds: float) -> None:
        """to_come_seconds: how long room is kept for members that are made later; 0: no gang starts without them."""
        self._groups = groups
        self._queue = queue
        self._to_come_seconds = to_come_seconds
        # by API group and key: every PodGroup of another system; one that no member of ours names is no group
        self.foreign: dict[str, dict[str, ForeignPodGroup]] = {kind: {} for kind in KINDS}
        self.gang_set_index = GangSetIndex()
        self.composites = Composites()

    def of(self, group: Group) -> GroupSpec | None:
        """What the group asks for; None where it names a PodGroup that does not exist."""
        return group.current if group.current is not None else self._renewed(group)

    def valid(self, group: Group) -> GroupSpec | None:
        """What the group asks for, where that can be planned; None, too, where it is wrong (`GroupSpec.invalid`)."""
        spec = group.current if group.current is not None else self._renewed(group)
        return spec if spec is not None and not spec.invalid else None

    def _renewed(self, group: Group) -> GroupSpec | None:
        if group.spec is None:
            group.spec = spec_of(group, self.foreign_of(group))
            if group.spec is not None:
                self._name(group.key, group.spec.groups)
                self.adopt(group.key, group.spec.parent)
                if not group.spec.invalid and (wrong := self.composites.problem(group.key)):
                    group.spec = replace(group.spec, invalid=wrong)
                if number := self.gang_set_index.refused(group.key):
                    group.spec = too_many_together(group.spec, number)
        spec = group.spec
        if spec is not None and self._to_come_seconds and comes_in_phases(group) and self.may_come_in_phases(group):
            spec = in_phase(group, spec)
        group.current = spec
        return spec

    def may_come_in_phases(self, group: Group) -> bool:
        """One that another group names before it has begun waits for all its members, as one that names others does."""
        begun = group.early or group.assigned
        return self._counts_all(group) and bool(begun or group.key not in self.gang_set_index.sets)

    def _counts_all(self, group: Group) -> bool:
        """Whether minMember and minResources of its object are of the members of all phases, as in PodGroups of the CRD, Koordinator and
        Volcano."""
        return group.pod_group is not None or self.foreign_of(group) is not None

    def foreign_of(self, group: Group) -> ForeignPodGroup | None:
        """The other system's PodGroup that its members name; our own and kube-scheduler's come before it."""
        if group.object is not None:
            return None
        named = {wish.kind for wish in group.sayings.wishes}
        found = (self.foreign[kind].get(group.key) for kind in KINDS if kind in named)
        return next((each for each in found if each is not None), None)

    def adopt(self, key: str, parent: str) -> None:
        """The group names this composite. Where its tree becomes too large by it, or small enough, all its groups ask anew."""
        self._ask_anew(each for each in self.composites.adopt(key, parent) if each != key)

    def forget(self, key: str) -> None:
        """The group names no other, and no composite, any more."""
        self._name(key, ())
        self.adopt(key, "")

    def try_names_again(self, key: str) -> bool:
        """A group that was refused: whether what it names counts from now on."""
        return self._linked(key, partial(self.gang_set_index.try_again, key))

    def _name(self, key: str, others: Keys) -> None:
        self._linked(key, partial(self.gang_set_index.name, key, others))

    def _linked(self, key: str, link: Callable[[], bool]) -> bool:
        """A job in phases whose set has changed may wait for another phase."""
        before = self.gang_set_index.gang_set(key)
        linked = link()
        if linked:
            others = {*before, *self.gang_set_index.gang_set(key)} - {key}
            self._ask_anew(each for each in others if each in self._groups and comes_in_phases(self._groups[each]))
        return linked

    def _ask_anew(self, keys: Iterable[str]) -> None:
        for key in keys:
            if (group := self._groups.get(key)) is not None:
                group.asks_anew()
                self._queue.move_to_active((key,))


def spec_of(group: Group, foreign: ForeignPodGroup | None) -> GroupSpec | None:
    """What its object asks for, with its pods' annotations where it has none; or, where there is no object, its pods."""
    beside = [wish.asked for wish in group.sayings.wishes if wish.asked]
    if group.pod_group is not None:
        return spec_of_pod_group(group.pod_group, beside=beside)
    if group.in_tree is not None:
        return spec_of_in_tree(group.in_tree, beside)
    if foreign is not None:
        return spec_of_foreign(foreign, beside)
    lightweight = [(each.pod, each.ref) for each in group.members.values() if each.ref.lightweight]
    return spec_of_labels(group.key, lightweight) if lightweight else None
