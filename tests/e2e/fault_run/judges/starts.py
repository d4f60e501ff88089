"""What fits does not wait, when the faults are over and nothing moves any more; and each victim was needed.

Both read the state of the cluster as the run wrote it down then.
"""

from __future__ import annotations

from typing import Any

from tests.e2e.fault_run.budgets import Budget
from tests.e2e.fault_run.drawn_configuration import DrawnConfiguration
from tests.e2e.fault_run.liveness import waits_although_it_fits
from tests.e2e.fault_run.preemption_check import Before, Comer, needless
from tests.e2e.fault_run.record import Past, lines
from tests.e2e.fault_run.volumes import Volumes


def waiting_although_they_fit(past: Past) -> list[str]:
    """Of the states in which it was looked at, the last counts."""
    found: list[str] = []
    for state in lines(past.folder, "calm"):
        before = _before(past, state)
        volumes = Volumes(state["claims"], state["volumes"])
        found = waits_although_it_fits(before.pods, before.nodes, state["groups"], volumes, before.spares)
    return found + [line for each in lines(past.folder, "evictions") for line in each["waits"]]


def needless_victims(past: Past) -> list[str]:
    found: list[str] = []
    for each in lines(past.folder, "evictions"):
        found += needless(Comer(**each["comer"]), _before(past, each), each["victims"])
    return found


def _before(past: Past, state: dict[str, Any]) -> Before:
    budgets = [Budget(**each) for each in state["budgets"]]
    configuration = DrawnConfiguration(**past.settings["configuration"])
    return Before(state["pods"], state["nodes"], state.get("minimums", {}), budgets, configuration)
