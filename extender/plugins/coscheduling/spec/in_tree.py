"""What a group asks for by kube-scheduler's own PodGroup: each field of its spec is honoured, or refused by its name.

PodGroupManager keeps the result. Left out are references to the Workload that it was made from, which ask for nothing.
Kubernetes: pkg/apis/scheduling/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from extender.api.schedulingv1alpha2 import PodGroup, PodGroupSpec, SchedulingConstraints
from extender.api.schedulingv1beta1 import DisruptionMode
from extender.plugins.coscheduling.spec.counts import check_minimum
from extender.plugins.coscheduling.spec.field_errors import FieldError, invalid, too_many, unsupported
from extender.plugins.coscheduling.spec.group_annotations import Asked, asked_beside
from extender.plugins.coscheduling.spec.keys import TOPOLOGY_REQUIRED
from extender.plugins.coscheduling.spec.named_groups import check_label_key
from extender.plugins.coscheduling.spec.pod_group import GroupSpec, completed, unreadable
from extender.plugins.coscheduling.spec.reading import Reading

HIGHEST_PRIORITY = 1_000_000_000  # that users may give; those above are the system's
_WHOLE = {"Pod": False, "PodGroup": True}  # of v1alpha2
_PREEMPTS = {"PreemptLowerPriority": True, "Never": False}


def spec_of_in_tree(pod_group: PodGroup, beside: Collection[tuple[str, ...]] = ()) -> GroupSpec:
    """A gang of minCount; with the basic policy each pod is on its own. beside: what its pods' annotations ask for (asked_beside)."""
    if pod_group.unreadable:
        return unreadable(pod_group)
    reading, spec = Reading(), pod_group.spec
    minimum = reading.field("spec.schedulingPolicy.gang.minCount", partial(_minimum, spec))
    level = reading.field("spec.schedulingConstraints.topology", partial(topology_key, spec.scheduling_constraints))
    reading.field("spec.resourceClaims", partial(_no_claims, spec))
    asked = asked_beside(pod_group.metadata, pod_group.key, beside)
    reading.field(f"annotation {TOPOLOGY_REQUIRED}", partial(_one_level, asked, level or ""))
    group = GroupSpec(
        key=pod_group.key,
        min_member=minimum or 0,
        created=pod_group.metadata.creation_timestamp,
        priority=priority_of(reading, spec.priority, spec.priority_class_name),
        preempts=preempts(reading, spec.preemption_policy),
        disrupted_whole=bool(reading.field("spec.disruptionMode", partial(disrupted_whole, spec.disruption_mode))),
    )
    asked = replace(asked, topology=replace(asked.topology, node_label=level or ""))
    return completed(group, reading.invalid, asked, "PodGroup")


def _minimum(spec: PodGroupSpec) -> int:
    gang = spec.scheduling_policy.gang
    return check_minimum(gang.min_count) if gang is not None else 1


def topology_key(constraints: SchedulingConstraints | None) -> str:
    """The node label of which all members have to share a value; empty for none. Raises FieldError."""
    levels = constraints.topology if constraints is not None else ()
    if len(levels) > 1:
        raise too_many(1, "items", len(levels))
    return check_label_key(levels[0].key) if levels else ""


def priority_of(reading: Reading, priority: int | None, class_name: str) -> int | None:
    """None: as the members' pods have it."""
    reading.field("spec.priorityClassName", partial(_resolved, priority, class_name))
    return reading.field("spec.priority", partial(_user_priority, priority))


def _resolved(priority: int | None, class_name: str) -> None:
    if class_name and priority is None:
        raise invalid(class_name, "spec.priority is not set, which the API server's Priority admission resolves it to")


def _user_priority(priority: int | None) -> int | None:
    if priority is not None and priority > HIGHEST_PRIORITY:
        raise invalid(priority, f"must be less than or equal to {HIGHEST_PRIORITY}")
    return priority


def preempts(reading: Reading, policy: str | None) -> bool:
    """Whether pods may be evicted for the group."""
    return reading.field("spec.preemptionPolicy", partial(_preempts, policy)) is not False


def _preempts(policy: str | None) -> bool:
    if policy is None:
        return True
    if policy not in _PREEMPTS:
        raise unsupported(policy, _PREEMPTS)
    return _PREEMPTS[policy]


def disrupted_whole(mode: DisruptionMode | str | None) -> bool:
    """Whether all of it goes where one goes. Raises FieldError."""
    if mode is None:
        return False
    if isinstance(mode, str):
        if mode not in _WHOLE:
            raise unsupported(mode, _WHOLE)
        return _WHOLE[mode]
    if (mode.single is None) == (mode.all is None):
        raise FieldError("Invalid value: must specify exactly one of: `single`, `all`")
    return mode.all is not None


def _no_claims(spec: PodGroupSpec) -> None:
    if spec.resource_claims:
        raise FieldError("Forbidden: claims that the pods of a group share are not supported")


def _one_level(asked: Asked, level: str) -> None:
    if level and asked.topology.required not in ("", level):
        raise invalid(asked.topology.required, f"spec.schedulingConstraints.topology requires {level}")
