"""Node labels as numbers, one entry a node: from a snapshot's columns where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn

NONE = -1  # of a node without the label


def codes_of(snapshot: NodeInfoLister, key: str) -> tuple[IntColumn, Sequence[str]]:
    """(an index into the values, or NONE, for each node; the values)."""
    table = table_of(snapshot)
    if table is not None:
        column = table.label(key)
        return column.codes.astype(np.int64), column.values
    found = [_labels(node).get(key) for node in snapshot.list()]
    values = sorted({value for value in found if value is not None})
    number: dict[str | None, int] = {value: i for i, value in enumerate(values)}
    return np.array([number.get(value, NONE) for value in found], dtype=np.int64), values


def label_of(node: NodeInfo, key: str) -> str | None:
    return _labels(node).get(key)


def _labels(node: NodeInfo) -> dict[str, str]:
    return node.node.metadata.labels if node.node is not None else {}


def shared(snapshot: NodeInfoLister, key: str) -> bool:
    """Whether the label tells groups of nodes apart, and not each node from all others."""
    values = len(codes_of(snapshot, key)[1])
    return values <= 8 or values * 2 <= len(snapshot.list())


def coarse_groups(snapshot: NodeInfoLister, keys: Iterable[str]) -> IntColumn:
    """A number for each combination of values of those of these labels that nodes share."""
    groups = np.zeros(len(snapshot.list()), dtype=np.int64)
    for key in sorted(keys):
        if shared(snapshot, key):
            codes, values = codes_of(snapshot, key)
            groups = groups * (len(values) + 1) + codes + 1
            groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    return groups


def nodes_by_value(snapshot: NodeInfoLister, key: str) -> list[BoolColumn]:
    """The nodes of each value of a label that nodes share, in the order of the values; none for a label like a host's."""
    if not shared(snapshot, key):
        return []
    codes, values = codes_of(snapshot, key)
    return [codes == code for code in sorted(range(len(values)), key=lambda code: values[code])]
