"""What a cluster lacks for the extender, asked of its API server: kinds, rights, the Lease; and what admission.py and pods.py find there.

Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

from extender.client import interface as kinds
from extender.client.errors import ApiError, NotFoundError
from extender.client.interface import API
from extender.config.findings import Finding, Severity
from extender.config.types import ExtenderConfiguration, NamespacedName
from extender.doctor import admission, definitions, pods
from extender.doctor.questions import Questions
from extender.scheduler.rights import Right, rights

ERROR, WARNING, INFO = Severity


def examine(
    api: API,
    configuration: ExtenderConfiguration | None,
    source: str,
    user: str,
    now: datetime | None = None,
    *,
    lease: NamespacedName | None = None,
    why: str = "",
) -> Iterator[Finding]:
    """configuration: None where it is not known, for the reason `why`. source: how the cluster was reached, the `file` of the findings.
    user: whose rights are asked; empty: our own. now: the time to hold the Lease against. lease: the one to look at in place of the
    configuration's. What the API server refuses to us is a finding too; a server that does not answer is an ApiError."""
    known = configuration or ExtenderConfiguration()
    ask = Questions(api, known, source, user, "" if configuration is not None else why or "no file was given")
    if ask.unknown:
        yield _not_known(ask)
    yield from _served(ask)
    yield from definitions.examine(ask)
    for right in rights(known):
        yield from _right(ask, right)
    if (watched := lease or known.leader_lease) is not None:
        yield from _lease(ask, watched, now or datetime.now(UTC))
    if not ask.unknown:
        yield from admission.examine(ask)
    yield from pods.examine(ask)


def _not_known(ask: Questions) -> Finding:
    message = (
        "the extender's configuration is not known: not examined are the schedulers that members name, keys of groups that nothing reads, "
        f"admission policies, and rights that only some settings want: {ask.unknown}"
    )
    fix = "name the file that it runs with by --config FILE"
    return ask.finding(INFO, "NotExamined", "", message, fix)


def _served(ask: Questions) -> Iterator[Finding]:
    try:
        _, forbidden = ask.read(str(kinds.POD_GROUPS), partial(ask.api.list_page, kinds.POD_GROUPS, limit=1))
        yield from forbidden
    except NotFoundError:
        message = "the kind is not served: pods that name a PodGroup wait, gangs by labels alone start"
        fix = "kubectl apply --server-side -k manifests/crd"
        yield ask.finding(WARNING, "NoPodGroups", str(kinds.POD_GROUPS), message, fix)


def _right(ask: Questions, right: Right) -> Iterator[Finding]:
    lost, forbidden = ask.read("subjectaccessreviews", partial(right.missing, ask.api, ask.user))
    yield from forbidden
    if lost:
        yield right.finding(ask.source, ask.user, lost)


def _lease(ask: Questions, ref: NamespacedName, now: datetime) -> Iterator[Finding]:
    field = f"leases {ref.namespace}/{ref.name}"
    try:
        lease, forbidden = ask.read(field, partial(ask.api.get, kinds.LEASES, ref.name, ref.namespace))
    except NotFoundError:
        message = "no kube-scheduler has ever held the Lease that the extender watches: nothing is scheduled"
        fix = "compare leaderLease with leaderElection in kube-scheduler's configuration"
        yield ask.finding(ERROR, "NoLease", field, message, fix)
        return
    yield from forbidden
    if lease is None or lease.spec.renew_time is None:
        return
    since = (now - lease.spec.renew_time).total_seconds()
    if since > lease.spec.lease_duration_seconds:
        message = f"{lease.spec.holder_identity or 'its holder'} renewed it {since:.0f} s ago: no kube-scheduler leads"
        yield ask.finding(ERROR, "LeaseExpired", field, message, "look at kube-scheduler's log, and at the clocks")
    elif since < -1:
        message = f"it was renewed {-since:.0f} s from now: the clocks of this machine and of its holder differ"
        yield ask.finding(WARNING, "ClocksDiffer", field, message, "keep the clocks of all machines in step (NTP)")


def unreachable(source: str, error: ApiError) -> Finding:
    """The API server does not answer, or does not know us."""
    return Finding(ERROR, "Unreachable", source, 0, "", str(error), "check the kubeconfig: server, CA, user")
