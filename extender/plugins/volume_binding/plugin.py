"""The extension points of VolumeBinding.

PreFilter sorts the pod's claims, Filter finds volumes for them on each node, Reserve assumes those of the chosen one,
PreBind writes them and waits until they are bound. Scoring by capacity is off, as its feature gate is.
kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from extender.api import corev1
from extender.api.corev1.volume import CLAIM_LOST
from extender.client.interface import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from extender.config.plugin_args import VolumeBindingArgs
from extender.framework import events
from extender.framework.cycle_state import CycleState, CycleStateNotFoundError
from extender.framework.events import ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from extender.plugins import names
from extender.plugins.pod_claims import ClaimUse, claim_uses, not_made_for
from extender.plugins.storage_listers import NotFoundError, StorageListers
from extender.plugins.volume_binding import hints
from extender.plugins.volume_binding.binder import NOTHING_PROMISED, BindingError, VolumeBinder
from extender.plugins.volume_binding.pod_volumes import PodVolumeClaims, PodVolumes
from extender.plugins.volume_binding.provisioning import ProvisioningError
from extender.plugins.volume_binding.writer import VolumeWriter

STATE = "VolumeBinding"
PROMISED = "Promised" + STATE
NOT_FOUND = error("not found")
UNBOUND_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")


@dataclass(slots=True)
class VolumeState:
    """Shared by a cycle and its dry runs, as in Go: what a node was found to give does not depend on victims."""

    claims: PodVolumeClaims = field(default_factory=PodVolumeClaims)
    by_node: dict[str, PodVolumes] = field(default_factory=dict)
    all_bound: bool = False


class ClaimRefusedError(Exception):
    """A claim of the pod that cannot be used now."""


class VolumeBinding(
    PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin, EnqueueExtensions
):
    name = names.VOLUME_BINDING
    watches = (
        PODS,
        NODES,
        PERSISTENT_VOLUME_CLAIMS,
        PERSISTENT_VOLUMES,
        STORAGE_CLASSES,
        CSI_NODES,
        CSI_DRIVERS,
        CSI_STORAGE_CAPACITIES,
    )

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        self._storage = StorageListers(handle)
        self._binder = VolumeBinder(self._storage)
        self._writer = VolumeWriter(handle, self._storage, self._binder, args.bind_timeout_seconds)

    @classmethod
    def create(cls, args: VolumeBindingArgs | None, handle: Handle) -> Self:
        return cls(args or VolumeBindingArgs(), handle)

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        uses = tuple(claim_uses(pod))
        if not uses:
            state.write(STATE, VolumeState())
            return None, SKIP
        try:
            for use in uses:
                self._check(pod, use)
            claims = self._binder.claims_of(pod)
        except (ClaimRefusedError, NotFoundError) as refusal:
            return None, unresolvable(str(refusal))
        except BindingError as failed:
            return None, error(str(failed))
        if claims.immediate:
            return None, UNBOUND_IMMEDIATE
        state.write(STATE, VolumeState(claims))
        return None, SUCCESS

    def _check(self, pod: corev1.Pod, use: ClaimUse) -> None:
        """Raises ClaimRefusedError or NotFoundError. Go: podHasPVCs."""
        try:
            claim = self._storage.claim(pod.namespace, use.name)
        except NotFoundError:
            if not use.ephemeral:
                raise
            raise ClaimRefusedError(
                f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
            ) from None
        if claim.status.phase == CLAIM_LOST:
            lost = claim.spec.volume_name
            raise ClaimRefusedError(
                f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{lost}"'
            )
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimRefusedError(f'persistentvolumeclaim "{use.name}" is being deleted')
        if use.ephemeral and (refusal := not_made_for(pod, claim)):
            raise ClaimRefusedError(refusal)

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        data = state.get(STATE, VolumeState)
        if data is None or node.node is None:
            return NOT_FOUND
        try:
            found, reasons = self._binder.find(data.claims, node.node, promised_volumes(state))
        except (BindingError, ProvisioningError) as failed:
            return error(str(failed))
        if reasons:
            return unresolvable(*reasons)
        data.by_node[node.name] = found
        return SUCCESS

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        return SKIP

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        return 0, SUCCESS

    def reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        data = state.get(STATE, VolumeState)
        if data is None:
            return NOT_FOUND
        found = data.by_node.get(node_name)
        assumed: PodVolumes | None = None
        if found is not None:
            try:
                assumed = self._binder.assume(pod, node_name, found)
            except BindingError as failed:
                return error(str(failed))
        if assumed is not None:
            data.by_node[node_name] = assumed
        data.all_bound = assumed is None
        return SUCCESS

    def unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        data = state.get(STATE, VolumeState)
        decided = data.by_node.get(node_name) if data is not None else None
        if decided is not None:
            self._binder.revert(decided)

    def pre_bind_pre_flight(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        try:
            return SUCCESS if self._decided(state, node_name) is not None else SKIP
        except BindingError as failed:
            return error(str(failed))

    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        try:
            decided = self._decided(state, node_name)
            if decided is not None:
                self._writer.bind(pod, decided)
        except BindingError as failed:
            return error(str(failed))
        return SUCCESS

    def _decided(self, state: CycleState, node_name: str) -> PodVolumes | None:
        """None where there is nothing to bind. Raises BindingError."""
        try:
            data = state.read(STATE, VolumeState)
        except CycleStateNotFoundError:
            raise BindingError("not found") from None
        if data.all_bound:
            return None
        if node_name not in data.by_node:
            raise BindingError(f'no pod volume found for node "{node_name}"')
        return data.by_node[node_name]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        added_or_changed = ActionType.ADD | ActionType.UPDATE
        node_change = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(ClusterEvent(events.STORAGE_CLASS, added_or_changed), hints.after_class_change),
            ClusterEventWithHint(
                ClusterEvent(events.PERSISTENT_VOLUME_CLAIM, added_or_changed), hints.after_claim_change
            ),
            ClusterEventWithHint(ClusterEvent(events.PERSISTENT_VOLUME, added_or_changed)),
            ClusterEventWithHint(ClusterEvent(events.NODE, node_change)),
            ClusterEventWithHint(ClusterEvent(events.CSI_NODE, added_or_changed), hints.after_csi_node_change),
            ClusterEventWithHint(ClusterEvent(events.CSI_DRIVER, ActionType.UPDATE), hints.after_csi_driver_change),
            ClusterEventWithHint(
                ClusterEvent(events.CSI_STORAGE_CAPACITY, added_or_changed), hints.after_capacity_change
            ),
        ]


def chosen_volumes(state: CycleState, node_name: str) -> Mapping[str, str]:
    """Claim key -> the existing volume that Filter found for it on the node; for a planner of several pods at once."""
    data = state.get(STATE, VolumeState)
    found = data.by_node.get(node_name) if data is not None else None
    if found is None:
        return {}
    return {binding.claim.metadata.key: binding.volume.metadata.name for binding in found.static_bindings}


def promise_volumes(state: CycleState, volumes: Mapping[str, str]) -> None:
    """Claim key -> volume: from now on Filter gives the claim no other volume, and the volume to no other claim."""
    state.write(PROMISED, {**promised_volumes(state), **volumes})


def promised_volumes(state: CycleState) -> Mapping[str, str]:
    promised: dict[str, str] | None = state.get(PROMISED, dict)
    return promised or NOTHING_PROMISED
