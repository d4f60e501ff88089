"""CompositePodGroups: the trees that they make of groups, which groups of a tree were chosen to start, and which trees have started.

The planner chooses: at least minGroupCount of each composite's groups. From then on the chosen ones are a gang set as any other,
and the others wait until the tree has started; then each of them is a gang of its own, in the domains that the tree is in.
A choice holds while one of its groups has a place (gang_sets asks). Not locked: the manager's lock guards everything here.

Trees are what owners of groups write: a walk visits at most MAX_GROUPS groups and as many composites, and goes MAX_DEPTH deep.
Kubernetes: KEP-6012, pkg/scheduler/framework (validation of the layout at run time)
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from extender.plugins.coscheduling.spec.field_errors import FieldError, invalid, too_many
from extender.plugins.coscheduling.spec.in_tree import PARENT, CompositeSpec
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS

MAX_DEPTH = 4  # of CompositePodGroups one inside the other


class Composites:
    def __init__(self) -> None:
        self._specs: dict[str, CompositeSpec] = {}
        self.parents: dict[str, str] = {}  # group -> the composite that it names, of each that is in a tree
        self._groups: dict[str, list[str]] = {}  # composite, which need not be there -> groups that name it, in order
        self._composites: dict[str, list[str]] = {}  # likewise -> composites that name it
        self._chosen: dict[str, frozenset[str]] = {}  # root -> groups
        self._started: set[str] = set()  # roots

    # What objects say

    def put(self, spec: CompositeSpec) -> None:
        self.remove(spec.key)
        self._specs[spec.key] = spec
        if spec.parent:
            insort(self._composites.setdefault(spec.parent, []), spec.key)

    def remove(self, key: str) -> None:
        """The groups that name it wait for it. What was chosen of the tree that it was in was chosen with it."""
        if key in self._specs:
            self._chosen.pop(self._root_above(key), None)
        known = self._specs.pop(key, None)
        if known is not None and known.parent:
            _discard(self._composites, known.parent, key)
        self._forget_root(key)

    def adopt(self, group: str, parent: str) -> Sequence[str]:
        """The group names this composite, or none: empty. Returns the groups of a tree that has become too large by it, or is so no
        longer."""
        before = self.parents.get(group, "")
        if before == parent:
            return ()
        with self.resizing(before, parent) as concerned:
            if before:
                self._leave_choice(self.root_of(group), group)
                del self.parents[group]
                _discard(self._groups, before, group)
            if parent:
                self.parents[group] = parent
                insort(self._groups.setdefault(parent, []), group)
        return concerned

    @contextmanager
    def resizing(self, *composites: str) -> Iterator[list[str]]:
        """While what is below these changes; an empty one is none. Of their trees the groups of each that becomes too large meanwhile, or
        is so no longer, are in the list then."""
        before = {root: self.groups_of(root) for root in map(self._root_above, filter(None, composites))}
        concerned: list[str] = []
        yield concerned
        for root, groups in before.items():
            now = self.groups_of(root)
            if len(now) > MAX_GROUPS >= len(groups):
                concerned += sorted({*groups, *now})  # not all of so many are in `now`
            elif len(groups) > MAX_GROUPS >= len(now):
                concerned += now

    def _leave_choice(self, root: str, group: str) -> None:
        if group in self.chosen(root) or not self.groups_of(root):
            self._chosen.pop(root, None)
        if self.groups_of(root) == [group]:
            self._started.discard(root)

    def _forget_root(self, root: str) -> None:
        self._chosen.pop(root, None)
        self._started.discard(root)

    # Trees

    def spec(self, key: str) -> CompositeSpec | None:
        return self._specs.get(key)

    def ancestors(self, group: str) -> Sequence[CompositeSpec]:
        """The composites above the group, the narrowest first, as far as they are there."""
        return self._line_from(self.parents.get(group, ""))

    def _line_from(self, key: str) -> Sequence[CompositeSpec]:
        """The composite and those above it, likewise."""
        found: list[CompositeSpec] = []
        while len(found) <= MAX_DEPTH and (spec := self._specs.get(key)) is not None:
            found.append(spec)
            key = spec.parent
        return found

    def root_of(self, group: str) -> str:
        """The key of the widest composite that the group is in, which need not be there; empty for a group of none."""
        return self._root_above(self.parents.get(group, ""))

    def _root_above(self, key: str) -> str:
        """Likewise, of a composite."""
        line = self._line_from(key)
        return (line[-1].parent or line[-1].key) if line else key

    def missing(self, group: str) -> str:
        """The key of a composite above the group that is not there; empty where none is missing."""
        root = self.root_of(group)
        return root if root and root not in self._specs else ""

    def problem(self, group: str) -> str:
        """Why the group's tree is none, which its owner has to correct; empty where it is one, or where a part is still missing."""
        above = self.ancestors(group)
        for spec in above:
            if spec.invalid:
                return spec.invalid
        if not above:
            return ""
        try:
            self._check(above)
        except FieldError as error:
            return f"CompositePodGroup {above[0].key} is invalid: {PARENT}: {error}"
        return ""

    def _check(self, above: Sequence[CompositeSpec]) -> None:
        """Raises FieldError."""
        keys = [spec.key for spec in above]
        if len(set(keys)) < len(keys):
            raise invalid(above[0].parent.rpartition("/")[2], "must not lead back to the group itself")
        if len(above) > MAX_DEPTH:
            raise invalid(above[0].parent.rpartition("/")[2], f"must not lead to more than {MAX_DEPTH} levels")
        if len(self.groups_of(keys[-1])) > MAX_GROUPS:
            raise too_many(MAX_GROUPS, f"groups in {keys[-1]}")

    def children(self, key: str) -> tuple[Sequence[str], Sequence[str]]:
        """(groups, composites that are there) directly below; at most one more than MAX_GROUPS of each, in order."""
        return self._groups.get(key, [])[: MAX_GROUPS + 1], self._composites.get(key, [])[: MAX_GROUPS + 1]

    def groups_of(self, key: str) -> Sequence[str]:
        """All groups below, of any depth; more than MAX_GROUPS where the tree is too large."""
        found: list[str] = []
        for composite in self._below(key):
            found += self.children(composite)[0]
            if len(found) > MAX_GROUPS:
                break
        return found

    def _below(self, root: str) -> Iterator[str]:
        """The composite, and those below it."""
        fresh, seen = [(root, 1)], 0
        while fresh and seen <= MAX_GROUPS * MAX_DEPTH:
            key, depth = fresh.pop()
            seen += 1
            yield key
            if depth <= MAX_DEPTH:
                fresh += [(child, depth + 1) for child in self.children(key)[1]]

    def tree_of(self, group: str) -> Sequence[str]:
        """All groups of the group's tree, itself among them; of a group of none, itself."""
        root = self.root_of(group)
        return self.groups_of(root) if root else (group,)

    def satisfied(self, root: str, groups: Collection[str]) -> bool:
        """Whether these groups are as many as the tree asks for."""
        return not self.lacking(root, groups)

    def lacking(self, key: str, groups: Collection[str]) -> str:
        """Which composite has too few of its groups among these; empty if none. One that groups_of does not come to has none."""
        return self._lacking(key, groups, frozenset(self._below(key)), 1)

    def _lacking(self, key: str, groups: Collection[str], walked: Collection[str], depth: int) -> str:
        spec = self._specs.get(key)
        if spec is None:
            return f"CompositePodGroup {key} is not there"
        if depth > MAX_DEPTH:
            return f"CompositePodGroup {key} is more than {MAX_DEPTH} levels deep"
        if key not in walked:
            return f"CompositePodGroup {key} is in a tree of too many"
        own, composites = self.children(key)
        lacking = [self._lacking(child, groups, walked, depth + 1) for child in composites]
        having = sum(child in groups for child in own) + lacking.count("")
        if having >= spec.min_groups:
            return ""
        told = f"{having} of {len(own) + len(composites)} groups of CompositePodGroup {key} are ready, {spec.min_groups} are needed"
        return next(filter(None, lacking), told)

    # Choices

    def decided(self) -> Collection[str]:
        """The roots of trees of which groups were chosen, or that have started."""
        return self._chosen.keys() | self._started

    def chosen(self, root: str) -> frozenset[str]:
        """The groups that start together; empty while none are chosen."""
        return self._chosen.get(root, frozenset())

    def choose(self, root: str, groups: Collection[str]) -> None:
        self._chosen[root] = frozenset(groups)

    def has_started(self, root: str) -> bool:
        return root in self._started

    def start(self, root: str) -> None:
        """As many groups as the tree asks for are on nodes: from now on each is on its own."""
        self._started.add(root)
        self._chosen.pop(root, None)

    def start_anew(self, root: str) -> None:
        """Nothing of it runs, or is to start, any more."""
        self._forget_root(root)


def _discard(of: dict[str, list[str]], key: str, value: str) -> None:
    """Takes the value away; a key without values is forgotten."""
    values = of[key]
    del values[bisect_left(values, value)]
    if not values:
        del of[key]
