"""What the probes say: whether the extender may answer, what is wrong where it may not, and what only a new process can mend.

Each check is a line of /readyz?verbose or /livez?verbose. kube-scheduler: cmd/kube-scheduler/app/server.go (its health checks)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from extender.client.informer import InformerFactory
from extender.client.interface import POD_GROUPS
from extender.scheduler.actions.verdicts import GroupVerdicts
from extender.scheduler.background import Background
from extender.scheduler.early_end import EarlyEnd
from extender.scheduler.filter_health import LIVENESS_SECONDS, READINESS_SECONDS, USELESS_SECONDS, FilterHealth
from extender.scheduler.interface import Check
from extender.scheduler.leadership import Leadership
from extender.scheduler.pod_groups.controller import PodGroupController
from extender.scheduler.running_configuration import RunningConfiguration
from extender.scheduler.unreached import Unreached

CACHE_NOT_SYNCED = "cache not synced"
KUBE_SCHEDULER = "kube-scheduler"  # a check of /livez: what fails it is for kube-scheduler to end, not for the extender
UNHEARD_SECONDS = (
    60.0  # for which it fails by that: longer than kube-scheduler's probe has patience, and once for each outage
)


@dataclass(frozen=True, slots=True)
class Health:
    """Of one scheduler, read off its parts with each question. refusals: of filter calls that could not be worked for."""

    informers: InformerFactory
    leadership: Leadership
    verdicts: GroupVerdicts
    pod_groups: PodGroupController
    filter_health: FilterHealth
    refusals: FilterHealth
    unreached: Unreached
    early_end: EarlyEnd
    background: Background
    planning: Background
    running: RunningConfiguration

    def not_ready(self) -> str:
        """Why no call may be answered now; empty where it may."""
        if not self.informers.has_synced():
            return CACHE_NOT_SYNCED
        if reason := self.leadership.reason:
            return f"not the leader: {reason}"
        return ""

    def readiness(self, *, draining: bool) -> Sequence[Check]:
        return [
            *(Check(f"informer-{state.resource}", state.ok, state.reason) for state in self.informers.states()),
            *self._of_pod_groups(),
            self._filter_check(READINESS_SECONDS),
            self._configuration(),
            Check("draining", not draining, "draining" if draining else ""),
        ]

    def liveness(self) -> Sequence[Check]:
        threads = {"background": self.background.trouble, "planning": self.planning.trouble}
        checks = [Check(name, not trouble, trouble) for name, trouble in threads.items()]
        trouble = self._trouble_of_kube_scheduler()
        return [*checks, self._filter_check(LIVENESS_SECONDS), Check(KUBE_SCHEDULER, not trouble, trouble)]

    def _of_pod_groups(self) -> Sequence[Check]:
        """What is good to know; none of them fails."""
        known = []
        if not self.informers.informer(POD_GROUPS).state.served:
            known.append(Check("podgroup-crd", True, "not served: groups come from labels only"))
        if not self.verdicts.writer.conditions_kept:
            text = "the CRD has no status.conditions: verdicts are events only"
            known.append(Check("podgroup-conditions", True, text))
        if others := self.pod_groups.other_managers:
            text = f"phases are left to another controller of PodGroups: {', '.join(sorted(others))}"
            known.append(Check("podgroup-status", True, text))
        return known

    def _configuration(self) -> Check:
        """What is seen to be wrong; no restart mends it, so that it never fails."""
        wrong = "; ".join(f"{each.message} ({each.code})" for each in self.running.findings())
        return Check("configuration", True, wrong)

    def _trouble_of_kube_scheduler(self) -> str:
        """Why the one that asks us should leave the Lease to another: it has had no use of us for a while.

        It hears of Errors before our own probe fails: each restart of ours would let its probe pass for a while.
        """
        if refused := self.refusals.trouble(USELESS_SECONDS):
            return f"{refused}: {self.not_ready() or 'ready by now'}"
        trouble = self.filter_health.trouble(USELESS_SECONDS) or self.unreached.trouble(USELESS_SECONDS)
        return trouble or self._unheard() or self.early_end.trouble()

    def _unheard(self) -> str:
        """The API server is away, for us or for all. For all kube-scheduler has ended by itself, and one restart more costs nothing;
        for us alone it renews the Lease, and pods that were refused by what was seen last are not asked about again."""
        unheard = self.leadership.unheard_seconds
        if not 0 < unheard < UNHEARD_SECONDS:
            return ""
        return f"no renewal of the Lease has been seen for {unheard:.0f}s more than half of its duration"

    def _filter_check(self, seconds: float) -> Check:
        trouble = self.filter_health.trouble(seconds)
        return Check("filter", not trouble, trouble)
