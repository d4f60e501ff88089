"""Whether kube-scheduler's configuration and ours fit together: what would take the guarantee away without a word.

Each file alone is checked by `config`; here are the rules between fields that are valid each by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from extender.config.durations import go_duration
from extender.config.findings import Finding, Severity, finding
from extender.config.kube_scheduler import read_kube_scheduler_configuration
from extender.config.load import read_extender_configuration
from extender.config.types import (
    ExtenderConfig,
    ExtenderConfiguration,
    KubeSchedulerConfiguration,
    NamespacedName,
)
from extender.config.yaml_file import ConfigurationError, Document, Mistake, read_document
from extender.doctor import addresses

T = TypeVar("T")
ERROR, WARNING, INFO = Severity

LONGEST_ANSWER_SECONDS = 10.0
"""kube-scheduler schedules nothing else while it waits for a question that is answered from memory."""
SHORTEST_ANSWER_SECONDS = 2.0
"""A filter call may wait for its gang's plan for about a second: of an answer that comes too late nothing counts."""
SHORTEST_HOLD_SECONDS = 30.0
"""With shorter holds a gang whose members come slowly from kube-scheduler times out, and starts over, again and again."""
SHORTEST_BIND_TIMEOUT, LONGEST_BIND_TIMEOUT = 10.0, 3600.0
"""What bindTimeoutSeconds may be."""
SMALLEST_SAMPLE = 10  # percent
SAMPLE_FIX = f"write `percentageOfNodesToScore: {SMALLEST_SAMPLE}`, or more, in both files"


@dataclass(frozen=True, slots=True)
class ConfigFile(Generic[T]):
    """A file that its process starts with."""

    document: Document
    read: T


KubeSchedulerFile = ConfigFile[KubeSchedulerConfiguration]
ExtenderFile = ConfigFile[ExtenderConfiguration]


@dataclass(frozen=True, slots=True)
class Examined:
    """findings: of both files. ours: the extender's file; None where there is none, or it is refused."""

    findings: tuple[Finding, ...]
    ours: ExtenderFile | None


ReadDocument = Callable[[], Document]
"""Raises ConfigurationError for what is no YAML, OSError for a file that cannot be read."""


def examine(kube_scheduler_file: Path | str | None, extender_file: Path | str | None) -> Examined:
    """The two files, or the one that is given. Raises OSError for a file that cannot be read."""
    return examine_documents(of_file(kube_scheduler_file), of_file(extender_file))


def of_file(file: Path | str | None) -> ReadDocument | None:
    return partial(read_document, file) if file is not None else None


def examine_documents(kube_scheduler_document: ReadDocument | None, extender_document: ReadDocument | None) -> Examined:
    """The same, wherever the two are from. Raises OSError."""
    findings: list[Finding] = []
    kube_scheduler = _load(kube_scheduler_document, read_kube_scheduler_configuration, findings)
    ours = _load(extender_document, read_extender_configuration, findings)
    if kube_scheduler is not None:
        findings += of_kube_scheduler(kube_scheduler, ours.read.leader_service if ours is not None else None)
    if ours is not None:
        findings += of_extender(ours)
    if kube_scheduler is not None and ours is not None:
        findings += of_both(kube_scheduler, ours)
    both_given = kube_scheduler_document is not None and extender_document is not None
    if both_given and (kube_scheduler is None or ours is None):
        refused = next(each.file for each in findings if each.code == "InvalidConfiguration")
        message = "not examined: whether the two files fit together, since this one is refused"
        findings.append(Finding(INFO, "NotExamined", refused, 0, "", message, "mend it, and ask again"))
    return Examined(tuple(findings), ours)


def _load(
    read_one: ReadDocument | None, read: Callable[[Document], T], findings: list[Finding]
) -> ConfigFile[T] | None:
    """What is wrong with the file by itself is added to the findings."""
    if read_one is None:
        return None
    try:
        document = read_one()
        return ConfigFile(document, read(document))
    except ConfigurationError as error:
        fix = "the process does not start with this file: mend the field"
        findings += [
            Finding(ERROR, "InvalidConfiguration", each.file, each.line, each.field, each.text, fix)
            for each in error.mistakes
        ]
        return None


def of_extender(file: ExtenderFile) -> Iterator[Finding]:
    """What is wrong with our file whatever kube-scheduler's says: plugins that are not there, as `serve` would find.

    What is needed for that is imported where a file has profiles, which most have not."""
    if not file.read.profiles or not file.document.lines:  # of a page, where the process that shows it has its plugins
        return
    from extender.framework.runtime.registry import RegistryError
    from extender.plugins import profile_check
    from extender.plugins.registry import new_registry

    try:
        registry = new_registry()
    except RegistryError as error:
        fix = "install the package of the plugin anew, or take it away"
        yield finding(ERROR, "UnknownPlugin", file.document, "profiles", str(error), fix)
        return
    for each in profile_check.unknown_plugins(file.document, file.read.profiles, registry):
        fix = "mend the name: the extender does not start. One of another package counts where that is installed, here too"
        yield finding(ERROR, "UnknownPlugin", file.document, each.path, each.text, fix)
    empty = profile_check.empty_points(file.document, file.read.profiles, profile_check.OF_OURS)
    yield from _incomplete(file.document, empty, "the extender")
    for each in profile_check.unused_arguments(file.document, file.read.profiles):
        fix = "mend the name, enable the plugin, or take its arguments away"
        yield finding(WARNING, "UnusedArguments", file.document, each.path, each.text, fix)


def _incomplete(document: Document, mistakes: Iterable[Mistake], process: str) -> Iterator[Finding]:
    """Profiles without a queue sort, or without a bind plugin. process: that reads the file."""
    for each in mistakes:
        fix = f"enable the default one again, PrioritySort or DefaultBinder: {process} does not start"
        yield finding(ERROR, "IncompleteProfile", document, each.path, each.text, fix)


def of_kube_scheduler(file: KubeSchedulerFile, service: NamespacedName | None) -> Iterator[Finding]:
    """What is wrong with kube-scheduler's file whatever ours says. service: its leaderService, by which entries are known as ours."""
    if "profiles" in file.document.lines:
        from extender.plugins import profile_check

        empty = profile_check.empty_points(file.document, file.read.profiles, profile_check.OF_KUBE_SCHEDULER)
        yield from _incomplete(file.document, empty, "kube-scheduler")
    entries = _entries_of_ours(file.read.extenders, service)
    if not entries:
        message = "there is no entry for the extender: kube-scheduler starts the members of a gang singly"
        yield finding(ERROR, "NoExtender", file.document, "extenders", message, "add the entries of the manifests")
        return
    yield from _verbs(file, entries)
    for index, entry in entries:
        yield from _entry(file.document, f"extenders[{index}]", entry)
    yield from _plugins(file)
    yield from _samples(file)


def _entries_of_ours(
    extenders: Sequence[ExtenderConfig], service: NamespacedName | None
) -> list[tuple[int, ExtenderConfig]]:
    """Those of the host that binds, since only one extender can. Where that host is not asked to filter, an entry is misplaced or lacks
    its verb: then also those that are ours by their address, and then by preempt, which few others have; all where there is none of these.
    service: leaderService of our file."""
    marks: tuple[Callable[[ExtenderConfig], bool], ...] = (
        lambda entry: bool(entry.bind_verb),
        lambda entry: _is_at(entry.url_prefix, service),
        lambda entry: bool(entry.preempt_verb),
    )
    of_ours: set[str] = set()
    for is_ours in marks:
        of_ours |= {_host(entry) for entry in extenders if is_ours(entry)}
        found = [(index, entry) for index, entry in enumerate(extenders) if _host(entry) in of_ours]
        if any(entry.filter_verb for _, entry in found):
            break
    return found or list(enumerate(extenders))


def _is_at(url_prefix: str, service: NamespacedName | None) -> bool:
    """Whether it is the address of the Service; without one, of an extender beside kube-scheduler."""
    url, port = addresses.split(url_prefix)
    host = url.hostname if url is not None else None
    if not host:
        return False
    if service is None:
        return addresses.is_loopback(host) and port == addresses.VERBS_PORT
    return f"{host}.".startswith(f"{service.name}.{service.namespace}.svc.")


def _host(entry: ExtenderConfig) -> str:
    try:
        return urlsplit(entry.url_prefix).netloc
    except ValueError:
        return entry.url_prefix


def _verbs(file: KubeSchedulerFile, entries: Sequence[tuple[int, ExtenderConfig]]) -> Iterator[Finding]:
    """Those that no entry has, and those that the extender does not serve."""
    lost = {
        "filter": (ERROR, "members are sent to bind before their gang fits anywhere"),
        "bind": (ERROR, "the default binder starts the members of a gang singly"),
        "preempt": (WARNING, "kube-scheduler's own preemption evicts a fraction of a gang"),
        "prioritize": (WARNING, "a member may go to another node than its gang's plan gives it"),
    }
    for verb, (severity, message) in lost.items():
        field = f"{verb}Verb"
        given = {index: getattr(entry, f"{verb}_verb") for index, entry in entries if getattr(entry, f"{verb}_verb")}
        if not given:
            where = f"extenders[{entries[0][0]}]"
            fix = f"write `{field}: {verb}` in an entry of the extender"
            yield finding(severity, f"No{verb.capitalize()}Verb", file.document, where, f"no {field}: {message}", fix)
        for index, name in given.items():
            if name.strip("/") != verb:
                message = f"the extender serves no {name!r}: each call of it is answered with 404"
                fix = f"write `{field}: {verb}`"
                yield finding(ERROR, "UnknownVerb", file.document, f"extenders[{index}].{field}", message, fix)


def _entry(document: Document, path: str, entry: ExtenderConfig) -> Iterator[Finding]:
    def at(severity: Severity, code: str, field: str, message: str, fix: str) -> Finding:
        return finding(severity, code, document, f"{path}.{field}", message, fix)

    if entry.ignorable:
        message = "while the extender is away kube-scheduler goes on without it, and a gang starts in part"
        yield at(ERROR, "Ignorable", "ignorable", message, "write `ignorable: false`")
    if not entry.node_cache_capable:
        message = "whole nodes are sent in place of names, which the extender refuses: every pod waits"
        yield at(ERROR, "NotNodeCacheCapable", "nodeCacheCapable", message, "write `nodeCacheCapable: true`")
    if entry.managed_resources:
        message = "the extender is asked only about pods that want these resources; other members start singly"
        yield at(ERROR, "ManagedResources", "managedResources", message, "take the field away")
    if entry.http_timeout_seconds < 0:
        message = "a negative timeout is none: kube-scheduler waits for ever for an answer that does not come"
        yield at(ERROR, "NoTimeout", "httpTimeout", message, "write `httpTimeout: 5s`, and 120s in the entry of bind")
    asked = entry.filter_verb or entry.prioritize_verb or entry.preempt_verb
    timeout = entry.http_timeout_seconds
    if asked and not entry.bind_verb and timeout > LONGEST_ANSWER_SECONDS:
        message = f"kube-scheduler schedules nothing else for up to {go_duration(timeout)} when an answer does not come"
        yield at(WARNING, "LongTimeout", "httpTimeout", message, "write `httpTimeout: 5s`; only bind takes longer")
    if entry.filter_verb and not entry.bind_verb and 0 <= timeout < SHORTEST_ANSWER_SECONDS:
        message = (
            f"kube-scheduler hangs up after {go_duration(timeout)}, and filter may wait a second for a gang's plan"
        )
        yield at(WARNING, "ShortTimeout", "httpTimeout", message, "write `httpTimeout: 5s`")
    if asked and entry.bind_verb:
        message = "filter and bind share one timeout: one of them has the wrong one"
        fix = "make two entries: filter, prioritize and preempt with 5s, and bind with 120s"
        yield at(WARNING, "SharedTimeout", "httpTimeout", message, fix)
    if entry.bind_verb and 0 <= timeout < SHORTEST_HOLD_SECONDS:
        message = f"kube-scheduler hangs up after {go_duration(timeout)}: only a gang that is complete by then starts"
        fix = "write `httpTimeout: 120s`, and `bindTimeoutSeconds: 120` in the extender's configuration"
        yield at(ERROR, "ShortBindTimeout", "httpTimeout", message, fix)
    yield from addresses.examine(document, path, entry)


def _plugins(file: KubeSchedulerFile) -> Iterator[Finding]:
    """The compiled-in plugin beside the extender."""
    for index, profile in enumerate(file.read.profiles):
        sets = [profile.plugins.multi_point, *profile.plugins.points.values()]
        if any(ref.name == "Coscheduling" for plugin_set in sets for ref in plugin_set.enabled):
            message = "the plugin Coscheduling holds members in Permit that the extender holds in bind: both wait for the other"
            fix = "take the plugin away, and run the stock kube-scheduler"
            yield finding(ERROR, "TwoCoschedulers", file.document, f"profiles[{index}].plugins", message, fix)


def _samples(file: KubeSchedulerFile) -> Iterator[Finding]:
    """Profiles in which kube-scheduler offers so small a sample of the nodes, or one that goes with the cluster's size, that members are
    often offered no node of their gang's plan (docs/performance.md)."""
    default = file.read.percentage_of_nodes_to_score
    for index, profile in enumerate(file.read.profiles):
        own = profile.percentage_of_nodes_to_score
        if (default if own is None else own) >= SMALLEST_SAMPLE:
            continue
        field = "percentageOfNodesToScore" if own is None else f"profiles[{index}].percentageOfNodesToScore"
        message = "in clusters of more than 100 nodes a member may not be offered the node of its gang's plan"
        yield finding(WARNING, "SampleOfNodes", file.document, field, message, SAMPLE_FIX)
        if own is None:
            return


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
    for index, entry in _entries_of_ours(kube_scheduler.read.extenders, ours.read.leader_service):
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
