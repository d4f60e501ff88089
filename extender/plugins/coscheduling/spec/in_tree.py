"""What kube-scheduler's own PodGroup and CompositePodGroup ask for: each field is honoured, or refused by its name.

PodGroupManager keeps the result. Left out are references to the Workload that it was made from, which ask for nothing.
Kubernetes: pkg/apis/scheduling/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from extender.api.schedulingv1alpha2 import PodGroup, PodGroupSpec, SchedulingConstraints
from extender.api.schedulingv1alpha3 import CompositePodGroup, CompositePodGroupSpec
from extender.api.schedulingv1beta1 import DisruptionMode
from extender.plugins.coscheduling.spec.counts import check_minimum
from extender.plugins.coscheduling.spec.field_errors import FieldError, invalid, too_many, unsupported
from extender.plugins.coscheduling.spec.group_annotations import Asked, asked_beside
from extender.plugins.coscheduling.spec.keys import TOPOLOGY_REQUIRED
from extender.plugins.coscheduling.spec.named_groups import check_group_name, check_label_key
from extender.plugins.coscheduling.spec.pod_group import GroupSpec, completed, unreadable
from extender.plugins.coscheduling.spec.reading import Reading

PARENT = "spec.parentCompositePodGroupName"
HIGHEST_PRIORITY = 1_000_000_000  # that users may give; those above are the system's
_WHOLE = {"Pod": False, "PodGroup": True}  # of v1alpha2
_PREEMPTS = {"PreemptLowerPriority": True, "Never": False}


def spec_of_in_tree(pod_group: PodGroup, beside: Collection[tuple[str, ...]] = ()) -> GroupSpec:
    """A gang of minCount; with the basic policy each pod is on its own. beside: what its pods' annotations ask for (asked_beside)."""
    if pod_group.unreadable:
        return unreadable(pod_group)
    reading, spec = Reading(), pod_group.spec
    reading.field("spec.schedulingPolicy", partial(_exactly_one, spec.scheduling_policy, "basic", "gang"))
    minimum = reading.field("spec.schedulingPolicy.gang.minCount", partial(_minimum, spec))
    level = reading.field("spec.schedulingConstraints.topology", partial(topology_key, spec.scheduling_constraints))
    reading.field("spec.resourceClaims", partial(_no_claims, spec))
    asked = asked_beside(pod_group.metadata, pod_group.key, beside)
    reading.field(f"annotation {TOPOLOGY_REQUIRED}", partial(_one_level, asked, level or ""))
    parent = _parent_key(reading, pod_group.metadata.namespace, spec.parent_composite_pod_group_name)
    reading.field(f"annotation {asked.groups_key}", partial(_one_set, asked, parent))
    group = GroupSpec(
        key=pod_group.key,
        min_member=minimum or 0,
        created=pod_group.metadata.creation_timestamp,
        priority=priority_of(reading, spec.priority, spec.priority_class_name),
        preempts=preempts(reading, spec.preemption_policy),
        parent=parent,
        disrupted_whole=bool(reading.field("spec.disruptionMode", partial(disrupted_whole, spec.disruption_mode))),
    )
    asked = replace(asked, topology=replace(asked.topology, node_label=level or ""))
    return completed(group, reading.invalid, asked, "PodGroup")


@dataclass(frozen=True, slots=True)
class CompositeSpec:
    """min_groups: how many of its groups have to start together; 1 with the basic policy, where each starts on its own.

    parent: the key of the CompositePodGroup that it is a group of, empty for none. invalid: the text of a refusal. All other fields
    as in GroupSpec and AskedTopology.
    """

    key: str
    min_groups: int = 1
    parent: str = ""
    node_label: str = ""
    priority: int | None = None
    preempts: bool = True
    disrupted_whole: bool = False
    invalid: str = ""


def spec_of_composite(composite: CompositePodGroup) -> CompositeSpec:
    if composite.unreadable:
        return CompositeSpec(
            composite.key, invalid=f"CompositePodGroup {composite.key} is invalid: {composite.unreadable}"
        )
    reading, spec = Reading(), composite.spec
    reading.field("spec.schedulingPolicy", partial(_exactly_one, spec.scheduling_policy, "basic", "gang"))
    minimum = reading.field("spec.schedulingPolicy.gang.minGroupCount", partial(_min_groups, spec))
    level = reading.field("spec.schedulingConstraints.topology", partial(topology_key, spec.scheduling_constraints))
    found = CompositeSpec(
        key=composite.key,
        min_groups=minimum or 1,
        parent=_parent_key(reading, composite.metadata.namespace, spec.parent_composite_pod_group_name),
        node_label=level or "",
        priority=priority_of(reading, spec.priority, spec.priority_class_name),
        preempts=preempts(reading, spec.preemption_policy),
        disrupted_whole=bool(reading.field("spec.disruptionMode", partial(disrupted_whole, spec.disruption_mode))),
    )
    wrong = reading.invalid
    return replace(found, invalid=f"CompositePodGroup {found.key} is invalid: {wrong}") if wrong else found


def _min_groups(spec: CompositePodGroupSpec) -> int:
    gang = spec.scheduling_policy.gang
    return check_minimum(gang.min_group_count) if gang is not None else 1


def _parent_key(reading: Reading, namespace: str, name: str | None) -> str:
    """Empty where there is none, or where it is no name."""
    if not name:
        return ""
    found = reading.field(PARENT, partial(check_group_name, name))
    return f"{namespace}/{found}" if found else ""


def _one_set(asked: Asked, parent: str) -> None:
    if asked.groups and parent:
        raise FieldError(f"Forbidden: {PARENT} says already which groups start together")


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
    _exactly_one(mode, "single", "all")
    return mode.all is not None


def _exactly_one(union: object, *members: str) -> None:
    """None of them is one that came to Kubernetes later, and cannot be honoured. Raises FieldError."""
    if sum(getattr(union, name) is not None for name in members) != 1:
        named = ", ".join(f"`{name}`" for name in members)
        raise FieldError(f"Invalid value: must specify exactly one of: {named}")


def _no_claims(spec: PodGroupSpec) -> None:
    if spec.resource_claims:
        raise FieldError("Forbidden: claims that the pods of a group share are not supported")


def _one_level(asked: Asked, level: str) -> None:
    if level and asked.topology.required not in ("", level):
        raise invalid(asked.topology.required, f"spec.schedulingConstraints.topology requires {level}")
