"""The verbs filter and prioritize: PreFilter to Filter, and PreScore to NormalizeScore, on one snapshot.

kube-scheduler: pkg/scheduler/schedule_one.go (findNodesThatFitPod, prioritizeNodes)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from extender.api import corev1
from extender.api.extenderv1 import MAX_EXTENDER_PRIORITY, ExtenderFilterResult, HostPriority
from extender.api.metav1 import ObjectMeta
from extender.framework.columnar import table_of
from extender.framework.cycle_state import AWAITED, CycleState
from extender.framework.handle import Clock
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.listers import NodeInfoLister
from extender.framework.named_nodes import NamedNodes
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import NodeRows, names_of
from extender.framework.runtime.columnar_scoring import NodeScores
from extender.framework.runtime.framework import Framework
from extender.framework.runtime.metrics_recorder import sampled_state
from extender.framework.status import Code, Status
from extender.scheduler.interface import NotCacheCapableError

NOT_CACHE_CAPABLE = str(NotCacheCapableError("NodeNames"))
BUSY = "the extender is still busy with another pod"
FILTER_SECONDS = 0.9  # that a filter call may wait, for locks too; what it computes itself comes on top
LAST_LOOK_SECONDS = 0.1  # of these, kept for the look at what has been waited for
NAMED_IN_REFUSAL = 16  # nodes: with 1,000 named, a refused pod costs kube-scheduler half as much again


class SchedulingCycle:
    """One at a time, as in kube-scheduler: the plugins of a profile share its snapshot. `lock` is held while plugins run, and
    not while a cycle waits for what a plugin has found missing."""

    def __init__(self, newest_snapshot: Callable[[], NodeInfoLister], clock: Clock = time.monotonic) -> None:
        self._newest_snapshot = newest_snapshot
        self._clock = clock
        self.lock = threading.Lock()  # one scheduling or preemption cycle at a time; taken before every other lock

    def filter(self, framework: Framework, pod: corev1.Pod, names: Sequence[str]) -> ExtenderFilterResult:
        """Which of the offered nodes the pod may go to. A refusal has one text for all nodes.

        It waits for no longer than FILTER_SECONDS, locks included: kube-scheduler schedules no other pod meanwhile.
        """
        deadline = self._clock() + FILTER_SECONDS
        state = sampled_state()
        while True:
            awaited = state.awaited
            if not self.lock.acquire(timeout=max(0.0, deadline - self._clock())):
                if awaited is not None:
                    awaited.give_up()
                return ExtenderFilterResult(error=BUSY)
            try:
                result = self._filter(framework, state, pod, names)
            finally:
                self.lock.release()
            awaited = state.awaited
            if awaited is None:
                return result
            awaited.wait(deadline - self._clock() - LAST_LOOK_SECONDS)
            state = sampled_state()
            state.write(AWAITED, awaited)

    def _filter(
        self, framework: Framework, state: CycleState, pod: corev1.Pod, names: Sequence[str]
    ) -> ExtenderFilterResult:
        """Lock held."""
        nodes = self._offered(framework, names)
        result, status, _ = framework.run_pre_filter_plugins(state, pod, nodes)
        if not status.success:
            return refusal(names, status)
        allowed = result.node_names if result is not None else None
        if allowed is not None:
            nodes = nodes.among(allowed)
        elif not framework.has_filter_plugins_left(state):
            return ExtenderFilterResult(node_names=list(names))
        found = framework.filter_nodes(state, pod, nodes.found(), nominated=False)
        if found.error is not None:
            return ExtenderFilterResult(error=found.error.message)
        refused = {name: status.message for name, status in found.statuses.items()}
        return ExtenderFilterResult(node_names=list(names_of(found.feasible)), failed_and_unresolvable_nodes=refused)

    def prioritize(self, framework: Framework, pod: corev1.Pod, names: Sequence[str]) -> list[HostPriority]:
        """The weighted scores of the profile, scaled to 0..10, in whole numbers. Without score plugins all are 0."""
        with self.lock:
            state = sampled_state()
            nodes = self._offered(framework, names).found()
            status = framework.run_pre_score_plugins(state, pod, nodes)
            if not status.success:
                raise RuntimeError(status.message)
            scores, status = framework.run_score_plugins(state, pod, nodes)
            if not status.success:
                raise RuntimeError(status.message)
            best = framework.total_score_weight(state) * MAX_NODE_SCORE
            if best <= 0:
                return [HostPriority(host=name, score=0) for name in names]
            totals = scores.totals.tolist() if isinstance(scores, NodeScores) else [one.total_score for one in scores]
            return [
                HostPriority(host=name, score=total * MAX_EXTENDER_PRIORITY // best)
                for name, total in zip(names, totals, strict=True)
            ]

    def _offered(self, framework: Framework, names: Sequence[str]) -> NamedNodes:
        snapshot = self._newest_snapshot()
        framework.set_snapshot(snapshot)
        return NamedNodes(names, partial(_nodes_named, snapshot))


def _nodes_named(snapshot: NodeInfoLister, names: Sequence[str]) -> Sequence[NodeInfo]:
    """The snapshot's view of the nodes; one that our watch has not shown yet is taken on kube-scheduler's word."""
    table = table_of(snapshot)
    rows = table.rows_named(names) if table is not None else None
    if table is not None and rows is not None:
        return NodeRows(table, rows)
    nodes = []
    for name in names:
        try:
            nodes.append(snapshot.get(name))
        except KeyError:
            nodes.append(NodeInfo(corev1.Node(metadata=ObjectMeta(name=name))))
    return nodes


def refusal(names: Sequence[str], status: Status) -> ExtenderFilterResult:
    """All nodes refused for one reason; unresolvable, since no preemption helps a gang that is not ready.

    kube-scheduler takes a node that is in no list for refused and unresolvable as well. Some have to be named, or the
    reason would get lost.
    """
    if status.code is Code.ERROR:
        return ExtenderFilterResult(error=status.message)
    return ExtenderFilterResult(failed_and_unresolvable_nodes=dict.fromkeys(names[:NAMED_IN_REFUSAL], status.message))
