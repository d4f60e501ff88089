"""`groupSources` of Coscheduling's arguments: keys of pods that make gangs without an object, and the presets by name.

Read by `read_args`; `spec/sources` makes of them what members are read by. No counterpart upstream: scheduler-plugins v0.18 had one
pair of labels, Koordinator has one pair of annotations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from extender.config.plugin_args import GroupSource
from extender.config.section import Section
from extender.config.validation import qualified_name

MAX_SOURCES = 16
MAX_NAME = 63  # of a source
LWS_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"

PRESETS: Mapping[str, GroupSource] = {
    "lws": GroupSource(
        "lws",
        group_label="leaderworkerset.sigs.k8s.io/group-key",
        min_member_annotation="leaderworkerset.sigs.k8s.io/size",
        index_label=LWS_INDEX,
    ),
    "kueue": GroupSource(
        "kueue",
        group_label="kueue.x-k8s.io/pod-group-name",
        min_member_annotation="kueue.x-k8s.io/pod-group-total-count",
        role_label="kueue.x-k8s.io/podset",
        index_label="kueue.x-k8s.io/pod-group-pod-index",
    ),
    "volcano": GroupSource(
        "volcano",
        group_annotation="scheduling.k8s.io/group-name",
        min_member_annotation="scheduling.volcano.sh/group-min-member",
        role_label="volcano.sh/task-spec",
        index_label="volcano.sh/task-index",
    ),
}
"""As the controllers write them: LeaderWorkerSet 0.9, Kueue's plain pod groups, Volcano's annotations."""

_KEYS = ("groupLabel", "groupAnnotation", "minMemberLabel", "minMemberAnnotation", "roleLabel", "indexLabel")


def read_group_sources(args: Section, pod_group_labels: Collection[str]) -> tuple[GroupSource, ...]:
    """pod_group_labels: those that name PodGroups; they come first, so no source may have one of them."""
    entries = args.sections("groupSources")
    if len(entries) > MAX_SOURCES:
        args.wrong("groupSources", f"Too many: {len(entries)}: must have at most {MAX_SOURCES} items")
    found: list[GroupSource] = []
    for entry in entries[:MAX_SOURCES]:
        source = _preset(entry) if "preset" in entry else _own(entry)
        _check_alone(entry, source, found, pod_group_labels)
        found.append(source)
        entry.finish()
    return tuple(found)


def _preset(entry: Section) -> GroupSource:
    name = entry.choice("preset", PRESETS, next(iter(PRESETS)))
    for key in ("name", *_KEYS):
        if entry.plain(key) is not None:
            entry.wrong(key, "Forbidden: may not be set beside preset")
    return PRESETS[name]


def _own(entry: Section) -> GroupSource:
    name = entry.text("name")
    if not name:
        entry.required("name")
    elif len(name) > MAX_NAME or not name.isprintable():
        entry.invalid("name", name[:MAX_NAME], f"must be at most {MAX_NAME} printable characters")
    texts = {key: entry.text(key) for key in _KEYS}
    for key, text in texts.items():
        if text and (wrong := qualified_name(text)):
            entry.invalid(key, text, wrong)
    for label, annotation in (("groupLabel", "groupAnnotation"), ("minMemberLabel", "minMemberAnnotation")):
        if not texts[label] and not texts[annotation]:
            entry.required(label, f"or {annotation}")
        if texts[label] and texts[annotation]:
            entry.wrong(annotation, f"Forbidden: may not be set beside {label}")
    return GroupSource(name, *texts.values())


def _check_alone(
    entry: Section, source: GroupSource, others: Collection[GroupSource], pod_group_labels: Collection[str]
) -> None:
    """A name, and a key that names groups, may be of one source only."""
    if source.name and any(source.name == other.name for other in others):
        entry.wrong("preset" if "preset" in entry else "name", f'Duplicate value: "{source.name}"')
    for key, text, taken in (
        ("groupLabel", source.group_label, {*pod_group_labels, *(other.group_label for other in others)}),
        ("groupAnnotation", source.group_annotation, {other.group_annotation for other in others}),
    ):
        if text and text in taken and "preset" not in entry:
            entry.wrong(key, f'Duplicate value: "{text}"')
