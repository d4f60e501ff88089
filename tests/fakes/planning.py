"""The planner's own judge outside a scheduler: the in-tree filters that plans are made by, with nothing around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import Any, cast

from extender.config.defaults import planning_profile
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.plugins.judge import FrameworkJudge, FrameworkJudges
from extender.plugins.registry import new_in_tree_registry


class Nothing:
    """A lister, a nominator and an API with nothing in them."""

    def list(self) -> Sequence[Any]:
        return ()

    def by_namespace(self, namespace: str) -> Sequence[Any]:
        return ()

    def get(self, key: str) -> None:
        return None

    def nominated_nodes(self) -> Sequence[str]:
        return ()

    def nominated_pods_for_node(self, node_name: str) -> Sequence[Any]:
        return ()

    def nominated_pods_but(self, uids: Set[str]) -> Sequence[Any]:
        return ()


def nothing_around() -> FrameworkDependencies:
    nothing = cast("Any", Nothing())
    nodes: Sequence[NodeInfo] = ()
    return FrameworkDependencies(
        api=nothing,
        events=nothing,
        newest_snapshot=lambda: HypotheticalSnapshot(nodes),
        lister=lambda type_: nothing,
        nominator=nothing,
    )


def planning_judge() -> FrameworkJudge:
    return FrameworkJudge(Framework(planning_profile(), new_in_tree_registry(), nothing_around()))


def judge_with_volumes(
    lister: Callable[[type[Any]], Any], snapshot: NodeInfoLister, *, known: bool = True
) -> FrameworkJudge:
    """lister: of claims, volumes and classes by their type, which are known or not."""
    around = replace(nothing_around(), newest_snapshot=lambda: snapshot, lister=lister)
    return FrameworkJudges(new_in_tree_registry(), around, lambda: known).plans
