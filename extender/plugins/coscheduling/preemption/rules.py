"""What the configuration says of preemption by gangs and of gangs. No counterpart in kube-scheduler."""

from __future__ import annotations

from dataclasses import dataclass

from extender.plugins.coscheduling.preemption.evictable import GangVictims


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """minimum_run_seconds: how long a pod has to have run to be a victim of a gang. delay_seconds: how long a gang has to
    have found no room before it evicts anybody, so that an autoscaler can win."""

    enabled: bool = True
    gang_victims: GangVictims = GangVictims.WHOLE_OR_SURPLUS
    minimum_run_seconds: float = 0.0
    delay_seconds: float = 0.0
