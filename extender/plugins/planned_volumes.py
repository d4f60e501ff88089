"""VolumeBinding and NodeVolumeLimits for plans: the same rules, and the common cases for all nodes at once.

The members of a gang bring a claim each, so that none is like another, and each is judged on every node. Reserve and
PreBind are kube-scheduler's here; what is not simple is left to the exact rule. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from extender.api import corev1
from extender.api.corev1.volume import PersistentVolumeClaimSpec
from extender.api.metav1 import LabelSelector
from extender.api.quantity import Quantity
from extender.api.storagev1 import NO_PROVISIONER, CSIStorageCapacity, StorageClass
from extender.config.plugin_args import VolumeBindingArgs
from extender.framework.columnar import ALL_PASS, FilterColumns, Mask, NodeTable, Verdicts
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.listers import Lister
from extender.framework.node_selector_columns import selector_nodes
from extender.framework.status import unresolvable
from extender.plugins.csi_translation import in_tree_plugin
from extender.plugins.node_volume_limits import NodeVolumeLimits
from extender.plugins.pod_claims import claim_uses, not_made_for
from extender.plugins.storage_listers import NotFoundError
from extender.plugins.volume_binding.binder import BIND_CONFLICT, NODE_CONFLICT, NOT_ENOUGH_SPACE
from extender.plugins.volume_binding.matching import SELECTED_NODE, fits
from extender.plugins.volume_binding.plugin import STATE, VolumeBinding, VolumeState, promised_volumes
from extender.plugins.volume_binding.pod_volumes import PodVolumeClaims
from extender.plugins.volume_binding.provisioning import holds, publishes_capacity, size_to_publish

Masks = dict[tuple[str, str], Mask | None]
Rooms = tuple[NodeTable | None, tuple[CSIStorageCapacity, ...], dict[tuple[str, int], Mask]]
"""Of a table and what was published: (class, size) -> the nodes that have so much."""

Like = tuple[
    NodeTable | None, tuple[corev1.PersistentVolume, ...], str, PersistentVolumeClaimSpec | None, Verdicts | None
]
"""Of a table, volumes of one class and a claim that asks for one: where it finds one. The claims of a gang's members are alike."""


class PlannedVolumeBinding(VolumeBinding, FilterColumns):
    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._reach: tuple[NodeTable | None, Masks] = (None, {})  # of the table that was asked about last
        self._room: Rooms = (None, (), {})
        self._like: Like = (None, (), "", None, ALL_PASS)

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        data = state.get(STATE, VolumeState)
        if data is None or promised_volumes(state):
            return None
        claims = data.claims
        if claims.bound and claims.delayed:
            return None
        if claims.bound:
            return self._bound(claims.bound, table)
        if all(self._made_anywhere(claim) for claim in claims.delayed):
            return ALL_PASS
        if not any(claims.volumes.values()) and all(map(self._class_that_makes, claims.delayed)):
            return self._with_room(claims.delayed, table)
        return self._matched(claims, table) if len(claims.delayed) == 1 else None

    def _with_room(self, claims: Sequence[corev1.PersistentVolumeClaim], table: NodeTable) -> Verdicts:
        room = np.ones(len(table), dtype=np.bool_)
        for claim in claims:
            size = size_to_publish(claim, self._storage.storage_class(claim.class_name), self._storage)
            if size is not None:
                room &= self._published(claim.class_name, size, table)
        return Verdicts.refused(~room, unresolvable(NOT_ENOUGH_SPACE))

    def _published(self, class_name: str, size: Quantity, table: NodeTable) -> Mask:
        """The nodes with enough of the class. Kept for as long as nothing else is published."""
        capacities = tuple(self._storage.storage_capacities())
        if self._room[0] is not table or self._room[1] != capacities:
            self._room = (table, capacities, {})
        masks, key = self._room[2], (class_name, size.value)
        if key not in masks:
            of_class = [each for each in capacities if each.storage_class_name == class_name and holds(each, size)]
            masks[key] = reached_nodes([each.node_topology for each in of_class if each.node_topology], table)
        return masks[key]

    def _bound(self, claims: Sequence[corev1.PersistentVolumeClaim], table: NodeTable) -> Verdicts | None:
        """On the nodes that can reach every volume."""
        reachable = np.ones(len(table), dtype=np.bool_)
        for claim in claims:
            volume = self._binder.volumes.get(claim.spec.volume_name)
            mask = self._reached(volume, table) if volume is not None else None
            if mask is None:
                return None
            reachable &= mask
        return Verdicts.refused(~reachable, unresolvable(NODE_CONFLICT))

    def _made_anywhere(self, claim: corev1.PersistentVolumeClaim) -> bool:
        """A new volume can be made wherever the pod goes; whether one that exists is taken instead does not matter."""
        storage_class = self._class_that_makes(claim)
        return storage_class is not None and not publishes_capacity(storage_class, self._storage)

    def _class_that_makes(self, claim: corev1.PersistentVolumeClaim) -> StorageClass | None:
        """By which a new volume can be made for it on all nodes, but for those where too little capacity is published."""
        if SELECTED_NODE.on(claim.metadata):
            return None
        try:
            found = self._storage.storage_class(claim.class_name)
        except NotFoundError:
            return None
        return None if found.provisioner in ("", NO_PROVISIONER) or found.allowed_topologies else found

    def _matched(self, claims: PodVolumeClaims, table: NodeTable) -> Verdicts | None:
        """The one claim has to be given a volume that exists: on the nodes that can reach one that fits."""
        claim = claims.delayed[0]
        if SELECTED_NODE.on(claim.metadata) or not self._never_made(claim):
            return None
        volumes = tuple(claims.volumes.get(claim.class_name, ()))
        if any(volume.spec.claim_ref is not None for volume in volumes):  # one is meant for it
            return None
        known, *like, verdicts = self._like
        if known is not table or like != [volumes, claim.class_name, claim.spec]:
            verdicts = self._on_a_node_that_reaches(volumes, claim, table)
            self._like = (table, volumes, claim.class_name, claim.spec, verdicts)
        return verdicts

    def _on_a_node_that_reaches(
        self, volumes: Sequence[corev1.PersistentVolume], claim: corev1.PersistentVolumeClaim, table: NodeTable
    ) -> Verdicts | None:
        reachable = np.zeros(len(table), dtype=np.bool_)
        for volume in volumes:
            if fits(volume, claim):
                mask = self._reached(volume, table)
                if mask is None:
                    return None
                reachable |= mask
        return Verdicts.refused(~reachable, unresolvable(BIND_CONFLICT))

    def _never_made(self, claim: corev1.PersistentVolumeClaim) -> bool:
        try:
            return self._storage.storage_class(claim.class_name).provisioner in ("", NO_PROVISIONER)
        except NotFoundError:
            return False

    def _reached(self, volume: corev1.PersistentVolume, table: NodeTable) -> Mask | None:
        """The nodes that its node affinity names. None: only the exact rule can tell."""
        if self._reach[0] is not table:
            self._reach = (table, {})
        masks = self._reach[1]
        key = (volume.metadata.name, volume.metadata.resource_version)
        if key not in masks:
            masks[key] = _reach_of(volume, table)
        return masks[key]


class PlannedNodeVolumeLimits(NodeVolumeLimits, FilterColumns):
    """What is attached to a node is counted once a member is to go there: the planner asks `filter` before it places one."""

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        return ALL_PASS


def _reach_of(volume: corev1.PersistentVolume, table: NodeTable) -> Mask | None:
    if in_tree_plugin(volume.spec) is not None:
        return None
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return np.ones(len(table), dtype=np.bool_)
    terms = affinity.required.node_selector_terms
    return None if _names_nodes(terms) else selector_nodes(table, terms)


def reached_nodes(selectors: Iterable[LabelSelector], table: NodeTable) -> Mask:
    """The nodes that any of these matches. Those that ask for one value of one label, as drivers publish them, by label."""
    reached = np.zeros(len(table), dtype=np.bool_)
    values: dict[str, set[str]] = {}
    for selector in selectors:
        if len(selector.match_labels) == 1 and not selector.match_expressions:
            for key, value in selector.match_labels.items():
                values.setdefault(key, set()).add(value)
        else:
            reached |= np.array([selector.matches(node.labels) for node in table.nodes], dtype=np.bool_)
    for key, wanted in values.items():
        column = table.label(key)
        reached |= np.array([value in wanted for value in column.values] + [False], dtype=np.bool_)[column.codes]
    return reached


def _names_nodes(terms: Iterable[corev1.NodeSelectorTerm]) -> bool:
    return any(term.match_fields for term in terms)


def ties(pod: corev1.Pod, claims: Lister[corev1.PersistentVolumeClaim]) -> tuple[object, ...]:
    """Of each ephemeral volume: whether its claim can be used, what it is bound to, and where kube-scheduler has sent it."""
    return tuple(_tie(pod, claims.get(f"{pod.namespace}/{use.name}")) for use in claim_uses(pod) if use.ephemeral)


def _tie(pod: corev1.Pod, claim: corev1.PersistentVolumeClaim | None) -> object:
    if claim is None:
        return None
    usable = not not_made_for(pod, claim) and claim.metadata.deletion_timestamp is None
    sent = SELECTED_NODE.text(claim.metadata)
    return usable, claim.spec.volume_name, claim.status.phase, sent
