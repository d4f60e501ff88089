"""Groups that start together: who names whom, and the units that follow from it.

An annotation names the other groups; the manager keeps the links, the plan and the barrier take a unit as one.
Within a namespace it is enough that one of two groups names the other. Across namespaces both have to, or anybody could
make a stranger's gang wait; until the other does, the one that names it waits and says so.
Koordinator: pkg/scheduler/plugins/coscheduling/core/gang_cache.go (gang groups: every gang lists all of them)
"""

from __future__ import annotations

from extender.plugins.coscheduling.spec.named_groups import Keys


class GangGroups:
    """The links between groups, and which units have been whole. Not locked: the manager's lock guards it."""

    def __init__(self) -> None:
        self._named: dict[str, Keys] = {}
        self._units: dict[str, Keys] = {}  # computed when asked for
        self._whole: set[Keys] = set()

    def __bool__(self) -> bool:
        """Whether any group names another."""
        return bool(self._named)

    def name(self, key: str, others: Keys) -> bool:
        """Takes in whom a group names. Returns whether that has changed."""
        if self._named.get(key, ()) == others:
            return False
        if others:
            self._named[key] = others
        else:
            del self._named[key]
        self._units.clear()
        self._whole &= {self.unit(each) for each in self._named}
        return True

    def names(self, key: str) -> Keys:
        """The groups that this one names itself."""
        return self._named.get(key, ())

    def unit(self, key: str) -> Keys:
        """The keys of all groups that start together with this one, its own among them, sorted."""
        if not self._named:
            return (key,)
        known = self._units.get(key)
        if known is None:
            known = self._connected(key)
            self._units.update(dict.fromkeys(known, known))
        return known

    def _connected(self, key: str) -> Keys:
        found, fresh = {key}, [key]
        while fresh:
            current = fresh.pop()
            for other in self._linked(current) - found:
                found.add(other)
                fresh.append(other)
        return tuple(sorted(found))

    def _linked(self, key: str) -> set[str]:
        named = {other for other in self._named.get(key, ()) if self._agreed(key, other)}
        return named | {other for other, names in self._named.items() if key in names and self._agreed(other, key)}

    def _agreed(self, namer: str, named: str) -> bool:
        """Whether the naming of one by the other holds."""
        return _namespace(namer) == _namespace(named) or namer in self._named.get(named, ())

    def unanswered(self, key: str) -> str:
        """A group of another namespace that this one names, and that does not name it; empty where there is none."""
        return next((other for other in self._named.get(key, ()) if not self._agreed(key, other)), "")

    def was_whole(self, unit: Keys) -> bool:
        return unit in self._whole

    def mark_whole(self, unit: Keys) -> None:
        """All its groups have their minMember on nodes: from now on each is on its own."""
        self._whole.add(unit)

    def start_anew(self, unit: Keys) -> None:
        """Nobody of it runs any more."""
        self._whole.discard(unit)


def _namespace(key: str) -> str:
    return key.partition("/")[0]
