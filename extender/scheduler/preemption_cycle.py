"""The verb preempt: which of the offered candidates may be used, and with which victims.

kube-scheduler has found the candidates by its own filters, and picks one of those that are left.
kube-scheduler: pkg/scheduler/framework/preemption/preemption.go (callExtenders)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from extender.api import corev1
from extender.api.extenderv1 import MetaPod, MetaVictims
from extender.framework.listers import NodeInfoLister
from extender.framework.preemption.candidate import Victims

Process = Callable[[corev1.Pod, Mapping[str, Victims]], Mapping[str, Victims]]

log = logging.getLogger(__name__)


class PreemptionCycle:
    """Runs under the scheduling cycle's lock. process: tells which candidates, by node, may be used, and with which victims."""

    def __init__(self, newest_snapshot: Callable[[], NodeInfoLister], process: Process) -> None:
        self._newest_snapshot = newest_snapshot
        self._process = process

    def run(self, pod: corev1.Pod, offered: Mapping[str, MetaVictims]) -> dict[str, MetaVictims]:
        """Never a null and never an unknown victim: kube-scheduler would not survive the first, nor believe the second."""
        candidates = self._candidates(offered)
        usable = self._process(pod, candidates)
        log.debug("preemption reviewed pod=%s offered=%d usable=%d", pod.key, len(offered), len(usable))
        return {
            node_name: MetaVictims(
                pods=tuple(MetaPod(uid=victim.uid) for victim in victims.pods),
                num_pdb_violations=victims.num_pdb_violations,
            )
            for node_name, victims in usable.items()
            if victims.pods
        }

    def _candidates(self, offered: Mapping[str, MetaVictims]) -> dict[str, Victims]:
        snapshot = self._newest_snapshot()
        candidates = {}
        for node_name, victims in offered.items():
            try:
                here = {info.pod.uid: info.pod for info in snapshot.get(node_name).pods}
            except KeyError:
                continue
            pods = tuple(here[victim.uid] for victim in victims.pods if victim.uid in here)
            if len(pods) == len(victims.pods):
                candidates[node_name] = Victims(pods, victims.num_pdb_violations)
        return candidates
