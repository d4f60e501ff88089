"""Preemption that knows gangs, with frameworks of its own; behind a kube-scheduler and in-process alike.

Both factories call it once Coscheduling is connected. No counterpart upstream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from extender.api import policyv1
from extender.config.defaults import planning_profile
from extender.config.types import ExtenderConfiguration
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.registry import Registry
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import Evictor, GangVictims, PreemptionDependencies, PreemptionRules
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.preemption.preemption import Preemption


def preemption_rules(configuration: ExtenderConfiguration) -> PreemptionRules:
    return PreemptionRules(
        configuration.gang_preemption,
        GangVictims(configuration.gang_victims),
        configuration.victim_minimum_run_seconds,
        configuration.preemption_delay_seconds,
    )


def build_preemption(
    coscheduling: Coscheduling,
    registry: Registry,
    dependencies: FrameworkDependencies,
    *,
    judge: planner.Judge,
    evictor: Evictor,
    rules: PreemptionRules,
    assumed: Callable[[], Collection[str]],
    wall: Callable[[], float] = time.time,
) -> Preemption:
    """judge: of its own. assumed: UIDs of the pods that are on their node by our word only. wall: seconds since 1970."""
    world = PreemptionDependencies(
        judge=judge,
        evictor=evictor,
        rules=rules,
        pdbs=lambda: list(dependencies.lister(policyv1.PodDisruptionBudget).list()),
        assumed=assumed,
        wall=wall,
    )
    in_tree = Framework(planning_profile(), registry, replace(dependencies, record=None))
    return Preemption(coscheduling, in_tree, world)
