"""Reads our own configuration file; unknown and doubled keys are refused, every mistake is said at once.

The scheduler's own file, KubeSchedulerConfiguration, is read by kube_scheduler.
"""

from __future__ import annotations

from pathlib import Path

from extender.config.defaults import BEHIND
from extender.config.read_profile import KUBE_API_VERSION, camel, read_profile
from extender.config.section import Section
from extender.config.types import (
    ExtenderConfiguration,
    KubeSchedulerProfile,
    NamespacedName,
    Packing,
    Plugins,
    TopologyLevel,
)
from extender.config.validation import common_queue_sort, qualified_name, scheduler_names
from extender.config.yaml_file import Document, read_document

API_VERSION = "gang-extender.dev/v1alpha1"
KIND = "ExtenderConfiguration"
GANG_VICTIMS = ("wholeOrSurplus", "surplusOnly", "any")
EVICT_THROUGH = ("delete", "eviction")
WAKE_BY = ("auto", "status", "annotation")
DAY = 86400.0
LEAST_LEASE_SECONDS, MOST_LEASE_SECONDS = 3, 300
SCORING = ("pre_score", "score")
"""Extension points that gangs start without."""
MOST_HELD_BINDS = 3500  # each is a connection, and the server takes 4,096


def load_extender_configuration(path: Path | str) -> ExtenderConfiguration:
    """Raises ConfigurationError with all that is wrong, or OSError."""
    return read_extender_configuration(read_document(path))


def read_extender_configuration(document: Document) -> ExtenderConfiguration:
    """Of a document that has been read already. Raises ConfigurationError."""
    root = Section.configuration(document)
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        found = root.text(key)
        if found != wanted:
            root.invalid(key, found, f"must be {wanted}")
    configuration = _configuration(root)
    root.finish()
    if root.mistakes:
        raise document.error(root.mistakes)
    return configuration


def _configuration(root: Section) -> ExtenderConfiguration:
    default = ExtenderConfiguration()
    return ExtenderConfiguration(
        scheduler_names=_names(root, "schedulerNames"),
        leader_lease=_reference(root, "leaderLease"),
        leader_service=_leader_service(root),
        lease_duration_seconds=root.integer(
            "leaseDurationSeconds", default.lease_duration_seconds, low=LEAST_LEASE_SECONDS, high=MOST_LEASE_SECONDS
        ),
        bind_timeout_seconds=root.seconds("bindTimeoutSeconds", default.bind_timeout_seconds, low=10, high=3600),
        percentage_of_nodes_to_score=root.integer(
            "percentageOfNodesToScore", 0, high=100, why="not in valid range [0-100]"
        ),
        profiles=_profiles(root),
        topology=_topology(root),
        packing=Packing(root.choice("packing", [packing.value for packing in Packing], default.packing.value)),
        gang_victims=root.choice("gangVictims", GANG_VICTIMS, default.gang_victims),
        gang_preemption=root.flag("gangPreemption", default.gang_preemption),
        victim_minimum_run_seconds=root.seconds(
            "victimMinimumRunSeconds", default.victim_minimum_run_seconds, low=0, high=30 * DAY
        ),
        preemption_delay_seconds=root.seconds(
            "preemptionDelaySeconds", default.preemption_delay_seconds, low=0, high=DAY
        ),
        evict_through=root.choice("evictThrough", EVICT_THROUGH, default.evict_through),
        shadow_after_seconds=root.seconds("shadowAfterSeconds", default.shadow_after_seconds, low=0, high=DAY),
        shadow_max_seconds=root.seconds("shadowMaxSeconds", default.shadow_max_seconds, low=0, high=DAY),
        shadow_max_nodes_percent=root.integer("shadowMaxNodesPercent", default.shadow_max_nodes_percent, high=100),
        max_held_binds=root.integer("maxHeldBinds", default.max_held_binds, low=1, high=MOST_HELD_BINDS),
        wake_by=root.choice("wakeBy", WAKE_BY, default.wake_by),
        ungate_refused=root.flag("ungateRefused", default.ungate_refused),
    )


def _names(root: Section, key: str) -> tuple[str, ...]:
    """A list of texts, none empty, none twice."""
    names = root.texts(key)
    for index, name in enumerate(names):
        if not name:
            root.required(f"{key}[{index}]")
        elif name in names[:index]:
            root.wrong(f"{key}[{index}]", f'Duplicate value: "{name}"')
    return names


def _reference(root: Section, key: str) -> NamespacedName | None:
    text = root.text(key)
    if not text:
        return None
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        root.invalid(key, text, "must be namespace/name")
    return NamespacedName(namespace, name)


def _leader_service(root: Section) -> NamespacedName | None:
    service = _reference(root, "leaderService")
    if service is not None and not root.text("leaderLease"):
        root.required("leaderLease")
    return service


def _topology(root: Section) -> tuple[TopologyLevel, ...]:
    """From wide to narrow: `{name: rack, nodeLabel: example.com/rack}`, or a label alone, whose last part is the name."""
    levels: list[TopologyLevel] = []
    for index, item in enumerate(root.items("topology")):
        where = f"topology[{index}]"
        if isinstance(item, str):
            level = TopologyLevel(item.rpartition("/")[2], item)
        else:
            section = Section(item, where, root.mistakes)
            level = TopologyLevel(section.text("name"), section.text("nodeLabel"))
            section.finish()
            where = f"{where}.nodeLabel"
        _check_level(root, where, level, levels)
        levels.append(level)
    return tuple(levels)


def _check_level(root: Section, where: str, level: TopologyLevel, wider: list[TopologyLevel]) -> None:
    """Labels that are labels, and words by which a group finds one level."""
    taken = {word for other in wider for word in (other.name, other.key)}
    name_at = where.replace("nodeLabel", "name")
    if not level.key:
        root.required(where)
        return
    if wrong := qualified_name(level.key):
        root.invalid(where, level.key, wrong)
    if level.key in taken:
        root.wrong(where, f'Duplicate value: "{level.key}"')
    elif not level.name:
        root.required(name_at)
    elif level.name in taken:
        root.wrong(name_at, f'Duplicate value: "{level.name}"')


def _profiles(root: Section) -> tuple[KubeSchedulerProfile, ...]:
    """On top of the profile behind kube-scheduler. Every one has Coscheduling: it is what the extender is for."""
    sections = root.sections("profiles")
    default_name = "default-scheduler" if len(sections) == 1 else ""
    profiles = tuple(
        read_profile(section, Plugins(BEHIND), default_name, args_version=KUBE_API_VERSION) for section in sections
    )
    root.mistakes += [*scheduler_names(profiles), *common_queue_sort(profiles)]
    for index, profile in enumerate(profiles):
        if not any(ref.name == "Coscheduling" for ref in profile.plugins.multi_point.enabled):
            root.wrong(f"profiles[{index}].plugins", "Coscheduling must stay enabled at multiPoint")
        for point, plugin_set in profile.plugins.points.items():
            names = {ref.name for ref in plugin_set.disabled}
            kept = any(ref.name == "Coscheduling" for ref in plugin_set.enabled)
            if point not in SCORING and names & {"Coscheduling", "*"} and not kept:
                root.wrong(f"profiles[{index}].plugins.{camel(point)}.disabled", "Coscheduling must stay enabled")
    return profiles
