"""How full a node would be with the pod on it, turned into a score: LeastAllocated, MostAllocated, RequestedToCapacityRatio.

kube-scheduler: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go and the strategies beside it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.config.plugin_args import ResourceSpec, ScoringStrategy, ScoringStrategyType, UtilizationShapePoint
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.node_info import NodeInfo
from extender.framework.pod_requests import Amounts
from extender.framework.resource import is_scalar_resource_name

Scorer = Callable[[Amounts, NodeInfo], int]
"""(what the pod asks for, node) -> 0..100."""

MAX_UTILIZATION = 100
MAX_CUSTOM_PRIORITY_SCORE = 10


def scorer_of(strategy: ScoringStrategy) -> Scorer:
    resources = strategy.resources
    match strategy.type:
        case ScoringStrategyType.LEAST_ALLOCATED:
            return lambda asked, node: _weighted(least_requested, resources, asked, node)
        case ScoringStrategyType.MOST_ALLOCATED:
            return lambda asked, node: _weighted(most_requested, resources, asked, node)
        case ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            shape = broken_linear(strategy.shape)
            return lambda asked, node: _by_shape(shape, resources, asked, node)


def allocatable_and_requested(node: NodeInfo, name: str, asked: int) -> tuple[int, int]:
    """(what the node has, what would be taken with the pod on it); a scalar that the pod does not ask for is (0, 0)."""
    if is_scalar_resource_name(name) and asked == 0:
        return 0, 0
    match name:
        case "cpu":
            return node.allocatable.milli_cpu, node.non_zero_milli_cpu + asked
        case "memory":
            return node.allocatable.memory, node.non_zero_memory + asked
    return node.allocatable.amount(name), node.requested.amount(name) + asked


def _weighted(
    score: Callable[[int, int], int], resources: Sequence[ResourceSpec], asked: Amounts, node: NodeInfo
) -> int:
    total = weights = 0
    for resource in resources:
        there, taken = allocatable_and_requested(node, resource.name, asked.get(resource.name, 0))
        if there == 0:
            continue
        total += score(taken, there) * resource.weight
        weights += resource.weight
    return total // weights if weights else 0


def least_requested(taken: int, there: int) -> int:
    return 0 if taken > there else (there - taken) * MAX_NODE_SCORE // there


def most_requested(taken: int, there: int) -> int:
    return min(taken, there) * MAX_NODE_SCORE // there


def _by_shape(shape: Callable[[int], int], resources: Sequence[ResourceSpec], asked: Amounts, node: NodeInfo) -> int:
    """Resources that score nothing do not count at all."""
    total = weights = 0
    for resource in resources:
        there, taken = allocatable_and_requested(node, resource.name, asked.get(resource.name, 0))
        if there == 0:
            continue
        utilization = MAX_UTILIZATION if taken > there else taken * MAX_UTILIZATION // there
        score = shape(utilization)
        if score > 0:
            total += score * resource.weight
            weights += resource.weight
    return int(total / weights + 0.5) if weights else 0


def broken_linear(points: Sequence[UtilizationShapePoint]) -> Callable[[int], int]:
    """Piecewise linear between the points, in whole numbers truncated toward zero; constant outside."""
    scaled = [(p.utilization, p.score * (MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE)) for p in points]

    def at(utilization: int) -> int:
        for index, (x, y) in enumerate(scaled):
            if utilization <= x:
                if index == 0:
                    return y
                x0, y0 = scaled[index - 1]
                return y0 + int((y - y0) * (utilization - x0) / (x - x0))
        return scaled[-1][1]

    return at
