"""Groups that start together: which group names which, and the sets of groups that follow from it.

An annotation names the other groups; the manager keeps the links, the plan and GangPermit take a set as one.
Within a namespace it is enough that one of two groups names the other. Across namespaces both have to, or any tenant could
make another tenant's gang wait; until the other does, the one that names it waits and says so.

A set has at most MAX_GROUPS. A group that names others so that a set would become larger is refused: its names do not count, it
alone is invalid, and the sets stay as they are. So a set that exists loses no group to one that comes later. When a set gets smaller,
the groups that it kept out are tried again, the first that was refused first.

A change costs as much as the sets that it touches, however many groups and sets there are.
Koordinator: pkg/scheduler/plugins/coscheduling/core/gang_cache.go (gang groups: every gang lists all of them)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count

from extender.framework.index import Index
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS, Keys, namespace_of

TRIED_AT_ONCE = 200
"""Groups that are tried again by one call of `fitting`."""


class GangSetIndex:
    """The links between groups, and which sets have been whole. Not locked: the manager's lock guards it.

    most: groups in a set.
    """

    def __init__(self, most: int = MAX_GROUPS) -> None:
        self._most = most
        self.named: dict[str, Keys] = {}  # by those that are refused, too
        self._peers = Index()  # the links that count, from both of their ends
        self.sets: dict[str, Keys] = {}  # of groups that have peers: all of their set
        self._whole: set[Keys] = set()
        self._refused: dict[str, tuple[int, int]] = {}  # which refusal it was, and how many groups the set would have
        self._refusals = count()
        self._kept_out = Index()  # group -> the refused ones of its own namespace that name it
        self._tried_again: set[str] = set()  # refused groups of which a set has become smaller since

    def name(self, key: str, others: Keys) -> bool:
        """Takes in the groups that a group names. Returns whether that has changed."""
        if self.names(key) == others:
            return False
        self._take_in(key, others)
        return True

    def try_again(self, key: str) -> bool:
        """A group that was refused: returns whether its names count from now on."""
        if key not in self._refused or not self._fits(key):
            return False
        self._take_in(key, self.names(key))
        return True

    def names(self, key: str) -> Keys:
        """The groups that this one names itself."""
        return self.named.get(key, ())

    def gang_set(self, key: str) -> Keys:
        """The keys of all groups that start together with this one, its own among them, sorted."""
        return self.sets.get(key) or (key,)

    def refused(self, key: str) -> int:
        """How many groups its set would have had; 0 for a group that is not refused."""
        return self._refused[key][1] if key in self._refused else 0

    def unanswered(self, key: str) -> str:
        """A group of another namespace that this one names, and that does not name it; empty where there is none."""
        if key in self._refused:
            return ""
        return next((other for other in self.names(key) if not self._agreed(key, other)), "")

    def fitting(self) -> list[str]:
        """Refused groups that would be taken in now, in the order in which they were refused. To be asked about once a second."""
        tried = heapq.nsmallest(TRIED_AT_ONCE, self._tried_again, key=self._refused.__getitem__)
        self._tried_again.difference_update(tried)
        fitting = [key for key in tried if self._fits(key)]
        self._tried_again.update(fitting)  # the first that is taken in may leave no room for the next
        return fitting

    # Links

    def _take_in(self, key: str, others: Keys) -> None:
        touched = {self.gang_set(each) for each in (key, *self.names(key), *others)}
        self._withdraw(key)
        if others:
            self.named[key] = others
            self._link(key)
        for gang_set in touched:
            if len(gang_set) > 1:
                self._became(gang_set)

    def _link(self, key: str) -> None:
        """Makes the group's links count, or refuses it."""
        others = self._would_link(key)
        joined = self._joined(key, others)
        if len(joined) > self._most:
            self._refused[key] = next(self._refusals), len(joined)
            for other in self.named[key]:
                if namespace_of(other) == namespace_of(key):
                    self._kept_out.add(other, key)
            return
        for other in others:
            self._peers.add(key, other)
            self._peers.add(other, key)
        if others:
            self._are_a_set(joined)

    def _withdraw(self, key: str) -> None:
        """The group names no other any more."""
        names = self.named.pop(key, ())
        if self._refused.pop(key, None) is not None:
            self._tried_again.discard(key)
            for other in names:
                self._kept_out.discard(other, key)
            return
        if not names:
            return
        gang_set = self.gang_set(key)
        for other in names:
            if not self._links(other, key):
                self._peers.discard(key, other)
                self._peers.discard(other, key)
            if other in self._refused:  # its set may be small enough without this one's
                self._tried_again.add(other)
        left = set(gang_set)
        while left:
            part = self._connected(next(iter(left)))
            self._are_a_set(part)
            left -= part

    def _became(self, gang_set: Keys) -> None:
        """After a change: a set that is none any more has not been whole; the groups that it kept out may fit."""
        now = self.gang_set(gang_set[0])
        if now == gang_set:
            return
        self._whole.discard(gang_set)
        if set(gang_set) <= set(now):
            return
        for each in gang_set:
            self._tried_again |= self._kept_out[each]
            self._tried_again.update(other for other in self.names(each) if other in self._refused)

    # What follows from names

    def _would_link(self, key: str) -> set[str]:
        """The groups that it names and is linked with, unless it is refused."""
        return {other for other in self.named[key] if self._agreed(key, other)}

    def _links(self, namer: str, named: str) -> bool:
        """Whether the one makes a link to the other by itself: its name is enough in its own namespace."""
        return namespace_of(namer) == namespace_of(named) and namer not in self._refused and named in self.names(namer)

    def _agreed(self, namer: str, named: str) -> bool:
        """Whether the naming of one by the other holds."""
        if namespace_of(namer) == namespace_of(named):
            return True
        return named not in self._refused and namer in self.names(named)

    def _fits(self, key: str) -> bool:
        return len(self._joined(key, self._would_link(key))) <= self._most

    def _joined(self, key: str, others: Iterable[str]) -> set[str]:
        """The sets of all of these."""
        return set(self.gang_set(key)).union(*map(self.gang_set, others))

    def _connected(self, key: str) -> set[str]:
        found, fresh = {key}, [key]
        while fresh:
            new = self._peers[fresh.pop()] - found
            found |= new
            fresh += new
        return found

    def _are_a_set(self, keys: set[str]) -> None:
        gang_set = tuple(sorted(keys))
        for key in keys:
            if len(gang_set) > 1:
                self.sets[key] = gang_set
            else:
                self.sets.pop(key, None)

    # Sets that have been whole

    def was_whole(self, gang_set: Keys) -> bool:
        return gang_set in self._whole

    def mark_whole(self, gang_set: Keys) -> None:
        """All its groups have their minMember on nodes: from now on each is on its own."""
        self._whole.add(gang_set)

    def start_anew(self, gang_set: Keys) -> None:
        """No member of it runs any more."""
        self._whole.discard(gang_set)
