"""How many nodes kube-scheduler looks for before it stops: all of a small cluster, a sample of a larger one.

The in-process scheduler stops so; what the running extender is asked about shows that kube-scheduler does.
kube-scheduler: pkg/scheduler/schedule_one.go (numFeasibleNodesToFind)
"""

from __future__ import annotations

from extender.framework.interface import MIN_FEASIBLE_NODES_TO_FIND

MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND = 5


def num_feasible_nodes_to_find(percentage: int, num_all: int) -> int:
    """percentage: percentageOfNodesToScore; 0: by the cluster's size."""
    if num_all < MIN_FEASIBLE_NODES_TO_FIND:
        return num_all
    if percentage == 0:
        percentage = max(MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND, 50 - num_all // 125)
    return max(MIN_FEASIBLE_NODES_TO_FIND, num_all * percentage // 100)
