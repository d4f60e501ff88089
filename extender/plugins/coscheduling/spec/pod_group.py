"""What a group asks for, from its PodGroup, or from its pods where there is no object; `in_tree` reads kube-scheduler's own.

PodGroupManager keeps it. A value that cannot be read makes the group invalid, with the key or the field and the reason.
scheduler-plugins: apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from extender.api import corev1
from extender.api.koordinatorv1alpha1 import PodGroup as KoordinatorPodGroup
from extender.api.metadata_keys import Key
from extender.api.quantity import ResourceList
from extender.api.schedulingv1alpha1 import PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.api.volcanov1beta1 import PodGroup as VolcanoPodGroup
from extender.framework.resource import Resource
from extender.plugins.coscheduling.spec.counts import NO_PATIENCE, Patience, check_minimum, check_wait_seconds
from extender.plugins.coscheduling.spec.field_errors import invalid, too_many
from extender.plugins.coscheduling.spec.group_annotations import (
    Asked,
    asked_beside,
    asked_by,
    difference,
    relevant,
    with_slices_of_pods,
)
from extender.plugins.coscheduling.spec.keys import BY_POD, INDICES, JOBSET_INDEX, LIGHTWEIGHT_MIN_AVAILABLE
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS, Keys, check_label_key
from extender.plugins.coscheduling.spec.reading import Reading
from extender.plugins.coscheduling.spec.roles import NO_ROLES, Roles
from extender.plugins.coscheduling.spec.sources.source import LIGHTWEIGHT, Source
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, AskedTopology, Slicing

MAX_RESOURCES = 64  # in minResources
TOGETHER = "groups that start together"


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What a group asks for. `invalid` is the text of a refusal where it asks for nonsense.

    min_member is at least the sum of the roles' minima, and 0 where it cannot be read. groups: those that it names to start
    together; groups_key: the annotation that names them. kind: what messages call the group.
    been, to_come: how many that its object counts, and min_member does not: those that have ended, and those that are made later.
    index: where a member's index in it is. ignored: fields of its object, and annotations, that are not honoured, though they keep no gang
    from being whole.

    Of kube-scheduler's own PodGroup: priority is the gang's own (None: its members'); preempts: whether pods may be evicted
    for it; disrupted_whole: no member goes alone; parent: the key of the CompositePodGroup that it is a group of, or empty.
    """

    key: str
    min_member: int
    min_resources: Resource | None = None
    schedule_timeout_seconds: int | None = None
    created: datetime | None = None
    invalid: str = ""
    match_policy: MatchPolicy = MatchPolicy.WAITING_AND_RUNNING
    groups: Keys = ()
    groups_key: str = ""
    roles: Roles = NO_ROLES
    topology: AskedTopology = NO_TOPOLOGY
    patience: Patience = NO_PATIENCE
    kind: str = "group"
    priority: int | None = None
    preempts: bool = True
    disrupted_whole: bool = False
    ignored: tuple[str, ...] = ()
    parent: str = ""
    index: Key[int | None] | None = None
    been: int = 0
    to_come: int = 0

    @property
    def asked(self) -> int:
        """minMember as users know it."""
        return self.min_member + self.been + self.to_come

    def rank_of(self, pod: corev1.Pod) -> tuple[int, int] | None:
        """(of a JobSet the number of its Job, else 0; its index there); None for a member without an index."""
        metadata, there = pod.metadata, self._index_keys_of(pod)
        if not there:
            return None
        reading = Reading()
        found = (reading.value(metadata, key) for key in there)
        index, job = next((each for each in found if each is not None), None), reading.value(metadata, JOBSET_INDEX)
        return (job or 0, index) if index is not None else None

    def index_key_of(self, pod: corev1.Pod) -> Key[int | None] | None:
        """Where its index is; None for a member without one."""
        return next(iter(self._index_keys_of(pod)), None)

    def _index_keys_of(self, pod: corev1.Pod) -> list[Key[int | None]]:
        return [key for key in (self.index, *INDICES) if key is not None and key.on(pod.metadata)]

    def slicing_of(self, pod: corev1.Pod) -> Slicing | None:
        """What the member's slices are: its PodGroup says it, or it says it itself."""
        if not self.topology.by_pods:
            return self.topology.slicing
        texts = relevant(pod.metadata)[-len(BY_POD) :]
        return next((slicing for known, slicing in self.topology.by_pods if known == texts), None)


def spec_of_pod_group(
    pod_group: PodGroup | KoordinatorPodGroup, source: Source | None = None, beside: Collection[tuple[str, ...]] = ()
) -> GroupSpec:
    """source: of the object of another system that has the same fields. beside: what its pods' annotations ask for (asked_beside)."""
    if pod_group.unreadable:
        return unreadable(pod_group)
    reading, asked_for = Reading(), pod_group.spec
    minimum = reading.field("spec.minMember", partial(check_minimum, asked_for.min_member))
    resources = reading.field("spec.minResources", partial(check_resources, asked_for.min_resources))
    seconds = reading.field(
        "spec.scheduleTimeoutSeconds", partial(check_wait_seconds, asked_for.schedule_timeout_seconds or 0)
    )
    spec = GroupSpec(
        key=pod_group.key,
        min_member=minimum or 0,
        min_resources=resources,
        schedule_timeout_seconds=seconds or None,
        created=pod_group.metadata.creation_timestamp,
    )
    return completed(spec, reading.invalid, asked_beside(pod_group.metadata, pod_group.key, beside, source), "PodGroup")


def unreadable(pod_group: PodGroup | InTreePodGroup | KoordinatorPodGroup | VolcanoPodGroup) -> GroupSpec:
    spec = GroupSpec(pod_group.key, 0, created=pod_group.metadata.creation_timestamp)
    return completed(spec, pod_group.unreadable, Asked(), "PodGroup")


def spec_of_labels(key: str, members: Iterable[tuple[corev1.Pod, GroupRef]]) -> GroupSpec:
    """A lightweight group is what its pods say, and they have to agree; its age is that of its oldest pod."""
    known = list(members)
    stamps = [stamp for pod, _ in known if (stamp := pod.metadata.creation_timestamp) is not None]
    spec = GroupSpec(key, 0, created=min(stamps, default=None))
    first, ref = known[0]
    if ref.invalid:
        return replace(spec, invalid=ref.invalid)
    if any(other.min_available != ref.min_available for _, other in known):
        return replace(spec, invalid=f"PodGroupMinAvailables of {key} do not match")
    wishes = _wishes(first, ref)
    for pod, other in known:
        if _wishes(pod, other) != wishes:
            where = difference(first.metadata, pod.metadata)
            return replace(spec, invalid=f"PodGroup annotations of {key} do not match{where and f': {where}'}")
    reading = Reading()
    source = ref.source or LIGHTWEIGHT
    minimum = reading.required(first.metadata, source.minimum or LIGHTWEIGHT_MIN_AVAILABLE)
    asked = with_slices_of_pods(asked_by(first.metadata, key, source), {relevant(pod.metadata) for pod, _ in known})
    return completed(replace(spec, min_member=minimum or 0, index=source.index), reading.invalid, asked, "group")


def _wishes(pod: corev1.Pod, ref: GroupRef) -> tuple[object, ...]:
    texts = relevant(pod.metadata)
    return ref.source.name if ref.source is not None else "", any(texts[: -len(BY_POD)]) and texts[: -len(BY_POD)]


def completed(spec: GroupSpec, invalid: str, asked: Asked, kind: str) -> GroupSpec:
    """The group with what its annotations ask for, and with what is wrong of it or of them."""
    wrong = invalid or asked.invalid
    spec = replace(
        spec,
        kind=kind,
        min_member=max(spec.min_member, asked.roles.total),
        schedule_timeout_seconds=spec.schedule_timeout_seconds or asked.schedule_timeout_seconds,
        match_policy=asked.match_policy,
        groups=asked.groups,
        groups_key=asked.groups_key,
        roles=asked.roles,
        topology=asked.topology,
        patience=asked.patience,
        ignored=(*spec.ignored, *asked.ignored),
    )
    return _invalid(spec, wrong) if wrong else spec


def too_many_together(spec: GroupSpec, number: int) -> GroupSpec:
    """The group, invalid: with those that it names its set would have that many groups."""
    if spec.invalid:
        return spec
    return _invalid(spec, f"annotation {spec.groups_key}: {too_many(MAX_GROUPS, TOGETHER, number)}")


def _invalid(spec: GroupSpec, wrong: str) -> GroupSpec:
    return replace(spec, invalid=f"{spec.kind} {spec.key} is invalid: {wrong}")


def check_resources(asked: ResourceList) -> Resource | None:
    """minResources; None for none. Raises FieldError."""
    if len(asked) > MAX_RESOURCES:
        raise too_many(MAX_RESOURCES, "resources")
    for name, amount in asked.items():
        check_label_key(name)
        if amount.milli_value < 0:
            raise invalid(amount.text, f"{name} must be greater than or equal to 0")
    return Resource.from_list(asked) if asked else None
