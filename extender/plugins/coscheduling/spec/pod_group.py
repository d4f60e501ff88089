"""Which group a pod belongs to, and what that group asks for.

Groups come from the PodGroup CRD by a label (its names are configuration), or, with no CRD at all, from the two
lightweight labels of scheduler-plugins v0.18 or Koordinator's annotations, or from kube-scheduler's own PodGroup by
spec.schedulingGroup where that is configured.
scheduler-plugins: pkg/util/podgroup.go, apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from extender.api import corev1
from extender.api.schedulingv1alpha1 import (
    LIGHTWEIGHT_MIN_AVAILABLE_LABEL,
    LIGHTWEIGHT_NAME_LABEL,
    POD_GROUP_LABEL,
    PodGroup,
)
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.framework.resource import Resource
from extender.plugins.coscheduling.spec import koordinator
from extender.plugins.coscheduling.spec.group_annotations import Asked, asked_by, relevant
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.named_groups import Keys
from extender.plugins.coscheduling.spec.roles import NO_ROLES, Roles
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, AskedTopology

MAX_MEMBERS = 2**31 - 1
_MINIMUM_OF_LABELS = f"label {LIGHTWEIGHT_MIN_AVAILABLE_LABEL}"
_MINIMUM_OF_KOORDINATOR = f"annotation {koordinator.MIN_AVAILABLE}"


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A pod's membership. `min_available` is set for lightweight groups only, where the labels are all there is."""

    key: str
    lightweight: bool = False
    min_available: str = ""
    of_koordinator: bool = False


@dataclass(frozen=True, slots=True)
class GroupLabels:
    """The pod labels that name a PodGroup; the first that a pod has decides. in_tree: spec.schedulingGroup counts too."""

    names: tuple[str, ...] = (POD_GROUP_LABEL,)
    in_tree: bool = False

    def group_of(self, pod: corev1.Pod) -> GroupRef | None:
        labels, annotations = pod.metadata.labels, pod.metadata.annotations
        if labels:
            for name in self.names:
                if group := labels.get(name):
                    return GroupRef(f"{pod.metadata.namespace}/{group}")
            group = labels.get(LIGHTWEIGHT_NAME_LABEL)
            minimum = labels.get(LIGHTWEIGHT_MIN_AVAILABLE_LABEL)
            if group and minimum:
                return GroupRef(f"{pod.metadata.namespace}/{group}", lightweight=True, min_available=minimum)
        if self.in_tree and pod.spec.scheduling_group and (group := pod.spec.scheduling_group.pod_group_name):
            return GroupRef(f"{pod.metadata.namespace}/{group}")
        if annotations and (group := annotations.get(koordinator.NAME)):
            minimum = annotations.get(koordinator.MIN_AVAILABLE, "")
            return GroupRef(f"{pod.metadata.namespace}/{group}", True, minimum, of_koordinator=True)
        return None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What a group asks for. `invalid` is the text of a refusal where it asks for nonsense.

    min_member is at least the sum of the roles' minima. groups: whom it names to start together with.
    """

    key: str
    min_member: int
    min_resources: Resource | None = None
    schedule_timeout_seconds: int | None = None
    created: datetime | None = None
    pod_group: PodGroup | None = None
    invalid: str = ""
    match_policy: MatchPolicy = MatchPolicy.WAITING_AND_RUNNING
    groups: Keys = ()
    roles: Roles = NO_ROLES
    topology: AskedTopology = NO_TOPOLOGY


def spec_of_pod_group(pod_group: PodGroup) -> GroupSpec:
    minimum = pod_group.spec.min_member
    invalid = ""
    if not 1 <= minimum <= MAX_MEMBERS:
        invalid = f"PodGroup {pod_group.key} is invalid: spec.minMember: Invalid value: {minimum}: must be greater than or equal to 1"
    resources = pod_group.spec.min_resources
    asked = asked_by(pod_group.metadata.annotations, pod_group.key)
    spec = GroupSpec(
        key=pod_group.key,
        min_member=minimum,
        min_resources=Resource.from_list(resources) if resources else None,
        schedule_timeout_seconds=pod_group.spec.schedule_timeout_seconds,
        created=pod_group.metadata.creation_timestamp,
        pod_group=pod_group,
        invalid=invalid,
    )
    return _with(spec, asked, f"PodGroup {pod_group.key} is invalid: ")


def spec_of_in_tree(pod_group: InTreePodGroup) -> GroupSpec:
    """kube-scheduler's own object: a gang of minCount; with the basic policy each pod is on its own."""
    gang = pod_group.spec.scheduling_policy.gang
    minimum = gang.min_count if gang is not None else 1
    invalid = ""
    if not 1 <= minimum <= MAX_MEMBERS:
        invalid = f"PodGroup {pod_group.key} is invalid: spec.schedulingPolicy.gang.minCount: Invalid value: {minimum}"
    spec = GroupSpec(pod_group.key, minimum, created=pod_group.metadata.creation_timestamp, invalid=invalid)
    asked = asked_by(pod_group.metadata.annotations, pod_group.key)
    return _with(spec, asked, f"PodGroup {pod_group.key} is invalid: ")


def _with(spec: GroupSpec, asked: Asked, prefix: str) -> GroupSpec:
    """The group with what its annotations ask for."""
    return replace(
        spec,
        min_member=max(spec.min_member, asked.roles.total),
        schedule_timeout_seconds=spec.schedule_timeout_seconds or asked.schedule_timeout_seconds,
        invalid=spec.invalid or (prefix + asked.invalid if asked.invalid else ""),
        match_policy=asked.match_policy,
        groups=asked.groups,
        roles=asked.roles,
        topology=asked.topology,
    )


def spec_of_labels(key: str, members: Iterable[tuple[corev1.Pod, GroupRef]]) -> GroupSpec:
    """A lightweight group is what its pods say, and they have to agree; its age is that of its oldest pod."""
    minimums: set[str] = set()
    asking: dict[tuple[object, ...], Asked] = {}
    of_koordinator = False
    created: datetime | None = None
    for pod, ref in members:
        minimums.add(ref.min_available)
        of_koordinator = of_koordinator or ref.of_koordinator
        wishes = (ref.of_koordinator, *relevant(pod.metadata.annotations))
        if wishes not in asking:
            asking[wishes] = asked_by(pod.metadata.annotations, key, of_koordinator=ref.of_koordinator)
        stamp = pod.metadata.creation_timestamp
        if stamp is not None and (created is None or stamp < created):
            created = stamp
    if len(minimums) > 1:
        return GroupSpec(key, 0, created=created, invalid=f"PodGroupMinAvailables of {key} do not match")
    if len(asking) > 1:
        return GroupSpec(key, 0, created=created, invalid=f"PodGroup annotations of {key} do not match")
    text = next(iter(minimums), "")
    minimum = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    if not 1 <= minimum <= MAX_MEMBERS:
        return GroupSpec(
            key,
            0,
            created=created,
            invalid=f"{_MINIMUM_OF_KOORDINATOR if of_koordinator else _MINIMUM_OF_LABELS} of {key}: "
            f"Invalid value: {text[:32]!r}: must be a number greater than or equal to 1",
        )
    spec = GroupSpec(key, minimum, created=created)
    return _with(spec, next(iter(asking.values()), Asked()), f"group {key} is invalid: ")


def foreign_gates(pod: corev1.Pod, own: Sequence[str]) -> bool:
    """Whether the pod is held back by a scheduling gate that is not ours to take off."""
    return any(gate.name not in own for gate in pod.spec.scheduling_gates)
