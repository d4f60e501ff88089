"""What does not fit together between kube-scheduler's configuration and the extender's: fields that have to say the same.

`configuration` examines each file by itself, and calls this where there are both.
"""

from __future__ import annotations

from collections.abc import Iterator

from extender.config.durations import go_duration
from extender.config.findings import Finding, Severity, finding
from extender.config.types import ExtenderConfiguration, KubeSchedulerConfiguration
from extender.doctor import addresses
from extender.doctor.config_files import ExtenderFile, KubeSchedulerFile, entries_of_ours

ERROR, WARNING, INFO = Severity

SHORTEST_BIND_TIMEOUT, LONGEST_BIND_TIMEOUT = 10.0, 3600.0
"""What bindTimeoutSeconds may be."""


def of_both(kube_scheduler: KubeSchedulerFile, ours: ExtenderFile) -> Iterator[Finding]:
    """Fields of the two files that have to say the same."""
    yield from _names(kube_scheduler, ours)
    yield from _bind_timeout(kube_scheduler, ours)
    yield from _lease(kube_scheduler, ours)
    yield from _samples_differ(kube_scheduler, ours)


def _samples_differ(kube_scheduler: KubeSchedulerFile, ours: ExtenderFile) -> Iterator[Finding]:
    """By the profiles that the extender serves. One finding for each pair of fields, since several profiles may have both from the top."""
    seen: set[tuple[str, str]] = set()
    for profile in kube_scheduler.read.profiles:
        name = profile.scheduler_name
        (their_field, theirs), (field, own) = _sample(kube_scheduler.read, name), _sample(ours.read, name)
        if theirs == own or not ours.read.serves(name) or (their_field, field) in seen:
            continue
        seen.add((their_field, field))
        message = f"kube-scheduler has {theirs} ({their_field}), and the extender believes {own}"
        fix = "write the same number in both files"
        yield finding(WARNING, "SampleDiffers", ours.document, field, message, fix)


def _sample(file: KubeSchedulerConfiguration | ExtenderConfiguration, scheduler_name: str) -> tuple[str, int]:
    """The field that counts for the scheduler's profile, and its number: a profile's own comes before the file's."""
    field = "percentageOfNodesToScore"
    for index, profile in enumerate(file.profiles):
        if profile.scheduler_name == scheduler_name and profile.percentage_of_nodes_to_score is not None:
            return f"profiles[{index}].{field}", profile.percentage_of_nodes_to_score
    return field, file.percentage_of_nodes_to_score


def _names(kube_scheduler: KubeSchedulerFile, ours: ExtenderFile) -> Iterator[Finding]:
    named = ours.read.scheduler_names
    if not named:
        return
    profiles = [profile.scheduler_name for profile in kube_scheduler.read.profiles]
    for index, name in enumerate(profiles):
        if name not in named:
            field = f"profiles[{index}].schedulerName"
            message = f"the extender is asked about the pods of {name!r}, and refuses them: none of them starts"
            fix = f"add {name!r} to schedulerNames in {ours.document.file}"
            yield finding(ERROR, "SchedulerNotServed", kube_scheduler.document, field, message, fix)
    for index, name in enumerate(named):
        if name not in profiles:
            message = f"no profile of kube-scheduler is named {name!r}: its pods are never scheduled"
            fix = f"add a profile of the name to {kube_scheduler.document.file}, or take the name away"
            yield finding(WARNING, "NoProfile", ours.document, f"schedulerNames[{index}]", message, fix)


def _bind_timeout(kube_scheduler: KubeSchedulerFile, ours: ExtenderFile) -> Iterator[Finding]:
    believed = ours.read.bind_timeout_seconds
    for index, entry in enumerate(kube_scheduler.read.extenders):
        if not entry.bind_verb or entry.http_timeout_seconds == believed or entry.http_timeout_seconds < 0:
            continue
        field, timeout = f"extenders[{index}].httpTimeout", entry.http_timeout_seconds
        shown = go_duration(timeout)
        if timeout < believed:
            message = f"kube-scheduler hangs up after {shown}, and the extender would hold the call {believed:g} s"
            fix = f"write `httpTimeout: {go_duration(believed)}`"
            if timeout >= SHORTEST_BIND_TIMEOUT:
                fix = f"write `bindTimeoutSeconds: {timeout:.15g}` in {ours.document.file}, or a longer httpTimeout"
            yield finding(ERROR, "BindTimeoutDiffers", kube_scheduler.document, field, message, fix)
        else:
            message = f"the extender ends holds before {believed:g} s, although kube-scheduler waits {shown}"
            fix = f"write `bindTimeoutSeconds: {min(timeout, LONGEST_BIND_TIMEOUT):.15g}` in {ours.document.file}"
            yield finding(INFO, "BindTimeoutDiffers", kube_scheduler.document, field, message, fix)


def _lease(kube_scheduler: KubeSchedulerFile, ours: ExtenderFile) -> Iterator[Finding]:
    election, watched = kube_scheduler.read.leader_election, ours.read.leader_lease
    if ours.read.leader_service is not None:
        yield from _apart(kube_scheduler, ours)
        return
    held = f"{election.resource_namespace}/{election.resource_name}"
    if watched is None and election.leader_elect:
        message = (
            "kube-scheduler elects a leader, and the extender does not know its Lease: beside a standby it acts too"
        )
        yield finding(WARNING, "NoLeaderLease", ours.document, "leaderLease", message, f"write `leaderLease: {held}`")
    elif watched is not None and not election.leader_elect:
        message = "kube-scheduler holds no Lease, so the extender stands by for ever: nothing is scheduled"
        fix = "write `leaderElect: true`, or take leaderLease away from the extender's configuration"
        document = kube_scheduler.document
        yield finding(ERROR, "NoLeaderElection", document, "leaderElection.leaderElect", message, fix)
    elif watched is not None and held != f"{watched.namespace}/{watched.name}":
        message = f"kube-scheduler holds {held}: the extender watches another Lease, and stands by for ever"
        yield finding(ERROR, "LeaseDiffers", ours.document, "leaderLease", message, f"write `leaderLease: {held}`")


def _apart(kube_scheduler: KubeSchedulerFile, ours: ExtenderFile) -> Iterator[Finding]:
    """The extenders run apart from kube-scheduler, and elect a leader of their own by leaderLease."""
    election, lease = kube_scheduler.read.leader_election, ours.read.leader_lease
    held = f"{election.resource_namespace}/{election.resource_name}"
    if lease is not None and election.leader_elect and held == f"{lease.namespace}/{lease.name}":
        message = (
            f"kube-scheduler and the extenders elect their leaders by one Lease, {held}: one of the two never leads"
        )
        fix = "give the extenders a Lease of their own, such as `leaderLease: kube-system/gang-extender`"
        yield finding(ERROR, "SharedLease", ours.document, "leaderLease", message, fix)
    for index, entry in entries_of_ours(kube_scheduler.read.extenders, ours.read.leader_service):
        url, _ = addresses.split(entry.url_prefix)
        if url is not None and url.hostname and addresses.is_loopback(url.hostname):
            message = (
                "the extender that leads may run on any node, and this is kube-scheduler's own: leaderService is set"
            )
            fix = (
                "write the Service's address, or take leaderService away where the extender runs beside kube-scheduler"
            )
            field = f"extenders[{index}].urlPrefix"
            yield finding(ERROR, "NotTheService", kube_scheduler.document, field, message, fix)
