"""Which group a pod belongs to, and what that group asks for.

Groups come from the PodGroup CRD by a label (its names are configuration), or, with no CRD at all, from the two
lightweight labels of scheduler-plugins v0.18.
scheduler-plugins: pkg/util/podgroup.go, apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from extender.api import corev1
from extender.api.schedulingv1alpha1 import (
    LIGHTWEIGHT_MIN_AVAILABLE_LABEL,
    LIGHTWEIGHT_NAME_LABEL,
    POD_GROUP_LABEL,
    PodGroup,
)
from extender.framework.resource import Resource

MAX_MEMBERS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A pod's membership. `min_available` is set for lightweight groups only, where the labels are all there is."""

    key: str
    lightweight: bool = False
    min_available: str = ""


@dataclass(frozen=True, slots=True)
class GroupLabels:
    """The pod labels that name a PodGroup; the first that a pod has decides."""

    names: tuple[str, ...] = (POD_GROUP_LABEL,)

    def group_of(self, pod: corev1.Pod) -> GroupRef | None:
        labels = pod.metadata.labels
        if not labels:
            return None
        for name in self.names:
            if group := labels.get(name):
                return GroupRef(f"{pod.metadata.namespace}/{group}")
        group = labels.get(LIGHTWEIGHT_NAME_LABEL)
        minimum = labels.get(LIGHTWEIGHT_MIN_AVAILABLE_LABEL)
        if group and minimum:
            return GroupRef(f"{pod.metadata.namespace}/{group}", lightweight=True, min_available=minimum)
        return None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What a group asks for. `invalid` is the text of a refusal where it asks for nonsense."""

    key: str
    min_member: int
    min_resources: Resource | None = None
    schedule_timeout_seconds: int | None = None
    created: datetime | None = None
    pod_group: PodGroup | None = None
    invalid: str = ""


def spec_of_pod_group(pod_group: PodGroup) -> GroupSpec:
    minimum = pod_group.spec.min_member
    invalid = ""
    if not 1 <= minimum <= MAX_MEMBERS:
        invalid = f"PodGroup {pod_group.key} is invalid: spec.minMember: Invalid value: {minimum}: must be greater than or equal to 1"
    resources = pod_group.spec.min_resources
    return GroupSpec(
        key=pod_group.key,
        min_member=minimum,
        min_resources=Resource.from_list(resources) if resources else None,
        schedule_timeout_seconds=pod_group.spec.schedule_timeout_seconds,
        created=pod_group.metadata.creation_timestamp,
        pod_group=pod_group,
        invalid=invalid,
    )


def spec_of_labels(key: str, members: Iterable[tuple[corev1.Pod, GroupRef]]) -> GroupSpec:
    """A lightweight group is what its pods say, and they have to agree; its age is that of its oldest pod."""
    minimums: set[str] = set()
    created: datetime | None = None
    for pod, ref in members:
        minimums.add(ref.min_available)
        stamp = pod.metadata.creation_timestamp
        if stamp is not None and (created is None or stamp < created):
            created = stamp
    if len(minimums) > 1:
        return GroupSpec(key, 0, created=created, invalid=f"PodGroupMinAvailables of {key} do not match")
    text = next(iter(minimums), "")
    minimum = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    if not 1 <= minimum <= MAX_MEMBERS:
        return GroupSpec(
            key,
            0,
            created=created,
            invalid=f"label {LIGHTWEIGHT_MIN_AVAILABLE_LABEL} of {key}: Invalid value: {text[:32]!r}: "
            "must be a number greater than or equal to 1",
        )
    return GroupSpec(key, minimum, created=created)


def foreign_gates(pod: corev1.Pod, own: Sequence[str]) -> bool:
    """Whether the pod is held back by a scheduling gate that is not ours to take off."""
    return any(gate.name not in own for gate in pod.spec.scheduling_gates)
