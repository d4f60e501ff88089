"""What objects say of groups: their own PodGroups, those of other systems, and the CompositePodGroups above them.

PodGroupManager keeps it, under its lock; each method takes in one event of an informer. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.sources.foreign import ForeignPodGroup, kind_of
from extender.plugins.coscheduling.spec.sources.steps import started_early
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.registry import GroupRegistry
from extender.plugins.coscheduling.state.manager.specs import Specs


class Objects:
    def __init__(self, groups: Mapping[str, Group], registry: GroupRegistry, specs: Specs) -> None:
        self._groups = groups
        self._registry = registry
        self._specs = specs

    def pod_group_changed(self, pod_group: OwnPodGroup) -> Group:
        group = self._registry.get_or_new(pod_group.key)
        if group.pod_group is None:
            group.early = started_early(pod_group.status.conditions)
        group.put(pod_group)
        self._registry.asks_anew(group)
        return group

    def pod_group_gone(self, pod_group: OwnPodGroup) -> Group | None:
        group = self._groups.get(pod_group.key)
        if group is not None:
            group.take(pod_group)
            self._registry.asks_anew(group)
            self._registry.drop_if_empty(group)
        return group

    def foreign_changed(self, pod_group: ForeignPodGroup) -> Group | None:
        """Returns the group that is what this object says from now on."""
        self._specs.foreign[kind_of(pod_group)][pod_group.key] = pod_group
        group = self._groups.get(pod_group.key)
        if group is None or self._specs.foreign_of(group) is not pod_group:
            return None
        self._registry.asks_anew(group)
        return group

    def renew_foreign(self, pod_group: ForeignPodGroup) -> None:
        """It asks for the same as before."""
        self._specs.foreign[kind_of(pod_group)][pod_group.key] = pod_group

    def foreign_gone(self, pod_group: ForeignPodGroup) -> Group | None:
        """Returns the group that was what this object says."""
        group = self._groups.get(pod_group.key)
        before = self._specs.foreign_of(group) if group is not None else None
        known = self._specs.foreign[kind_of(pod_group)].pop(pod_group.key, None)
        if group is None or before is None or before is not known:
            return None
        self._registry.asks_anew(group)
        return group

    def composite_changed(self, key: str, spec: CompositeSpec | None) -> list[str]:
        """None: it is gone. Returns the keys of the groups below it, which ask for something else now; and of all groups of a tree that has
        become too large by it, or is so no longer."""
        composites = self._specs.composites
        before = composites.groups_of(key)
        with composites.resizing(key, spec.parent if spec is not None else "") as concerned:
            if spec is not None:
                composites.put(spec)
            else:
                composites.remove(key)
        return sorted({*before, *composites.groups_of(key), *concerned} & self._groups.keys())

    def tree_changed(self, key: str) -> Group | None:
        """A composite above the group has changed."""
        group = self._groups.get(key)
        if group is not None:
            self._registry.asks_anew(group)
        return group

    def try_names_again(self, key: str) -> Group | None:
        """Tries again to link a refused group to the groups that it names; None if it is still refused."""
        group = self._groups.get(key)
        if group is None or not self._specs.try_names_again(key):
            return None
        self._registry.asks_anew(group)
        return group
