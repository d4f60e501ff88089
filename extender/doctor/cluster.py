"""What a cluster lacks for the extender, asked of its API server: kinds, rights, the Lease, and pods that name another scheduler.

Reads only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from extender.client import interface as kinds
from extender.client.errors import ApiError, ForbiddenError, NotFoundError
from extender.client.informer import NON_TERMINAL_PODS
from extender.client.interface import API, list_all
from extender.config.findings import Finding, Severity
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, LeaseRef
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.scheduler.rights import Right, rights

T = TypeVar("T")
ERROR, WARNING, INFO = Severity

GROUPS_SHOWN = 20
"""Each is a line of its own: a cluster of another scheduler's gangs would be a thousand."""


def examine(
    api: API, configuration: ExtenderConfiguration, source: str, user: str, now: datetime | None = None
) -> Iterator[Finding]:
    """source: how the cluster was reached, the `file` of the findings. user: whose rights are asked; empty: our own. now: the time to
    hold the Lease against. What the API server refuses to us is a finding too; a server that does not answer is an ApiError."""
    args = configuration.coscheduling_args
    cluster = _Cluster(api, configuration, args, source)
    yield from cluster.pod_groups()
    for right in rights(configuration):
        yield from cluster.right(right, user)
    if configuration.leader_lease is not None:
        yield from cluster.lease(configuration.leader_lease, now or datetime.now(UTC))
    yield from cluster.strangers()


@dataclass(frozen=True, slots=True)
class _Cluster:
    api: API
    configuration: ExtenderConfiguration
    args: CoschedulingArgs
    source: str

    def _finding(self, severity: Severity, code: str, field: str, message: str, fix: str) -> Finding:
        return Finding(severity, code, self.source, 0, field, message, fix)

    def _read(self, what: str, call: Callable[[], T]) -> tuple[T | None, list[Finding]]:
        """What the call gives; None and a finding where we may not ask."""
        try:
            return call(), []
        except ForbiddenError as error:
            fix = "ask as a user that may read it"
            return None, [self._finding(INFO, "NotExamined", what, f"not examined: {error}", fix)]

    def pod_groups(self) -> Iterator[Finding]:
        try:
            _, forbidden = self._read(str(kinds.POD_GROUPS), partial(self.api.list_page, kinds.POD_GROUPS, limit=1))
            yield from forbidden
        except NotFoundError:
            message = "the kind is not served: pods that name a PodGroup wait, gangs by labels alone start"
            fix = "kubectl apply --server-side -k manifests/crd"
            yield self._finding(WARNING, "NoPodGroups", str(kinds.POD_GROUPS), message, fix)

    def right(self, right: Right, user: str) -> Iterator[Finding]:
        lost, forbidden = self._read("subjectaccessreviews", partial(right.missing, self.api, user))
        yield from forbidden
        if lost:
            yield right.finding(self.source, user, lost)

    def lease(self, ref: LeaseRef, now: datetime) -> Iterator[Finding]:
        field = f"leases {ref.namespace}/{ref.name}"
        try:
            lease, forbidden = self._read(field, partial(self.api.get, kinds.LEASES, ref.name, ref.namespace))
        except NotFoundError:
            message = "no kube-scheduler has ever held the Lease that the extender watches: nothing is scheduled"
            fix = "compare leaderLease with leaderElection in kube-scheduler's configuration"
            yield self._finding(ERROR, "NoLease", field, message, fix)
            return
        yield from forbidden
        if lease is None or lease.spec.renew_time is None:
            return
        since = (now - lease.spec.renew_time).total_seconds()
        if since > lease.spec.lease_duration_seconds:
            message = (
                f"{lease.spec.holder_identity or 'its holder'} renewed it {since:.0f} s ago: no kube-scheduler leads"
            )
            yield self._finding(
                ERROR, "LeaseExpired", field, message, "look at kube-scheduler's log, and at the clocks"
            )
        elif since < -1:
            message = f"it was renewed {-since:.0f} s from now: the clocks of this machine and of its holder differ"
            yield self._finding(
                WARNING, "ClocksDiffer", field, message, "keep the clocks of all machines in step (NTP)"
            )

    def strangers(self) -> Iterator[Finding]:
        """Groups with pods that name a scheduler which is not ours."""
        ours: set[str] = set()
        others: dict[str, Counter[str]] = defaultdict(Counter)
        _, forbidden = self._read("pods", partial(self._count_members, ours, others))
        yield from forbidden or self._mixed(ours, others)

    def _count_members(self, ours: set[str], others: Mapping[str, Counter[str]]) -> None:
        """Keys of groups with members of ours; of groups with others, how many are of which scheduler."""
        labels = GroupLabels.of(self.args)
        for pod in list_all(self.api, kinds.PODS, field_selector=NON_TERMINAL_PODS):
            ref = labels.group_of(pod)
            if ref is None:
                continue
            if self.configuration.serves(pod.spec.scheduler_name):
                ours.add(ref.key)
            elif (ref.source is None or ref.lightweight) and not pod.spec.scheduling_group:
                # Another system's object, or kube-scheduler's own, with that system's scheduler is well.
                others[ref.key][pod.spec.scheduler_name] += 1

    def _mixed(self, ours: set[str], others: Mapping[str, Counter[str]]) -> Iterator[Finding]:
        served = ", ".join(self.configuration.scheduler_names)
        for key in sorted(others, key=lambda key: (key not in ours, key))[:GROUPS_SHOWN]:
            named = ", ".join(f"{count} of {name}" for name, count in sorted(others[key].items()))
            severity = ERROR if key in ours else WARNING
            message = (
                f"pods of this group are of another scheduler, which starts them singly: {named}; served here: {served}"
            )
            fix = f"write `schedulerName: {self.configuration.scheduler_names[0]}` in their template, or apply manifests/scheduler-name"
            yield self._finding(severity, "ForeignScheduler", f"group {key}", message, fix)
        if len(others) > GROUPS_SHOWN:
            message = f"{len(others) - GROUPS_SHOWN} more groups have pods of other schedulers"
            yield self._finding(WARNING, "ForeignScheduler", "groups", message, "mend those above, and ask again")


def unreachable(source: str, error: ApiError) -> Finding:
    """The API server does not answer, or does not know us."""
    return Finding(ERROR, "Unreachable", source, 0, "", str(error), "check the kubeconfig: server, CA, user")
