"""What became of each pod and each gang in a run: the document that `simulate -o json` prints.

Frozen structs in camelCase; docs/simulate.md describes every field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct, structs

from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import TIMED_OUT, Verdict
from extender.plugins.coscheduling.dependencies import WAITING as GANG_WAITING
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import is_running
from extender.scheduler.pod_groups.line import would_fit
from extender.simulation.driver import Driver
from extender.simulation.journal import Journal

MOST_ASKED = 20  # gangs, of those that wait the first in line; an answer may take seconds in a large cluster
GATED = "Scheduling is blocked due to non-empty scheduling gates"  # as the API server writes it when the pod is made

SCHEDULED, PLACED, PENDING, WAITING, PREEMPTED, DELETED, LEFT = (
    "Scheduled",  # bound in this run
    "Placed",  # had its node before
    "Pending",
    "WaitingOnPermit",
    "Preempted",
    "Deleted",
    "NotOurs",  # no profile schedules for it
)


class Described(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base: camelCase, what is not so left out."""


class PodReport(Described, frozen=True, gc=False):
    """bound_at: virtual seconds since the beginning. group: the name of the one that it is a member of."""

    namespace: str
    name: str
    state: str
    node: str = ""
    nominated_node: str = ""
    message: str = ""
    attempts: int = 0
    bound_at: float | None = None
    preempted_by: str = ""
    group: str = ""


class GangReport(Described, frozen=True, gc=False):
    """min_member: None where there is no PodGroup, or an invalid one. would_fit: as PodGroup.status.wouldFit."""

    namespace: str
    group: str
    state: str
    members: int
    assigned: int
    min_member: int | None = None
    message: str = ""
    would_fit: str = ""


class Report(Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """settled_at: virtual seconds to the last thing that was new. quiet: False where virtual time ran out first."""

    api_version: str = "gang-extender.dev/v1alpha1"
    kind: str = "SimulationReport"
    seed: int
    settled_at: float
    quiet: bool
    summary: Mapping[str, int]
    pods: Sequence[PodReport]
    gangs: Sequence[GangReport]
    warnings: Sequence[str]


def pod_reports(
    before: Sequence[corev1.Pod],
    after: Mapping[str, corev1.Pod],
    served: frozenset[str],
    driver: Driver,
    journal: Journal,
    group_of: Callable[[corev1.Pod], str],
) -> list[PodReport]:
    """before: the pods of the files; after: those that are left, by UID. served: the scheduler names of the profiles. group_of: the name
    of a pod's group; empty for none."""
    held = frozenset(driver.held)
    reports = []
    for old in sorted(before, key=lambda pod: (pod.namespace, pod.name)):
        new = after.get(old.uid)
        state, message = _state(old, new, served, held, journal)
        reports.append(
            PodReport(
                old.namespace,
                old.name,
                state,
                node=(new or old).node_name,
                nominated_node=new.status.nominated_node_name if new is not None and not new.node_name else "",
                message=message,
                attempts=driver.attempts.get(old.uid, 0),
                bound_at=driver.bound_at.get(old.uid),
                preempted_by=journal.preempted_by.get(old.uid, ""),
                group=group_of(old),
            )
        )
    return reports


def _state(
    old: corev1.Pod, new: corev1.Pod | None, served: frozenset[str], held: frozenset[str], journal: Journal
) -> tuple[str, str]:
    if new is None:
        return (PREEMPTED if old.uid in journal.preempted_by else DELETED), ""
    if new.node_name:
        return (PLACED if old.node_name else SCHEDULED), ""
    if new.spec.scheduler_name not in served:
        return LEFT, f'no profile schedules for "{new.spec.scheduler_name}"'
    message = journal.failures.get(new.uid, "")
    if new.uid in held and not message:  # a pod that was refused before is held again and again
        return WAITING, ""
    if not message and new.spec.scheduling_gates:
        message = GATED
    return PENDING, message


def gang_reports(coscheduling: Coscheduling | None, journal: Journal) -> list[GangReport]:
    """Before the frameworks are closed: of gangs that wait the planner is asked what would make them fit."""
    if coscheduling is None:
        return []
    manager = coscheduling.manager
    with manager.lock:
        found = {key: _gang(manager, manager.groups[key], journal) for key in sorted(manager.groups)}
    waiting = sorted((gang.place, gang.key) for gang in coscheduling.report.summaries() if gang.place)
    for _, key in waiting[:MOST_ASKED]:
        if key in found:
            found[key] = structs.replace(found[key], would_fit=would_fit(coscheduling.report, key))
    return list(found.values())


GATHERING, INVALID, QUARANTINED = "Gathering", "Invalid", "Quarantined"
_STATES = {TIMED_OUT: "TimedOut", GANG_WAITING: GATHERING}


def _gang(manager: PodGroupManager, group: Group, journal: Journal) -> GangReport:
    """Of a gang that is set aside only what is known without a look at it."""
    shown = manager.quarantine.for_gang(group.key, "page", partial(_report, manager, group, journal), None)
    if shown is not None:
        return shown
    namespace, _, name = group.key.partition("/")
    return GangReport(
        namespace, name, QUARANTINED, len(group.members), len(group.assigned), None, messages.INTERNAL_ERROR
    )


def _report(manager: PodGroupManager, group: Group, journal: Journal) -> GangReport:
    spec = manager.specs.of(group)
    namespace, _, name = group.key.partition("/")
    state, message = _state_of(group, spec, journal.verdicts.get(group.key))
    minimum = spec.min_member if spec is not None and state != INVALID else None
    return GangReport(namespace, name, state, len(group.members), len(group.assigned), minimum, message)


def _state_of(group: Group, spec: GroupSpec | None, verdict: Verdict | None) -> tuple[str, str]:
    """With what is to be said of it."""
    if spec is None:
        return GATHERING, "PodGroup not found"
    if spec.invalid:
        return INVALID, spec.invalid
    if len(group.assigned) >= spec.min_member or is_running(group, spec):
        return "Bound", messages.not_honoured(spec.ignored)
    if verdict is not None and not verdict.scheduled:
        return _STATES.get(verdict.reason, "Denied"), verdict.message
    if group.held:
        return "Assembling", ""
    if len(group.members) < spec.min_member:
        return GATHERING, f"{len(group.members)} of {spec.min_member} members exist"
    return ("Planned" if group.planned else GATHERING), ""
