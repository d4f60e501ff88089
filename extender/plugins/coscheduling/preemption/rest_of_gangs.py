"""Members on other nodes of a gang that kube-scheduler breaks: evicted once the watch shows that it does, whoever runs then.

The guard's answer is not yet an eviction: kube-scheduler may choose another node, or nobody. What it has chosen shows on the
victim: the condition DisruptionTarget, with the reason PreemptionByScheduler, and then its deletion.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from cachetools import TTLCache

from extender import metrics
from extender.api import corev1
from extender.client.interface import pod_reference
from extender.plugins.coscheduling.preemption.eviction import Eviction, Evictor
from extender.plugins.coscheduling.preemption.leaving import Leaving
from extender.plugins.coscheduling.preemption.reselection import Selection
from extender.plugins.coscheduling.preemption.running_gangs import running_members
from extender.plugins.coscheduling.state.pod_conditions import was_preempted
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

log = logging.getLogger(__name__)

EXPECTED_SECONDS = 60.0  # kube-scheduler evicts within moments; a victim that goes later goes for another reason
MAX_EXPECTED = 10_000


@dataclass(frozen=True, slots=True)
class _Rest:
    """victims: whom kube-scheduler evicts itself. elsewhere: whom it does not."""

    preemptor: corev1.Pod
    broken: frozenset[str]
    victims: Sequence[corev1.Pod]
    elsewhere: Sequence[corev1.Pod]


class RestOfGangs:
    """The manager's lock guards what is expected; evictions are asked for outside it."""

    def __init__(self, manager: PodGroupManager, evictor: Evictor, leaving: Leaving) -> None:
        self._manager = manager
        self._evictor = evictor
        self._leaving = leaving
        self._expected: TTLCache[str, _Rest] = TTLCache(MAX_EXPECTED, EXPECTED_SECONDS, timer=manager.clock)

    def allowed(self) -> bool:
        return self._evictor.allowed_despite_budgets()

    def expect(self, preemptor: corev1.Pod, chosen: Selection) -> None:
        """An older answer for this preemptor counts no longer."""
        rest = _Rest(preemptor, chosen.broken, chosen.victims, [victim.pod for victim in chosen.elsewhere])
        with self._manager.lock:
            for uid in [uid for uid, known in self._expected.items() if known.preemptor.uid == preemptor.uid]:
                del self._expected[uid]
            for victim in chosen.victims:
                self._expected[victim.uid] = rest

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        if pod is None or (new is not None and not new.deleting):
            return
        with self._manager.lock:
            rest = self._expected.get(pod.uid)
            if rest is None or not (was_preempted(pod) or (old is not None and was_preempted(old))):
                return
            for uid in [uid for uid, known in self._expected.items() if known is rest]:
                del self._expected[uid]
            pods = self._running(rest)
        metrics.gangs_broken.inc(len(rest.broken))
        self._leaving.go([*rest.victims, *pods])
        if pods:
            log.info("rest of preempted gangs goes groups=%s pods=%d", " ".join(sorted(rest.broken)), len(pods))
            preemptor = rest.preemptor
            by = f"pod {preemptor.uid}"
            reference, name = pod_reference(preemptor), preemptor.spec.scheduler_name
            eviction = Eviction(pods, by, reference, name, despite_budgets=True)
            self._evictor.evict(eviction, lambda failure: self._told(pods, rest, failure))

    def _running(self, rest: _Rest) -> list[corev1.Pod]:
        """With who has come to a node since kube-scheduler was answered, or is on its way to one. Lock held."""
        pods = {pod.uid: pod for pod in rest.elsewhere}
        pods |= {uid: info.pod for uid, info in running_members(self._manager, rest.broken).items() if uid not in pods}
        for victim in rest.victims:
            pods.pop(victim.uid, None)
        return list(pods.values())

    def _told(self, pods: Sequence[corev1.Pod], rest: _Rest, failure: str) -> None:
        if failure:
            groups = " ".join(sorted(rest.broken))
            log.error("rest of preempted gangs was not evicted groups=%s error=%s", groups, failure)
            self._leaving.stay([pod.uid for pod in pods])
