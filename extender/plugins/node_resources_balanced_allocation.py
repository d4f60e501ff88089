"""NodeResourcesBalancedAllocation: nodes on which the pod evens out how full the resources are.

kube-scheduler: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.config.plugin_args import NodeResourcesBalancedAllocationArgs
from extender.framework.columnar import IntColumn, NodeTable, Rows, ScoreColumns
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import MAX_NODE_SCORE, PreScorePlugin, ScorePlugin
from extender.framework.node_info import NodeInfo
from extender.framework.pod_requests import Amounts, pod_requests
from extender.framework.resource import is_scalar_resource_name
from extender.framework.status import SKIP, SUCCESS, Status
from extender.plugins import names
from extender.plugins.node_resources_balanced_allocation_columns import balanced_scores

STATE = "PreScoreNodeResourcesBalancedAllocation"


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin, ScoreColumns):
    name = names.NODE_RESOURCES_BALANCED_ALLOCATION

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self._resources = tuple(resource.name for resource in args.resources)

    @classmethod
    def create(cls, args: NodeResourcesBalancedAllocationArgs | None, handle: Handle) -> Self:
        return cls(args or NodeResourcesBalancedAllocationArgs())

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        asked = pod_requests(pod, use_status=True)
        if all(asked.get(name, 0) == 0 for name in self._resources):
            return SKIP
        state.write(STATE, asked)
        return SUCCESS

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        asked: Amounts = state.read(STATE, dict)
        with_pod = self._balance(asked, node, with_pod=True)
        without = self._balance(asked, node, with_pod=False)
        half = MAX_NODE_SCORE // 2
        return half + int((half + with_pod - without) / 2), SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        return balanced_scores(state.read(STATE, dict), self._resources, table, rows)

    def _balance(self, asked: Amounts, node: NodeInfo, *, with_pod: bool) -> int:
        """100 where all resources are equally full."""
        fractions = []
        for name in self._resources:
            amount = asked.get(name, 0)
            if is_scalar_resource_name(name) and amount == 0:
                continue
            there = node.allocatable.amount(name)
            if there == 0:
                continue
            taken = node.requested.amount(name) + (amount if with_pod else 0)
            fractions.append(min(1.0, float(taken) / float(there)))
        return int((1 - _spread(fractions)) * float(MAX_NODE_SCORE))


def _spread(fractions: Sequence[float]) -> float:
    """The standard deviation, in the order of operations that Go uses."""
    if len(fractions) == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    if len(fractions) > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / float(len(fractions))
        variance = 0.0
        for fraction in fractions:
            variance += (fraction - mean) * (fraction - mean)
        return math.sqrt(variance / float(len(fractions)))
    return 0.0
