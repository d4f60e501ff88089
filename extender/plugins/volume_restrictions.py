"""VolumeRestrictions: disks that no two pods of a node may share, and claims that one pod has to itself.

GCE and RBD and ISCSI disks may be shared if all mount them read-only, AWS disks never. A ReadWriteOncePod claim is used
by one pod of the whole cluster; preemption of that pod can free it, so its use is counted in the cycle's state.
kube-scheduler: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from extender.api import corev1
from extender.api.corev1.volume import READ_WRITE_ONCE_POD
from extender.client.interface import PERSISTENT_VOLUME_CLAIMS
from extender.framework.cycle_state import CycleState, CycleStateNotFoundError
from extender.framework.events import NODE, PERSISTENT_VOLUME_CLAIM, POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
)
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, deleted, modified
from extender.plugins.pod_claims import named_claims
from extender.plugins.storage_listers import NotFoundError, StorageListers

STATE = "PreFilterVolumeRestrictions"
DISK_CONFLICT = unschedulable("node(s) had no available disk")
READ_WRITE_ONCE_POD_CONFLICT = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


@dataclass(slots=True)
class ClaimState:
    """The pod's ReadWriteOncePod claims, and how often other pods refer to them."""

    claims: frozenset[str]
    conflicts: int

    def clone(self) -> ClaimState:
        return replace(self)

    def count(self, other: corev1.Pod, sign: int) -> None:
        """Of whatever namespace the other pod is, as in Go."""
        self.conflicts += sign * sum(name in self.claims for name in named_claims(other))


class VolumeRestrictions(PreFilterPlugin, FilterPlugin, PreFilterExtensions, EnqueueExtensions):
    name = names.VOLUME_RESTRICTIONS
    watches = (PERSISTENT_VOLUME_CLAIMS,)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._storage = StorageListers(handle)

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls(handle)

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        if not pod.spec.volumes:
            return None, SKIP
        try:
            claims = self._read_write_once_pod_claims(pod)
        except NotFoundError as missing:
            return None, unresolvable(str(missing))
        snapshot = self._handle.snapshot()
        conflicts = sum(snapshot.is_pvc_used_by_pods(f"{pod.namespace}/{claim}") for claim in claims)
        if not conflicts and not any(restricted_disk(volume) for volume in pod.spec.volumes):
            return None, SKIP
        state.write(STATE, ClaimState(claims, conflicts))
        return None, SUCCESS

    def _read_write_once_pod_claims(self, pod: corev1.Pod) -> frozenset[str]:
        claims = (self._storage.claim(pod.namespace, name) for name in named_claims(pod))
        return _exclusive(claims)

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo) -> Status:
        return _counted(state, added.pod, 1)

    def remove_pod(self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo) -> Status:
        return _counted(state, removed.pod, -1)

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        if not _disks_free(pod, [info.pod for info in node.pods]):
            return DISK_CONFLICT
        try:
            claims = state.read(STATE, ClaimState)
        except CycleStateNotFoundError:
            return _unread()
        return READ_WRITE_ONCE_POD_CONFLICT if claims.conflicts > 0 else SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), self.after_pod_deleted),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), self.after_claim_added),
        ]

    def after_pod_deleted(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A pod of the namespace that had one of the disks or claims."""
        gone = deleted(corev1.Pod, old)
        if gone.namespace != pod.namespace:
            return QUEUE_SKIP
        if not _disks_free(pod, [gone]) or set(named_claims(pod)) & set(named_claims(gone)):
            return QUEUE
        return QUEUE_SKIP

    def after_claim_added(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        _, claim = modified(corev1.PersistentVolumeClaim, old, new)
        mine = claim.metadata.namespace == pod.namespace and claim.metadata.name in named_claims(pod)
        return QUEUE if mine else QUEUE_SKIP


def read_write_once_pod_claims(pod: corev1.Pod, storage: StorageListers) -> frozenset[str]:
    """Names of the claims that the pod has to have to itself. Claims that are not there are left out."""
    claims = storage.claims()
    found = (claims.get(f"{pod.namespace}/{name}") for name in named_claims(pod))
    return _exclusive(claim for claim in found if claim is not None)


def _exclusive(claims: Iterable[corev1.PersistentVolumeClaim]) -> frozenset[str]:
    return frozenset(c.metadata.name for c in claims if READ_WRITE_ONCE_POD in c.spec.access_modes)


def _unread() -> Status:
    return error(f'cannot read "{STATE}" from cycleState')


def _counted(state: CycleState, other: corev1.Pod, sign: int) -> Status:
    try:
        state.read(STATE, ClaimState).count(other, sign)
    except CycleStateNotFoundError:
        return _unread()
    return SUCCESS


def restricted_disk(volume: corev1.Volume) -> bool:
    """Whether it is of a kind that pods of one node cannot share."""
    return bool(volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.rbd or volume.iscsi)


def _disks_free(pod: corev1.Pod, others: Sequence[corev1.Pod]) -> bool:
    """Go: satisfyVolumeConflicts."""
    mine = [volume for volume in pod.spec.volumes if restricted_disk(volume)]
    return not any(_conflict(volume, theirs) for volume in mine for other in others for theirs in other.spec.volumes)


def _conflict(mine: corev1.Volume, theirs: corev1.Volume) -> bool:
    """Go: isVolumeConflict."""
    return _same_gce(mine, theirs) or _same_aws(mine, theirs) or _same_iscsi(mine, theirs) or _same_rbd(mine, theirs)


def _same_gce(mine: corev1.Volume, theirs: corev1.Volume) -> bool:
    one, other = mine.gce_persistent_disk, theirs.gce_persistent_disk
    if one is None or other is None:
        return False
    return one.pd_name == other.pd_name and not (one.read_only and other.read_only)


def _same_aws(mine: corev1.Volume, theirs: corev1.Volume) -> bool:
    """Not even read-only mounts go together."""
    one, other = mine.aws_elastic_block_store, theirs.aws_elastic_block_store
    return one is not None and other is not None and one.volume_id == other.volume_id


def _same_iscsi(mine: corev1.Volume, theirs: corev1.Volume) -> bool:
    one, other = mine.iscsi, theirs.iscsi
    if one is None or other is None:
        return False
    return one.iqn == other.iqn and not (one.read_only and other.read_only)


def _same_rbd(mine: corev1.Volume, theirs: corev1.Volume) -> bool:
    """One monitor in common is enough."""
    one, other = mine.rbd, theirs.rbd
    if one is None or other is None or (one.pool, one.image) != (other.pool, other.image):
        return False
    return bool(set(one.monitors) & set(other.monitors)) and not (one.read_only and other.read_only)
