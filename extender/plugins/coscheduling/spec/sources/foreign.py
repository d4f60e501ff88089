"""What a group asks for by another system's PodGroup: each field is honoured, refused by its name, or named as not honoured.

PodGroupManager keeps the result. Koordinator's object has the fields of scheduler-plugins' own, and Koordinator's default policy.
Volcano: pkg/scheduler/api/job_info.go, pkg/scheduler/plugins/gang, pkg/scheduler/plugins/network-topology-aware
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial

from extender.api import koordinatorv1alpha1, volcanov1beta1
from extender.plugins.coscheduling.spec.counts import MAX_MEMBERS, check_minimum
from extender.plugins.coscheduling.spec.field_errors import FieldError, invalid, too_many, unsupported
from extender.plugins.coscheduling.spec.group_annotations import asked_beside
from extender.plugins.coscheduling.spec.named_groups import check_label_value
from extender.plugins.coscheduling.spec.pod_group import (
    GroupSpec,
    check_resources,
    completed,
    spec_of_pod_group,
    unreadable,
)
from extender.plugins.coscheduling.spec.reading import Reading
from extender.plugins.coscheduling.spec.roles import MAX_ROLES, NO_ROLES, Roles
from extender.plugins.coscheduling.spec.sources.source import KOORDINATOR_OBJECT, VOLCANO_OBJECT
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, AskedTopology, parse_level, tier

ForeignPodGroup = koordinatorv1alpha1.PodGroup | volcanov1beta1.PodGroup
KINDS = (koordinatorv1alpha1.GROUP, volcanov1beta1.GROUP)
"""Their API groups; of two objects of one name the first counts."""

_DEFAULT_QUEUE = "default"
_COUNT_QUOTA = "count/"  # of a ResourceQuota: Volcano's controller writes count/pods beside what nodes have, and its scheduler skips it
_MODES = ("hard", "soft")


def kind_of(pod_group: ForeignPodGroup) -> str:
    """Its API group."""
    return koordinatorv1alpha1.GROUP if isinstance(pod_group, koordinatorv1alpha1.PodGroup) else volcanov1beta1.GROUP


def spec_of_foreign(pod_group: ForeignPodGroup, beside: Collection[tuple[str, ...]] = ()) -> GroupSpec:
    """beside: what its pods' annotations ask for (asked_beside)."""
    if isinstance(pod_group, koordinatorv1alpha1.PodGroup):
        return spec_of_pod_group(pod_group, KOORDINATOR_OBJECT, beside)
    return _spec_of_volcano(pod_group, beside)


def _spec_of_volcano(pod_group: volcanov1beta1.PodGroup, beside: Collection[tuple[str, ...]]) -> GroupSpec:
    """A minMember of 0, as of a PodGroup that says nothing, is no constraint."""
    if pod_group.unreadable:
        return unreadable(pod_group)
    reading, spec = Reading(), pod_group.spec
    minimum = reading.field("spec.minMember", partial(check_minimum, spec.min_member or 1))
    of_nodes = {name: amount for name, amount in spec.min_resources.items() if not name.startswith(_COUNT_QUOTA)}
    resources = reading.field("spec.minResources", partial(check_resources, of_nodes))
    roles = reading.field("spec.minTaskMember", partial(_roles, spec.min_task_member, spec.min_member))
    topology = reading.field("spec.networkTopology", partial(_topology, spec.network_topology))
    reading.field("spec.subGroupPolicy", partial(_no_sub_groups, len(spec.sub_group_policy)))
    asked = asked_beside(pod_group.metadata, pod_group.key, beside, VOLCANO_OBJECT)
    if not asked.invalid:
        asked = replace(
            asked,
            roles=asked.roles if asked.roles.minima else roles or NO_ROLES,
            topology=asked.topology if asked.topology != NO_TOPOLOGY else topology or NO_TOPOLOGY,
        )
    found = GroupSpec(
        key=pod_group.key,
        min_member=minimum or 0,
        min_resources=resources,
        created=pod_group.metadata.creation_timestamp,
        ignored=tuple(_ignored(spec)),
    )
    return completed(found, reading.invalid, asked, "PodGroup")


def _ignored(spec: volcanov1beta1.PodGroupSpec) -> Iterator[str]:
    """What has no meaning here, and keeps no gang from being whole."""
    if spec.queue not in ("", _DEFAULT_QUEUE):
        yield "spec.queue"
    if spec.priority_class_name:
        yield "spec.priorityClassName (the pods' priority counts)"


def _roles(minima: dict[str, int], min_member: int) -> Roles:
    """None where minMember is below their sum: tasks' minima default to their replicas, and such a job is elastic. Raises FieldError."""
    if len(minima) > MAX_ROLES:
        raise too_many(MAX_ROLES, "tasks")
    for task, minimum in minima.items():
        check_label_value(task)
        if minimum < 0:
            raise invalid(minimum, f"{task} must be greater than or equal to 0")
    if sum(minima.values()) > MAX_MEMBERS:
        raise FieldError("Invalid value: the sum of the minima is too large")
    if min_member < sum(minima.values()) or not minima:
        return NO_ROLES
    return Roles(tuple(minima.items()), volcanov1beta1.TASK_SPEC)


def _topology(asked: volcanov1beta1.NetworkTopology | None) -> AskedTopology:
    """hard is a required level, soft a preferred one; without a tier soft prefers the narrowest. Raises FieldError."""
    if asked is None:
        return NO_TOPOLOGY
    if asked.mode not in _MODES:
        raise unsupported(asked.mode, _MODES)
    allowed, name = asked.highest_tier_allowed, asked.highest_tier_name
    if allowed is not None and name:
        raise FieldError("Forbidden: highestTierAllowed and highestTierName may not be set together")
    if allowed is None and not name and asked.mode == "hard":
        raise FieldError("Required value: highestTierAllowed or highestTierName, of the mode hard")
    if allowed is not None and allowed < 1:
        raise invalid(allowed, "highestTierAllowed must be greater than or equal to 1, the narrowest tier")
    level = parse_level(name) if name else tier(allowed or 1)
    return AskedTopology(required=level) if asked.mode == "hard" else AskedTopology(preferred=level)


def _no_sub_groups(number: int) -> None:
    if number:
        raise FieldError("Forbidden: parts of a group with minima or topologies of their own are not supported")
