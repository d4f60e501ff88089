"""Whether kube-scheduler's configuration and ours fit together: what would take the guarantee away without a word.

Each file alone is checked by `config`; here are the rules between fields of one file that are valid each by itself. `both_files` has those
between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from extender.config.durations import go_duration
from extender.config.findings import Finding, Severity, finding
from extender.config.kube_scheduler import read_kube_scheduler_configuration
from extender.config.load import read_extender_configuration
from extender.config.types import (
    ExtenderConfig,
    NamespacedName,
)
from extender.config.yaml_file import ConfigurationError, Document, Mistake, read_document
from extender.doctor import addresses
from extender.doctor.both_files import of_both
from extender.doctor.config_files import ConfigFile, ExtenderFile, KubeSchedulerFile, entries_of_ours

T = TypeVar("T")
ERROR, WARNING, INFO = Severity

LONGEST_ANSWER_SECONDS = 10.0
"""kube-scheduler schedules nothing else while it waits for a question that is answered from memory."""
SHORTEST_ANSWER_SECONDS = 2.0
"""A filter call may wait for its gang's plan for about a second: of an answer that comes too late nothing counts."""
SHORTEST_HOLD_SECONDS = 30.0
"""With shorter holds a gang whose members come slowly from kube-scheduler times out, and starts over, again and again."""
SMALLEST_SAMPLE = 10  # percent
JITTER_FACTOR = 1.2  # of client-go, between two tries to renew a Lease
SAMPLE_FIX = f"write `percentageOfNodesToScore: {SMALLEST_SAMPLE}`, or more, in both files"


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
    yield from _at_its_start(file)
    entries = entries_of_ours(file.read.extenders, service)
    if not entries:
        message = "there is no entry for the extender: kube-scheduler starts the members of a gang singly"
        yield finding(ERROR, "NoExtender", file.document, "extenders", message, "add the entries of the manifests")
        return
    yield from _verbs(file, entries)
    for index, entry in entries:
        yield from _entry(file.document, f"extenders[{index}]", entry)
    yield from _plugins(file)
    yield from _samples(file)


def _at_its_start(file: KubeSchedulerFile) -> Iterator[Finding]:
    """What kube-scheduler's validation lets pass, and client-go refuses. Go: NewLeaderElector, TLSConfigFor"""
    election, fix = file.read.leader_election, "kube-scheduler does not start with this file: mend the field"
    if election.leader_elect and election.renew_deadline_seconds <= JITTER_FACTOR * election.retry_period_seconds:
        message = "renewDeadline must be greater than retryPeriod*JitterFactor (1.2)"
        field = "leaderElection.renewDeadline"
        yield finding(ERROR, "RefusedAtStart", file.document, field, message, fix)
    for index, entry in enumerate(file.read.extenders):
        tls = entry.tls
        if tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
            message = "specifying a root certificates file with the insecure flag is not allowed"
            field = f"extenders[{index}].tlsConfig.insecure"
            yield finding(ERROR, "RefusedAtStart", file.document, field, message, fix)


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
