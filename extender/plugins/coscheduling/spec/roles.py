"""Roles inside one group, each with a minimum of its own: one master and three workers.

An annotation of the PodGroup lists them, a label of each pod says which it has. The plan places each role's minimum first,
and GangPermit waits for them. minMember counts the whole group, and is at least the sum of the minima.
No counterpart: scheduler-plugins and kube-scheduler know one minimum a group.
"""

from __future__ import annotations

from dataclasses import dataclass

from extender.api import corev1
from extender.plugins.coscheduling.spec.counts import MAX_MEMBERS, parse_count
from extender.plugins.coscheduling.spec.field_errors import FieldError, duplicate, invalid, too_many
from extender.plugins.coscheduling.spec.named_groups import check_label_value

ROLE_LABEL = "gang-extender.dev/role"
MAX_ROLES = 64
LABEL_VALUE = 63  # characters

Minima = tuple[tuple[str, int], ...]
"""Role -> how many at least, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Roles:
    minima: Minima = ()
    label: str = ROLE_LABEL

    @property
    def total(self) -> int:
        return sum(minimum for _, minimum in self.minima)

    def role_of(self, pod: corev1.Pod) -> str:
        return role_of(pod, self.label)


NO_ROLES = Roles()


def role_of(pod: corev1.Pod, key: str) -> str:
    """The value of the label that the owner has named, or of an annotation of that name, as of Volcano's tasks; or "". It is compared
    with the roles, and nothing else."""
    return pod.metadata.labels.get(key) or pod.metadata.annotations.get(key, "")[: LABEL_VALUE + 1]


def parse_minima(text: str) -> Minima:
    """`master=1,worker=3`. Raises FieldError."""
    minima: dict[str, int] = {}
    for entry in text.split(",", MAX_ROLES):
        role, equals, minimum = (part.strip() for part in entry.partition("="))
        if len(minima) == MAX_ROLES:
            raise too_many(MAX_ROLES, "roles")
        number = parse_count(minimum)
        if not role or not equals or number is None:
            raise invalid(entry, "must be role=minimum, such as worker=3")
        if check_label_value(role) in minima:
            raise duplicate(role)
        minima[role] = number
    if sum(minima.values()) > MAX_MEMBERS:
        raise FieldError("Invalid value: the sum of the minima is too large")
    return tuple(minima.items())
