"""Scores stretched to 0..100, as several plugins do it.

kube-scheduler: pkg/scheduler/framework/plugins/helper/normalize_score.go
"""

from __future__ import annotations

import numpy as np

from extender.framework.columnar import IntColumn
from extender.framework.interface import MAX_NODE_SCORE, NodeScore


def default_normalize_score(scores: list[NodeScore], *, reverse: bool) -> None:
    """In place, in whole numbers, by the highest; reverse: the lowest raw score gets the most."""
    highest = max((entry.score for entry in scores), default=0)
    if highest == 0:
        if reverse:
            for entry in scores:
                entry.score = MAX_NODE_SCORE
        return
    for entry in scores:
        score = MAX_NODE_SCORE * entry.score // highest
        entry.score = MAX_NODE_SCORE - score if reverse else score


def default_normalize_columns(scores: IntColumn, *, reverse: bool) -> IntColumn:
    """The same for all nodes at once, as a new array."""
    highest = int(scores.max()) if scores.size else 0
    if highest == 0:
        return np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64) if reverse else scores.copy()
    stretched = MAX_NODE_SCORE * scores // highest
    return MAX_NODE_SCORE - stretched if reverse else stretched
