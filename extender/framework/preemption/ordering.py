"""Which victims are spared first, and which node is the best to take.

kube-scheduler: pkg/scheduler/util/utils.go (MoreImportantPod, GetEarliestPodStartTime), preemption.go (pickOneNodeForPreemption)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from extender.api import corev1
from extender.framework.preemption.candidate import Victims
from extender.framework.preemption.interface import ScoreFunction
from extender.framework.sort_slice import sort_slice

ABOVE_ANY_PRIORITY = 2**31  # keeps every summand positive: more victims never look cheaper than fewer


def more_important_pod(first: corev1.Pod, second: corev1.Pod) -> bool:
    """Of higher priority, or as high and running for longer.

    A pod without a start time counts as started now, and of two such pods the one asked about first is the more
    important: the clock has moved on when the second is looked at.
    """
    if first.priority != second.priority:
        return first.priority > second.priority
    started, other = first.status.start_time, second.status.start_time
    if other is None:
        return started is None or started < datetime.now(UTC)
    return (started or datetime.now(UTC)) < other


def sort_by_importance(pods: list[corev1.Pod]) -> None:
    """The most important first."""
    sort_slice(pods, more_important_pod)


def earliest_start_time(victims: Victims) -> datetime:
    """Of the victims that share the highest priority."""
    highest = max(pod.priority for pod in victims.pods)
    return min(pod.status.start_time or datetime.now(UTC) for pod in victims.pods if pod.priority == highest)


def default_score_functions(victims: Mapping[str, Victims]) -> Sequence[ScoreFunction]:
    """kube-scheduler's criteria, from the most to the least important."""
    return (
        lambda node: -victims[node].num_pdb_violations,
        lambda node: -victims[node].pods[0].priority,
        lambda node: -sum(pod.priority + ABOVE_ANY_PRIORITY for pod in victims[node].pods),
        lambda node: -len(victims[node].pods),
        lambda node: _nanoseconds(earliest_start_time(victims[node])),
    )


def _nanoseconds(time: datetime) -> int:
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000


def best_nodes(names: Sequence[str], functions: Sequence[ScoreFunction]) -> list[str]:
    """Those that no criterion tells apart; each criterion is asked only of those that the ones before it left."""
    left = list(names)
    for function in functions:
        if len(left) == 1:
            break
        scores = {name: function(name) for name in left}
        best = max(scores.values())
        left = [name for name in left if scores[name] == best]
    return left


def pick_one_node(
    victims: Mapping[str, Victims], functions: Sequence[ScoreFunction], choose: Callable[[Sequence[str]], str]
) -> str:
    """choose: one of those that are equally good (kube-scheduler takes any)."""
    return choose(best_nodes(list(victims), functions or default_score_functions(victims)))
