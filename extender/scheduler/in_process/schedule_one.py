"""kube-scheduler's own loop: one pod from the queue to a node, in-process.

The simulation and the demo drive it; the four verbs run the same framework but are driven by a real kube-scheduler.
kube-scheduler: pkg/scheduler/schedule_one.go
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.diagnosis import Diagnosis, FitError
from extender.framework.interface import NodePluginScores, NodeToStatus, PreFilterResult
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.node_sample import num_feasible_nodes_to_find
from extender.framework.runtime.columnar_scoring import NodeScores
from extender.framework.runtime.framework import Framework
from extender.framework.status import unresolvable, unschedulable
from extender.scheduler.in_process.http_extender import ExtenderError, HTTPExtender, weighted

log = logging.getLogger(__name__)

EXTENDER_NAME = "Extender"


class NoNodesAvailableError(Exception):
    """There is not one node. Go: ErrNoNodesAvailable."""

    def __str__(self) -> str:
        return "no nodes available to schedule pods"


class SchedulingError(Exception):
    """A broken promise on the way, not a verdict on the pod."""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """Go: ScheduleResult."""

    suggested_host: str
    evaluated_nodes: int
    feasible_nodes: int
    scores: Sequence[NodePluginScores] = ()


@dataclass(slots=True)
class Algorithm:
    """schedulePod: from a snapshot to a node. `rotation` is where the next look for nodes begins."""

    extenders: Sequence[HTTPExtender] = ()
    percentage_of_nodes_to_score: int = 0
    rng: random.Random = field(default_factory=random.Random)
    rotation: int = 0

    def schedule_pod(
        self, framework: Framework, state: CycleState, pod: corev1.Pod, snapshot: NodeInfoLister
    ) -> ScheduleResult:
        """Raises FitError where no node fits, NoNodesAvailableError, or SchedulingError."""
        framework.set_snapshot(snapshot)
        nodes = snapshot.list()
        if not nodes:
            raise NoNodesAvailableError
        feasible, diagnosis = self.find_nodes_that_fit_pod(framework, state, pod, nodes)
        if not feasible:
            raise FitError(pod, len(nodes), diagnosis)
        evaluated = len(feasible) + len(diagnosis.node_to_status.statuses)
        if len(feasible) == 1:
            return ScheduleResult(feasible[0].name, evaluated, 1)
        scores = self.prioritize_nodes(framework, state, pod, feasible)
        return ScheduleResult(self.select_host(scores), evaluated, len(feasible), scores)

    def find_nodes_that_fit_pod(
        self, framework: Framework, state: CycleState, pod: corev1.Pod, all_nodes: Sequence[NodeInfo]
    ) -> tuple[Sequence[NodeInfo], Diagnosis]:
        """PreFilter, the nominated node alone, Filter, extenders. Go: findNodesThatFitPod."""
        diagnosis = Diagnosis()
        result, status, plugins = framework.run_pre_filter_plugins(state, pod, all_nodes)
        if not status.success:
            if not status.rejected:
                raise SchedulingError(status.message)
            diagnosis.node_to_status = NodeToStatus({}, status)
            diagnosis.pre_filter_message = status.message
            diagnosis.add_plugin_status(status)
            return [], diagnosis
        nodes = self._narrowed(all_nodes, result, plugins, diagnosis)
        if pod.status.nominated_node_name:
            feasible = self._evaluate_nominated_node(framework, state, pod, all_nodes, diagnosis)
            if feasible:
                return feasible, diagnosis
        feasible = self._nodes_that_pass_filters(framework, state, pod, nodes, len(all_nodes), diagnosis)
        before = len(feasible)
        feasible = self.nodes_that_pass_extenders(pod, feasible, diagnosis.node_to_status)
        if len(feasible) != before:
            diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
        return feasible, diagnosis

    def _narrowed(
        self,
        nodes: Sequence[NodeInfo],
        result: PreFilterResult | None,
        plugins: frozenset[str],
        diagnosis: Diagnosis,
    ) -> Sequence[NodeInfo]:
        if result is None or result.node_names is None:
            return nodes
        names = " ".join(sorted(plugins))
        diagnosis.node_to_status.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")
        diagnosis.unschedulable_plugins.update(plugins)
        return [node for node in nodes if node.name in result.node_names]

    def _evaluate_nominated_node(
        self,
        framework: Framework,
        state: CycleState,
        pod: corev1.Pod,
        nodes: Sequence[NodeInfo],
        diagnosis: Diagnosis,
    ) -> Sequence[NodeInfo]:
        """Errors here are only logged: the full pass follows, and begins where it would have without this look."""
        named = [node for node in nodes if node.name == pod.status.nominated_node_name]
        rotation = self.rotation
        try:
            feasible = self._nodes_that_pass_filters(framework, state, pod, named, len(nodes), diagnosis)
            return self.nodes_that_pass_extenders(pod, feasible, diagnosis.node_to_status)
        except SchedulingError as error:
            log.error("evaluation failed on nominated node pod=%s error=%s", pod.key, error)
            return []
        finally:
            self.rotation = rotation

    def _nodes_that_pass_filters(
        self,
        framework: Framework,
        state: CycleState,
        pod: corev1.Pod,
        nodes: Sequence[NodeInfo],
        num_all: int,
        diagnosis: Diagnosis,
    ) -> Sequence[NodeInfo]:
        """Looks from the rotating start until enough nodes are found. Go: findNodesThatPassFilters."""
        wanted = self.num_feasible_nodes_to_find(framework.percentage_of_nodes_to_score, len(nodes))
        if not self._has_extender_filters() and not self._has_scoring(framework):
            wanted = 1
        if not framework.has_filter_plugins():
            count = len(nodes)
            feasible = [nodes[(self.rotation + i) % count] for i in range(min(wanted, count))]
            self.rotation = (self.rotation + len(feasible)) % num_all
            return feasible
        found = framework.filter_nodes(state, pod, nodes, start=self.rotation, wanted=wanted)
        if found.error is not None:
            raise SchedulingError(found.error.message)
        diagnosis.node_to_status.statuses.update(found.statuses)
        for status in found.refusals:
            diagnosis.add_plugin_status(status)
        self.rotation = (self.rotation + found.looked) % num_all
        return found.feasible

    def num_feasible_nodes_to_find(self, percentage: int | None, num_all: int) -> int:
        """Go: numFeasibleNodesToFind; the profile's percentage, else the scheduler's, else by the cluster's size."""
        percent = percentage if percentage is not None else self.percentage_of_nodes_to_score
        return num_feasible_nodes_to_find(percent, num_all)

    def _has_extender_filters(self) -> bool:
        return any(extender.is_filter for extender in self.extenders)

    def _has_scoring(self, framework: Framework) -> bool:
        return framework.has_score_plugins() or any(extender.is_prioritizer for extender in self.extenders)

    def nodes_that_pass_extenders(
        self, pod: corev1.Pod, feasible: Sequence[NodeInfo], statuses: NodeToStatus
    ) -> Sequence[NodeInfo]:
        """One after the other, each asked about what the one before has left. Raises SchedulingError.

        Go: findNodesThatPassExtenders.
        """
        for extender in self.extenders:
            if not feasible:
                break
            if not extender.is_filter or not extender.is_interested(pod):
                continue
            try:
                answer = extender.filter(pod, _objects(feasible))
            except ExtenderError as error:
                if extender.ignorable:
                    log.info("skipping extender as it returned error and has ignorable flag set error=%s", error)
                    continue
                raise SchedulingError(str(error)) from error
            for name, message in answer.failed.items():
                statuses.statuses[name] = unschedulable(message)
            for name, message in answer.unresolvable.items():  # where a node is in both maps, this one counts
                statuses.statuses[name] = unresolvable(message)
            by_name = {node.name: node for node in feasible}
            feasible = [by_name[name] for name in answer.passed]
        return feasible

    def prioritize_nodes(
        self, framework: Framework, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> Sequence[NodePluginScores]:
        """Plugins' weighted scores and the extenders'; an extender's error adds nothing. Go: prioritizeNodes."""
        if not self._has_scoring(framework):
            return [NodePluginScores(node.name, 1, {}) for node in nodes]
        status = framework.run_pre_score_plugins(state, pod, nodes)
        if not status.success:
            raise SchedulingError(status.message)
        scores, status = framework.run_score_plugins(state, pod, nodes)
        if not status.success:
            raise SchedulingError(status.message)
        extra = self.extender_scores(pod, nodes)
        if not extra:
            return scores
        return [
            NodePluginScores(entry.name, entry.total_score + extra.get(entry.name, 0), entry.scores) for entry in scores
        ]

    def extender_scores(self, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """Node -> what the extenders add to its total."""
        answers = []
        for extender in self.extenders:
            if not extender.is_prioritizer or not extender.is_interested(pod):
                continue
            try:
                answers.append((extender, extender.prioritize(pod, _objects(nodes))))
            except ExtenderError as error:
                log.debug("failed to run extender's priority function error=%s", error)
        return weighted(answers)

    def select_host(self, scores: Sequence[NodePluginScores]) -> str:
        """One of the best, by the injected random source. Go: selectHost."""
        if isinstance(scores, NodeScores):
            return scores.names[self.rng.choice(scores.best())]
        best = max(entry.total_score for entry in scores)
        return self.rng.choice([entry.name for entry in scores if entry.total_score == best])


def _objects(nodes: Sequence[NodeInfo]) -> list[corev1.Node]:
    """Those of a snapshot all have theirs."""
    return [info.node for info in nodes if info.node is not None]
