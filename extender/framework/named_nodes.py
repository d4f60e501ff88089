"""The nodes of a request, of which only the names came: looked up in the snapshot when more than that is wanted.

The verbs hand them to PreFilter. A gang's member that has its place is asked about with all nodes of the cluster, and its
answer takes no more than their names. No counterpart in kube-scheduler, which has the nodes at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import overload

from extender.framework.node_info import NodeInfo


class NamedNodes(Sequence[NodeInfo]):
    """In the order of the names. `look_up` is called at most once."""

    __slots__ = ("_found", "_look_up", "names")

    def __init__(self, names: Sequence[str], look_up: Callable[[Sequence[str]], Sequence[NodeInfo]]) -> None:
        self.names = names
        self._look_up = look_up
        self._found: Sequence[NodeInfo] | None = None

    def found(self) -> Sequence[NodeInfo]:
        if self._found is None:
            self._found = self._look_up(self.names)
        return self._found

    def among(self, allowed: Collection[str]) -> NamedNodes:
        """Those that are allowed, in their order. A planned member has one place, and its name is found soonest by a look."""
        if len(allowed) == 1:
            return NamedNodes([name for name in allowed if name in self.names], self._look_up)
        return NamedNodes([name for name in self.names if name in allowed], self._look_up)

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...

    def __getitem__(self, index: int | slice) -> NodeInfo | Sequence[NodeInfo]:
        return self.found()[index]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self.found())
