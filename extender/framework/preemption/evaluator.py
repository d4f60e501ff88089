"""Preemption for one pod: whether it may, on which node, which victims, and then their eviction.

PostFilter plugins own one; the verb preempt and `evaluate` use its parts.
kube-scheduler: pkg/scheduler/framework/preemption/preemption.go (Evaluator)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from extender.api import corev1, policyv1
from extender.framework.aggregate import aggregate
from extender.framework.cycle_state import CycleState
from extender.framework.diagnosis import Diagnosis, FitError
from extender.framework.handle import Handle
from extender.framework.interface import NodeToStatus, NominatingMode, PostFilterResult
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.preemption.dry_run import DryRun, dry_run_preemption
from extender.framework.preemption.executor import Executor
from extender.framework.preemption.interface import ExtenderCallError, PreemptionExtender, PreemptionInterface
from extender.framework.preemption.ordering import pick_one_node
from extender.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable

log = logging.getLogger(__name__)

NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
NO_CANDIDATE = "no candidate node for preemption"

Answer = tuple[PostFilterResult | None, Status]


class Evaluator:
    """Stateless between calls; runs in the scheduling cycle, the executor on threads of its own."""

    def __init__(self, plugin_name: str, handle: Handle, rules: PreemptionInterface, executor: Executor) -> None:
        self._plugin_name = plugin_name
        self._handle = handle
        self._rules = rules
        self._executor = executor

    def preempt(self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus) -> Answer:
        """(None, UNSCHEDULABLE): wait, the nomination stays. (nowhere, UNSCHEDULABLE): preemption does not help.
        (a node, SUCCESS): its victims are on their way. (None, ERROR): something broke."""
        # 0) The pod as it is by now.
        newest = self._handle.lister(corev1.Pod).get(pod.key)
        if not isinstance(newest, corev1.Pod):
            return None, error(f'pod "{pod.name}" not found')
        pod = newest
        # 1) May it evict others?
        eligible, reason = self._rules.pod_eligible_to_preempt_others(
            pod, node_statuses.get(pod.status.nominated_node_name)
        )
        if not eligible:
            return None, unschedulable(reason)
        # 2) Where could it go, and which pods would have to leave?
        snapshot = self._handle.snapshot()
        if not snapshot.list():
            return None, error("no nodes available")
        found = self.find_candidates(state, pod, node_statuses)
        if not found.candidates:
            if found.errors:
                return None, error(aggregate(found.errors))
            return self._does_not_help(pod, snapshot, found)
        # 3) What do the extenders say?
        try:
            candidates = self.call_extenders(pod, found.candidates)
        except ExtenderCallError as failure:
            return None, error(str(failure))
        # 4) The best.
        best = self.select_candidate(candidates)
        if best is None:
            return None, unschedulable(NO_CANDIDATE)
        # 5) Make room.
        log.info("preempting pod=%s node=%s victims=%d", pod.key, best.name, len(best.victims.pods))
        status = self._executor.actuate(best, pod, self._plugin_name)
        if not status.success:
            return None, status
        return PostFilterResult(best.name, NominatingMode.OVERRIDE), SUCCESS

    def _does_not_help(self, pod: corev1.Pod, snapshot: NodeInfoLister, found: DryRun) -> Answer:
        diagnosis = Diagnosis(node_to_status=NodeToStatus(found.statuses, NOT_HELPFUL))
        text = str(FitError(pod, len(snapshot.list()), diagnosis))
        return PostFilterResult("", NominatingMode.OVERRIDE), unschedulable(text)

    def find_candidates(self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus) -> DryRun:
        """Over the nodes where a filter said that removing pods might help. Go: findCandidates."""
        nodes = self.potential_nodes(node_statuses)
        if not nodes:
            return DryRun()
        offset, enough = self._rules.get_offset_and_num_candidates(len(nodes))
        return dry_run_preemption(self._rules, state, pod, nodes, self.pdbs(), offset, enough)

    def potential_nodes(self, node_statuses: NodeToStatus) -> list[NodeInfo]:
        """In the snapshot's order. Go: NodesForStatusCode."""
        return [
            node for node in self._handle.snapshot().list() if node_statuses.get(node.name).code is Code.UNSCHEDULABLE
        ]

    def pdbs(self) -> Sequence[policyv1.PodDisruptionBudget]:
        found = self._handle.lister(policyv1.PodDisruptionBudget).list()
        return [pdb for pdb in found if isinstance(pdb, policyv1.PodDisruptionBudget)]

    def call_extenders(self, pod: corev1.Pod, candidates: Sequence[Candidate]) -> list[Candidate]:
        """What is left after each has had its say; one may drop nodes and change victims. Raises ExtenderCallError."""
        victims: Mapping[str, Victims] = {candidate.name: candidate.victims for candidate in candidates}
        for extender in self._handle.extenders:
            if not victims:
                break
            if extender.supports_preemption and extender.is_interested(pod):
                victims = self._asked(extender, pod, victims)
        return [Candidate(name, found) for name, found in victims.items()]

    def _asked(
        self, extender: PreemptionExtender, pod: corev1.Pod, victims: Mapping[str, Victims]
    ) -> Mapping[str, Victims]:
        try:
            answer = extender.process_preemption(pod, victims, self._handle.snapshot())
        except ExtenderCallError as failure:
            if not extender.ignorable:
                raise
            log.info("skipped extender as it returned error and has ignorable flag set extender=%s", extender.name)
            log.debug("extender failed extender=%s error=%s", extender.name, failure)
            return victims
        empty = [name for name, found in answer.items() if not found.pods]
        if empty and not extender.ignorable:
            raise ExtenderCallError(f'expected at least one victim pod on node "{empty[0]}"')
        return {name: found for name, found in answer.items() if name not in empty}

    def select_candidate(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The one that costs least; None of none."""
        if len(candidates) <= 1:
            return candidates[0] if candidates else None
        victims = {candidate.name: candidate.victims for candidate in candidates}
        functions = self._rules.ordered_score_functions(victims)
        best = pick_one_node(victims, functions, self._handle.rng.choice)
        return Candidate(best, victims[best])
