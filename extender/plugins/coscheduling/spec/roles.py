"""Roles inside one group, each with a minimum of its own: one master and three workers.

An annotation of the PodGroup lists them, a label of each pod says which it has. The plan places each role's minimum first,
and the barrier waits for them. minMember counts the whole group, and is at least the sum of the minima.
No counterpart: scheduler-plugins and kube-scheduler know one minimum a group.
"""

from __future__ import annotations

from dataclasses import dataclass

from extender.api import corev1

ROLES_ANNOTATION = "gang-extender.dev/roles"
ROLE_LABEL_ANNOTATION = "gang-extender.dev/role-label"  # for pods whose maker has a label for roles already
ROLE_LABEL = "gang-extender.dev/role"
MAX_MINIMUM = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Roles:
    """minima: role -> how many at least, in the order in which they are written."""

    minima: tuple[tuple[str, int], ...] = ()
    label: str = ROLE_LABEL

    @property
    def total(self) -> int:
        return sum(minimum for _, minimum in self.minima)

    def role_of(self, pod: corev1.Pod) -> str:
        return pod.metadata.labels.get(self.label, "")


NO_ROLES = Roles()


def parse_roles(text: str, label: str = ROLE_LABEL) -> Roles:
    """`master=1,worker=3`. Raises ValueError, worded for the group's owner."""
    minima: dict[str, int] = {}
    for entry in text.split(","):
        role, equals, minimum = (part.strip() for part in entry.partition("="))
        number = int(minimum) if minimum.isascii() and minimum.isdigit() and len(minimum) <= 10 else -1
        if not role or not equals or not 0 <= number <= MAX_MINIMUM:
            raise ValueError(f"Invalid value: {entry[:63]!r}: must be role=minimum, such as worker=3")
        if role in minima:
            raise ValueError(f"Duplicate value: {role[:63]!r}")
        minima[role] = number
    if sum(minima.values()) > MAX_MINIMUM:
        raise ValueError("Invalid value: the sum of the minima is too large")
    return Roles(tuple(minima.items()), label)
