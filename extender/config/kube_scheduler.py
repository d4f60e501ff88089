"""Reads KubeSchedulerConfiguration v1 as kube-scheduler does, so that `simulate` can run what a cluster runs.

Strict, as there: unknown and doubled fields are refused. What only concerns the process (the client's connection, profiling) is
checked and left. kube-scheduler: pkg/scheduler/apis/config/v1, .../validation
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from pathlib import Path

from extender.config.defaults import MULTI_POINT, ignored_by_scheduler
from extender.config.durations import go_duration
from extender.config.read_profile import KUBE_API_VERSION, read_profile
from extender.config.section import MAX_INT64, Section
from extender.config.types import (
    ExtenderConfig,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    Plugins,
)
from extender.config.validation import common_queue_sort, extended_resource_name, scheduler_names
from extender.config.yaml_file import Document, read_document

KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"
DEFAULT_EXTENDER_TIMEOUT = 5.0


def load_kube_scheduler_configuration(path: Path | str) -> KubeSchedulerConfiguration:
    """Raises ConfigurationError with all that is wrong, or OSError."""
    return read_kube_scheduler_configuration(read_document(path))


def read_kube_scheduler_configuration(document: Document) -> KubeSchedulerConfiguration:
    """The same of a document that is read already."""
    root = Section.configuration(document)
    if not _is_ours(root):
        raise document.error(root.mistakes)
    configuration = _configuration(root)
    if root.mistakes:
        raise document.error(root.mistakes)
    return configuration


def _is_ours(root: Section) -> bool:
    """Notes what else the file is: of older versions and of the sources that went with them, what to do instead."""
    before = len(root.mistakes)
    api_version, kind = root.text("apiVersion"), root.text("kind")
    group, _, version = api_version.rpartition("/")
    if kind == "Policy":
        root.wrong("kind", "Policy was dropped with kube-scheduler 1.23: write a profile's plugins instead")
    elif kind != KIND:
        root.invalid("kind", kind, f"must be {KIND}")
    elif group == "kubescheduler.config.k8s.io" and version.startswith(("v1alpha", "v1beta")):
        root.invalid("apiVersion", api_version, f"the version was dropped: write {KUBE_API_VERSION}")
    elif api_version != KUBE_API_VERSION:
        root.invalid("apiVersion", api_version, f"must be {KUBE_API_VERSION}")
    for source in ("algorithmSource", "algorithmProvider", "provider", "policy"):
        if root.plain(source) is not None:
            root.wrong(
                source, "provider and Policy sources were dropped with kube-scheduler 1.23: write a profile's plugins"
            )
    return len(root.mistakes) == before


def _configuration(root: Section) -> KubeSchedulerConfiguration:
    profiles = _profiles(root)
    seen: set[str] = set()
    extenders = tuple(_extender(entry, seen) for entry in root.sections("extenders"))
    _check_extenders(root, extenders)
    initial = root.integer("podInitialBackoffSeconds", 1, low=1, high=MAX_INT64, why="must be greater than 0")
    longest = root.integer("podMaxBackoffSeconds", 10, low=-MAX_INT64, high=MAX_INT64)
    if longest < initial:
        root.invalid("podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds")
    configuration = KubeSchedulerConfiguration(
        profiles=ignored_by_scheduler(profiles, extenders),
        extenders=extenders,
        percentage_of_nodes_to_score=root.integer(
            "percentageOfNodesToScore", 0, high=100, why="not in valid range [0-100]"
        ),
        parallelism=root.integer("parallelism", 16, low=1, why="should be an integer value greater than zero"),
        pod_initial_backoff_seconds=initial,
        pod_max_backoff_seconds=longest,
        leader_election=_leader_election(root.section("leaderElection")),
    )
    _leave(root)
    return configuration


def _profiles(root: Section) -> tuple[KubeSchedulerProfile, ...]:
    sections = root.sections("profiles")
    default_name = DEFAULT_SCHEDULER_NAME if len(sections) == 1 else ""
    profiles = tuple(read_profile(section, Plugins(MULTI_POINT), default_name) for section in sections)
    if not profiles:
        empty = Section({}, "profiles[0]", root.mistakes)
        profiles = (read_profile(empty, Plugins(MULTI_POINT), DEFAULT_SCHEDULER_NAME),)
    root.mistakes += [*scheduler_names(profiles), *common_queue_sort(profiles)]
    return profiles


def _extender(section: Section, seen: set[str]) -> ExtenderConfig:
    """seen: the resources that the entries so far manage; one is managed by one extender."""
    managed, ignored = _managed_resources(section, seen)
    prioritize_verb = section.text("prioritizeVerb")
    before = len(section.mistakes)
    weight = section.integer("weight", 0, low=-MAX_INT64, high=MAX_INT64)
    if prioritize_verb and weight <= 0 and len(section.mistakes) == before:  # what is no number has been told
        section.invalid("weight", weight, "must have a positive weight applied to it")
    config = ExtenderConfig(
        url_prefix=section.text("urlPrefix"),
        filter_verb=section.text("filterVerb"),
        preempt_verb=section.text("preemptVerb"),
        prioritize_verb=prioritize_verb,
        bind_verb=section.text("bindVerb"),
        weight=weight,
        enable_https=section.flag("enableHTTPS"),
        http_timeout_seconds=section.duration("httpTimeout", 0.0) or DEFAULT_EXTENDER_TIMEOUT,
        node_cache_capable=section.flag("nodeCacheCapable"),
        managed_resources=managed,
        ignored_by_scheduler=ignored,
        ignorable=section.flag("ignorable"),
        tls=_tls(section.section("tlsConfig")) if "tlsConfig" in section else None,
    )
    section.finish()
    return config


def _managed_resources(section: Section, seen: set[str]) -> tuple[frozenset[str], frozenset[str]]:
    managed: set[str] = set()
    ignored: set[str] = set()
    for entry in section.sections("managedResources"):
        name = entry.text("name")
        if wrong := extended_resource_name(name):
            entry.invalid("name", name, wrong)
        if name in seen:
            entry.invalid("name", name, "duplicate extender managed resource name")
        seen.add(name)
        managed.add(name)
        if entry.flag("ignoredByScheduler"):
            ignored.add(name)
        entry.finish()
    return frozenset(managed), frozenset(ignored)


def _check_extenders(root: Section, extenders: tuple[ExtenderConfig, ...]) -> None:
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        root.invalid(
            "extenders", f"found {binders} extenders implementing bind", "only one extender can implement bind"
        )


def _tls(section: Section) -> ExtenderTLSConfig:
    config = ExtenderTLSConfig(
        insecure=section.flag("insecure"),
        server_name=section.text("serverName"),
        cert_file=section.text("certFile"),
        key_file=section.text("keyFile"),
        ca_file=section.text("caFile"),
        cert_data=_base64(section, "certData"),
        key_data=_base64(section, "keyData"),
        ca_data=_base64(section, "caData"),
    )
    section.finish()
    return config


def _base64(section: Section, key: str) -> bytes:
    try:
        return base64.b64decode(section.text(key), validate=True)
    except (binascii.Error, ValueError):
        section.wrong(key, "must be base64")  # the value may be a key: not shown
        return b""


def _leave(root: Section) -> None:
    """What the mirror has no use for, checked all the same: a file that kube-scheduler refuses is refused here."""
    for flag in ("enableProfiling", "enableContentionProfiling", "delayCacheUntilActive"):
        root.flag(flag)
    client = root.section("clientConnection")
    for key in ("kubeconfig", "acceptContentTypes", "contentType"):
        client.text(key)
    client.number("qps", 50)
    client.integer("burst", 100, why="must be non-negative")
    client.finish()
    root.finish()


def _leader_election(election: Section) -> LeaderElection:
    default = LeaderElection()
    read = LeaderElection(
        election.flag("leaderElect", default.leader_elect),
        election.text("resourceNamespace") or default.resource_namespace,
        election.text("resourceName") or default.resource_name,
    )
    seconds = {
        key: election.duration(key, default) or default
        for key, default in (("leaseDuration", 15.0), ("renewDeadline", 10.0), ("retryPeriod", 2.0))
    }
    lock = election.text("resourceLock") or "leases"
    read = replace(read, renew_deadline_seconds=seconds["renewDeadline"], retry_period_seconds=seconds["retryPeriod"])
    election.finish()
    if not read.leader_elect:
        return read
    for key, value in seconds.items():
        if value <= 0:
            election.invalid(key, go_duration(value), "must be greater than zero")
    if seconds["leaseDuration"] <= seconds["renewDeadline"]:
        renewed = go_duration(seconds["renewDeadline"])  # the value that kube-scheduler shows, too
        election.invalid("leaseDuration", renewed, "must be greater than `RenewDeadline`")
    if lock != "leases":
        election.invalid("resourceLock", lock, 'resourceLock value must be "leases"')
    return read
