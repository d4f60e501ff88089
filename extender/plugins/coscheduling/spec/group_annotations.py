"""What a group's annotations ask for beyond minMember: match policy, roles, topology, the groups it starts together with.

Read from the PodGroup, or from the pods of a group that has no object. Our own keys come before Koordinator's.
`pod_group` puts it into the GroupSpec; a group that asks for nonsense is refused with the key and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from extender.api.schedulingv1alpha1 import PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.plugins.coscheduling.spec import koordinator
from extender.plugins.coscheduling.spec.match_policy import MATCH_POLICY_ANNOTATION, MatchPolicy, parse_match_policy
from extender.plugins.coscheduling.spec.named_groups import GROUPS_ANNOTATION, Keys, parse_groups
from extender.plugins.coscheduling.spec.roles import (
    NO_ROLES,
    ROLE_LABEL,
    ROLE_LABEL_ANNOTATION,
    ROLES_ANNOTATION,
    Roles,
    parse_roles,
)
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, PREFERRED, REQUIRED, AskedTopology

T = TypeVar("T")

KEYS = (
    MATCH_POLICY_ANNOTATION,
    GROUPS_ANNOTATION,
    ROLES_ANNOTATION,
    ROLE_LABEL_ANNOTATION,
    REQUIRED,
    PREFERRED,
    koordinator.MATCH_POLICY,
    koordinator.GROUPS,
    koordinator.WAITING_TIME,
    koordinator.MODE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """`invalid`: the key that is wrong, and why."""

    match_policy: MatchPolicy = MatchPolicy.WAITING_AND_RUNNING
    groups: Keys = ()
    roles: Roles = NO_ROLES
    schedule_timeout_seconds: int | None = None
    topology: AskedTopology = NO_TOPOLOGY
    invalid: str = ""


NOTHING = Asked()
_BY_DEFAULT_OF_KOORDINATOR = Asked(match_policy=MatchPolicy.ONCE_SATISFIED)


def relevant(annotations: Mapping[str, str]) -> tuple[str | None, ...]:
    """Equal where two sets of annotations ask for the same."""
    return tuple(annotations.get(key) for key in KEYS) if annotations else (None,) * len(KEYS)


def naming(annotations: Mapping[str, str]) -> tuple[str | None, ...]:
    """What of a pod's annotations may change its group, or what that asks for."""
    named = (
        (annotations.get(koordinator.NAME), annotations.get(koordinator.MIN_AVAILABLE)) if annotations else (None,) * 2
    )
    return named + relevant(annotations)


def asks_for(pod_group: PodGroup | InTreePodGroup) -> object:
    """Equal where nothing has changed that counts: conditions, other annotations and managed fields do not."""
    return pod_group.spec, relevant(pod_group.metadata.annotations)


def names_groups(annotations: Mapping[str, str]) -> bool:
    return GROUPS_ANNOTATION in annotations or koordinator.GROUPS in annotations


def asked_by(annotations: Mapping[str, str], key: str, *, of_koordinator: bool = False) -> Asked:
    """of_koordinator: a group made by Koordinator's annotations has Koordinator's default, once-satisfied."""
    default = _BY_DEFAULT_OF_KOORDINATOR if of_koordinator else NOTHING
    if not any(name in annotations for name in KEYS):
        return default
    reading = _Reading(annotations)
    policy = reading.first(
        (MATCH_POLICY_ANNOTATION, parse_match_policy), (koordinator.MATCH_POLICY, parse_match_policy)
    )
    groups = reading.first(
        (GROUPS_ANNOTATION, lambda text: parse_groups(text, key)),
        (koordinator.GROUPS, lambda text: koordinator.parse_group_list(text, key)),
    )
    label = annotations.get(ROLE_LABEL_ANNOTATION) or ROLE_LABEL
    roles = reading.first((ROLES_ANNOTATION, lambda text: parse_roles(text, label)))
    wait = reading.first((koordinator.WAITING_TIME, koordinator.parse_duration))
    reading.first((koordinator.MODE, lambda _: koordinator.check_mode(annotations)))
    if reading.invalid:
        return Asked(invalid=reading.invalid)
    seconds = max(1, round(wait)) if wait else None
    levels = AskedTopology(reading.text(REQUIRED), reading.text(PREFERRED))
    return Asked(policy or default.match_policy, groups or (), roles or NO_ROLES, seconds, levels)


class _Reading:
    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self.invalid = ""

    def text(self, key: str) -> str:
        return self._annotations.get(key, "").strip()

    def first(self, *readers: tuple[str, Callable[[str], T]]) -> T | None:
        """Of the first key that is there; None where none is, or it is wrong."""
        for key, read in readers:
            text = self.text(key)
            if text:
                try:
                    return read(text)
                except ValueError as error:
                    self.invalid = self.invalid or f"annotation {key}: {error}"
                    return None
        return None
