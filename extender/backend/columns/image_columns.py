"""The images that pods ask for as columns, one pair an image, each brought up to date when it is asked for.

ImageLocality reads them through the table. No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.framework.columnar import IntColumn
from extender.framework.node_info import ImageStateSummary, NodeInfo

MOST_IMAGES = 64
REBUILD_SHARE = 4

Pair = tuple[IntColumn, IntColumn]
NOT_HERE = ImageStateSummary(0, 0)


class ImageColumns:
    """name -> (size, number of nodes that have it), and the rows that have changed since."""

    __slots__ = ("_kept", "_nodes")

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._kept: dict[str, tuple[Pair, frozenset[int]]] = {}

    def next(self, nodes: Sequence[NodeInfo], rows: frozenset[int]) -> ImageColumns:
        """For a snapshot in which the nodes at the rows differ."""
        moved = frozenset(row for row in rows if nodes[row].image_states is not self._nodes[row].image_states)
        fresh = ImageColumns(nodes)
        most = len(nodes) // REBUILD_SHARE
        for name, (pair, stale) in list(self._kept.items()):
            stale |= moved
            if len(stale) <= most:
                fresh._kept[name] = (pair, stale)
        return fresh

    def get(self, name: str) -> Pair:
        kept = self._kept.get(name)
        if kept is not None and not kept[1]:
            return kept[0]
        if kept is None:
            pair = _pair(name, self._nodes)
        else:
            rows = sorted(kept[1])
            pair = kept[0][0].copy(), kept[0][1].copy()
            pair[0][rows], pair[1][rows] = _pair(name, [self._nodes[row] for row in rows])
        if len(self._kept) >= MOST_IMAGES and name not in self._kept:
            self._kept.clear()
        self._kept[name] = (pair, frozenset())
        return pair


def _pair(name: str, nodes: Sequence[NodeInfo]) -> Pair:
    found = [node.image_states.get(name, NOT_HERE) for node in nodes]
    sizes = np.array([state.size for state in found], dtype=np.int64)
    return sizes, np.array([state.num_nodes for state in found], dtype=np.int64)
