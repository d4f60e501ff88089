"""How many of a group's members have each role, counted as they come and go.

Koordinator and Volcano: a gang's minimum for each role (task)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from extender.api import corev1
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL, Roles, role_of
from extender.plugins.coscheduling.state.member import Member


class RoleCounts:
    """How many of a group's members have each role, counted as they come and go: to look at all of them with each filter and bind
    call would cost a gang the square of its size. Not locked: the manager's lock guards it."""

    def __init__(self) -> None:
        self._label = ROLE_LABEL  # which the owner of the group may change
        self._counts: Counter[str] = Counter()

    def add(self, pod: corev1.Pod) -> None:
        self._counts[role_of(pod, self._label)] += 1

    def remove(self, pod: corev1.Pod) -> None:
        role = role_of(pod, self._label)
        self._counts[role] -= 1
        if not self._counts[role]:
            del self._counts[role]

    def among(self, uids: AbstractSet[str], members: Mapping[str, Member], roles: Roles) -> Mapping[str, int]:
        """How many of these UIDs have each of the roles; at least 0 for each. members: all of the group, by UID.

        The fewer are looked at: these, or those that are not among them.
        """
        if roles.label != self._label:
            self._label = roles.label
            self._counts = Counter(roles.role_of(each.pod) for each in members.values())
        others = members.keys() - uids
        if len(others) >= len(uids):
            return Counter(roles.role_of(members[uid].pod) for uid in uids if uid in members)
        counts = {role: self._counts[role] for role, _ in roles.minima}
        for uid in others:
            role = roles.role_of(members[uid].pod)
            if role in counts:
                counts[role] -= 1
        return counts
