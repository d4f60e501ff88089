"""Tries preemption on one node after the other, on copies, until there are candidates enough.

kube-scheduler: pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from extender.api import corev1, policyv1
from extender.framework.cycle_state import CycleState
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.preemption.interface import PreemptionInterface
from extender.framework.status import Code, Status, error


@dataclass(slots=True)
class DryRun:
    """What it found: candidates, those that violate no budget first; why other nodes are none; what went wrong."""

    candidates: list[Candidate] = field(default_factory=list)
    statuses: dict[str, Status] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def dry_run_preemption(
    rules: PreemptionInterface,
    state: CycleState,
    pod: corev1.Pod,
    potential_nodes: Sequence[NodeInfo],
    pdbs: Sequence[policyv1.PodDisruptionBudget],
    offset: int,
    num_candidates: int,
) -> DryRun:
    """From node `offset` on, around; ends when there are enough of which one at least violates nothing."""
    found = DryRun()
    harmless: list[Candidate] = []
    violating: list[Candidate] = []
    count = len(potential_nodes)
    for i in range(count):
        node = potential_nodes[(offset + i) % count]
        victims, status = try_node(rules, state, pod, node, pdbs)
        if not status.success:
            found.statuses[node.name] = status
            if status.code is Code.ERROR:
                found.errors.append(status.message)
            continue
        (violating if victims.num_pdb_violations else harmless).append(Candidate(node.name, victims))
        if harmless and len(harmless) + len(violating) >= num_candidates:
            break
    found.candidates = [*harmless[:num_candidates], *violating[:num_candidates]]
    return found


def try_node(
    rules: PreemptionInterface,
    state: CycleState,
    pod: corev1.Pod,
    node: NodeInfo,
    pdbs: Sequence[policyv1.PodDisruptionBudget],
) -> tuple[Victims, Status]:
    """One node, on copies of it and of the state. A node that needs no victims should not have been refused."""
    pods, violations, status = rules.select_victims_on_node(state.clone(), pod, node.clone(), pdbs)
    if status.success and not pods:
        status = error(f'expected at least one victim pod on node "{node.name}"')
    return Victims(pods, violations), status
