"""What a group's annotations ask for beyond minMember: match policy, roles, topology, the groups it starts together with.

Read from the PodGroup, or from the pods where there is no object or where it has none of them. Our own keys come before
Koordinator's.
`pod_group` puts it into the GroupSpec.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from extender.api.koordinatorv1alpha1 import PodGroup as KoordinatorPodGroup
from extender.api.metadata_keys import Key
from extender.api.metav1 import ObjectMeta
from extender.api.schedulingv1alpha1 import PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.api.volcanov1beta1 import PodGroup as VolcanoPodGroup
from extender.plugins.coscheduling.spec import keys
from extender.plugins.coscheduling.spec.counts import NO_PATIENCE, Patience, patience_of
from extender.plugins.coscheduling.spec.field_errors import quoted, too_many
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.named_groups import Keys, peers
from extender.plugins.coscheduling.spec.reading import Reading
from extender.plugins.coscheduling.spec.roles import NO_ROLES, ROLE_LABEL, Roles
from extender.plugins.coscheduling.spec.sources.source import Source
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, AskedTopology, Slicing


@dataclass(frozen=True, slots=True)
class Asked:
    """invalid: the key that is wrong, and why; then the rest is not read. groups_key: the annotation that names the groups. ignored: keys
    that ask for nothing without another one."""

    match_policy: MatchPolicy = MatchPolicy.WAITING_AND_RUNNING
    groups: Keys = ()
    groups_key: str = ""
    roles: Roles = NO_ROLES
    schedule_timeout_seconds: int | None = None
    topology: AskedTopology = NO_TOPOLOGY
    patience: Patience = NO_PATIENCE
    invalid: str = ""
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Slices:
    """preferred: the label of the level that Kueue's key prefers. ignored: as of Asked."""

    slicing: Slicing | None = None
    preferred: str = ""
    ignored: tuple[str, ...] = ()


NOTHING = Asked()
MAX_SLICINGS = 64  # that the pods of one group ask for
_ASKING = frozenset(keys.ASKING)


def relevant(metadata: ObjectMeta) -> tuple[str, ...]:
    """Equal where the annotations of two objects ask for the same."""
    if _ASKING.isdisjoint(metadata.annotations):
        return ()
    return tuple(key.text(metadata) for key in keys.ASKING)


def difference(one: ObjectMeta, other: ObjectMeta) -> str:
    """The first key that two pods of a group do not agree in, and what each says; empty where there is none. Of slices each pod
    speaks for itself."""
    for key in keys.ASKING:
        if key not in keys.BY_POD and (text := key.text(one)) != (others := key.text(other)):
            return f"{key.source} {key}: {quoted(text)} and {quoted(others)}"
    return ""


def asks_for(pod_group: PodGroup | InTreePodGroup | KoordinatorPodGroup | VolcanoPodGroup) -> object:
    """Equal where nothing has changed that counts: conditions, other annotations and managed fields do not. That another object has
    the name does."""
    return pod_group.metadata.uid, pod_group.spec, pod_group.unreadable, relevant(pod_group.metadata)


def names_groups(metadata: ObjectMeta) -> bool:
    return keys.GROUPS.on(metadata) or keys.KOORDINATOR_GROUPS.on(metadata)


def asked_by(metadata: ObjectMeta, own_key: str, source: Source | None = None) -> Asked:
    """source: what made the group; it says which policy and which label of roles hold where none is asked for."""
    default = Asked(match_policy=source.match_policy) if source is not None else NOTHING
    if _ASKING.isdisjoint(metadata.annotations):
        return default
    reading = Reading()
    policy = reading.first(
        metadata, keys.MATCH_POLICY, keys.KOORDINATOR_MATCH_POLICY, keys.KOORDINATOR_MATCH_POLICY_ALIAS
    )
    groups_key = keys.GROUPS if keys.GROUPS.text(metadata).strip() else keys.KOORDINATOR_GROUPS
    groups = _groups(reading, metadata, groups_key, own_key)
    minima, label = reading.value(metadata, keys.ROLES), reading.value(metadata, keys.ROLE_LABEL)
    seconds = reading.value(metadata, keys.KOORDINATOR_WAITING_TIME)
    reading.value(metadata, keys.KOORDINATOR_MODE)
    required = reading.value(metadata, keys.TOPOLOGY_REQUIRED)
    preferred = reading.value(metadata, keys.TOPOLOGY_PREFERRED)
    koordinators = reading.value(metadata, keys.KOORDINATOR_TOPOLOGY)
    patience = _patience(reading, metadata)
    slices = _slices(reading, metadata)
    if reading.invalid:
        return Asked(invalid=reading.invalid)
    roles = (
        Roles(minima, label or (source.role_label if source is not None else "") or ROLE_LABEL) if minima else NO_ROLES
    )
    levels = AskedTopology(required or "", preferred or "") if required or preferred else koordinators or NO_TOPOLOGY
    levels = with_slices(levels, slices.slicing, slices.preferred)
    return Asked(
        policy or default.match_policy,
        groups,
        groups_key if groups else "",
        roles,
        seconds,
        levels,
        patience,
        ignored=slices.ignored,
    )


def _patience(reading: Reading, metadata: ObjectMeta) -> Patience:
    given = (reading.value(metadata, keys.BROKEN_AFTER), reading.value(metadata, keys.WHEN_BROKEN))
    return patience_of(*given, reading.value(metadata, keys.GIVE_UP_AFTER))


def asked_beside(
    metadata: ObjectMeta, own_key: str, beside: Collection[tuple[str, ...]], source: Source | None = None
) -> Asked:
    """Of a group with an object: what its annotations ask for, or, where none of them asks for anything, what its pods' do.

    beside: the texts of pods' annotations, each combination once. A pod that lacks a key says nothing of it; two that differ in one
    make the group invalid.
    """
    if not beside or any(relevant(metadata)):
        return asked_by(metadata, own_key, source)
    merged: dict[str, str] = {}
    for texts in beside:
        for key, text in zip(keys.ASKING, map(str.strip, texts), strict=True):
            if text and key not in keys.BY_POD and merged.setdefault(key, text) != text:
                return Asked(invalid=f"{key.source} {key}: its pods differ: {quoted(merged[key])} and {quoted(text)}")
    asked = asked_by(ObjectMeta(annotations=merged), own_key, source)
    return with_slices_of_pods(asked, beside)


def with_slices_of_pods(asked: Asked, beside: Collection[tuple[str, ...]]) -> Asked:
    """beside: as of asked_beside. What one pod says of slices is for those that say the same."""
    reading, found, preferred, ignored = Reading(), dict[tuple[str, ...], Slicing](), "", dict[str, None]()
    different = {texts[-len(keys.BY_POD) :] for texts in beside if any(texts[-len(keys.BY_POD) :])}
    if len(different) > MAX_SLICINGS:
        return replace(
            asked, invalid=f"annotation {keys.TOPOLOGY_SLICE}: {too_many(MAX_SLICINGS, 'values among its pods')}"
        )
    for texts in sorted(different):
        annotations = {str(key): text for key, text in zip(keys.BY_POD, texts, strict=True) if text}
        slices = _slices(reading, ObjectMeta(annotations=annotations))
        preferred = preferred or slices.preferred
        ignored |= dict.fromkeys(slices.ignored)
        if slices.slicing is not None:
            found[texts] = slices.slicing
    if reading.invalid or asked.invalid:
        return replace(asked, invalid=asked.invalid or reading.invalid)
    topology = replace(with_slices(asked.topology, None, preferred), by_pods=tuple(found.items()))
    return replace(asked, topology=topology, ignored=tuple(ignored))


def with_slices(topology: AskedTopology, slicing: Slicing | None, preferred: str) -> AskedTopology:
    """preferred: Kueue's label; the level that is asked for by a key of ours comes first."""
    if not preferred or topology.preferred:
        return replace(topology, slicing=slicing)
    return replace(topology, slicing=slicing, preferred=preferred, preferred_label=preferred)


def _slices(reading: Reading, metadata: ObjectMeta) -> _Slices:
    """What is asked for of slices. Our own keys come before Kueue's."""
    sizes, balanced = reading.value(metadata, keys.TOPOLOGY_SLICE), reading.value(metadata, keys.TOPOLOGY_SPREAD)
    required, preferred = reading.value(metadata, keys.KUEUE_REQUIRED), reading.value(metadata, keys.KUEUE_PREFERRED)
    level, size = reading.value(metadata, keys.KUEUE_SLICE), reading.value(metadata, keys.KUEUE_SLICE_SIZE)
    ignored = tuple(
        f"annotation {key} (it counts with {other} alone)"
        for key, other, there, its_other in (
            (keys.KUEUE_SLICE, keys.KUEUE_SLICE_SIZE, level, size),
            (keys.KUEUE_SLICE_SIZE, keys.KUEUE_SLICE, size, level),
        )
        if there and not its_other
    )
    of_kueue = (((required, 0),) if required else ()) + (((level, size),) if level and size else ())
    if not sizes and not of_kueue:
        return _Slices(None, preferred or "", ignored)
    labels = tuple(name for name, _ in of_kueue) if not sizes else ()
    return _Slices(Slicing(sizes or of_kueue, labels, bool(balanced)), preferred or "", ignored)


def _groups(reading: Reading, metadata: ObjectMeta, key: Key[Keys], own_key: str) -> Keys:
    """The keys of those that it names."""
    names = reading.value(metadata, key)
    return reading.field(f"annotation {key}", partial(peers, names, own_key)) or () if names else ()
