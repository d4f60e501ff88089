"""A gang that is not there yet, as a caller describes it: PodGroups and pods, read into groups that no other part ever sees.

`what_if` asks about them. The groups are made by a manager of their own, so that they are counted and parsed as those of the
cluster are, and their keys are such as no group of the cluster can have.
No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from msgspec import Struct, structs
from msgspec import field as struct_field

from extender.api import corev1
from extender.api.codec import DecodeError, convert
from extender.api.metav1 import MAX_NAME, ObjectMeta
from extender.client.interface import FOREIGN_POD_GROUPS, IN_TREE_GROUPS, POD_GROUPS, OwnPodGroup, ResourceType
from extender.client.short_steps import ShortSteps
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.spec.sources.foreign import ForeignPodGroup, kind_of
from extender.plugins.coscheduling.spec.sources.source import presets
from extender.plugins.coscheduling.state.diagnosis import FailedCheck
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

MOST_MEMBERS = 10_000  # where maxHeldBinds sets no lower limit
MOST_POD_GROUPS = 32
MOST_GANG_SETS = 8
NOT_THERE = "?"
"""Ends the keys of these groups: no name in Kubernetes has it."""
_TYPES: tuple[ResourceType[Any], ...] = (POD_GROUPS, *IN_TREE_GROUPS, *FOREIGN_POD_GROUPS)
KINDS: Mapping[tuple[str, str], ResourceType[Any]] = {(each.api_version, each.kind): each for each in _TYPES}

PodGroup = OwnPodGroup | ForeignPodGroup


class Question(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of a request. pods: as the API server has them, with a priority that is a number; one without a schedulerName of ours is
    asked about as if it had one. pod_groups: PodGroups of any API that is read, with apiVersion and kind."""

    pods: list[corev1.Pod]
    pod_groups: list[dict[str, Any]] = struct_field(default_factory=list)


class QuestionError(ValueError):
    """What is asked makes no sense. The text ends with the place, as in `... - at `$.pods[3].spec.nodeName``."""

    def __init__(self, text: str, place: str) -> None:
        super().__init__(f"{text} - at `$.{place}`")


@dataclass(frozen=True, slots=True)
class AskedGangSet:
    """Groups that start together, each with its members. keys: as the caller calls them. scheduler_name: that they come to; as in the
    cluster, members that come to another do not count. failed: why they would not be planned at all. foreign_names: of
    schedulers that their pods name and that are not served here."""

    groups: Sequence[Group]
    keys: tuple[str, ...]
    scheduler_name: str
    failed: FailedCheck | None
    foreign_names: Sequence[str]


def read(
    question: Question, live: PodGroupManager, serves: Callable[[corev1.Pod], bool], scheduler_name: str
) -> list[AskedGangSet]:
    """scheduler_name: one that is served here. Raises QuestionError. Takes the live manager's lock for a look at a PodGroup only."""
    _check_number(question, live)
    manager = _manager_like(live)
    for number, raw in enumerate(question.pod_groups):
        _put(manager, _pod_group(raw, f"podGroups[{number}]"))
    foreign_names: dict[str, set[str]] = {}
    steps = ShortSteps()
    for number, pod in enumerate(question.pods):
        steps.pause_if_due()
        _check_pod(pod, f"pods[{number}]")
        named = pod.spec.scheduler_name
        name = named if named and serves(pod) else scheduler_name
        waiting = _waiting(pod, number, name, live.wall())
        group = manager.pod_changed(waiting)
        if group is None:
            raise QuestionError(f"the pod is of no gang: {_why_of_none(waiting)}", f"pods[{number}]")
        _ = group.members[
            waiting.uid
        ].info.requests  # summed up now: of all at once it would be done under the live manager's lock
        if named not in ("", name):
            foreign_names.setdefault(group.key, set()).add(named)
    for group in list(manager.groups.values()):
        if group.members and manager.specs.of(group) is None:
            _as_in_the_cluster(manager, live, group)
    _check_groups(manager, question)
    sets = [
        AskedGangSet(
            groups,
            tuple(group.key for group in groups),
            (name := _scheduler_name(groups)),
            failed_check(manager, groups[0], name, ""),
            sorted({name for group in groups for name in foreign_names.get(group.key, ())}),
        )
        for groups in _gang_sets(manager)
    ]
    if len(sets) > MOST_GANG_SETS:
        raise QuestionError(f"wanted: at most {MOST_GANG_SETS} gangs", "podGroups")
    for group in manager.groups.values():
        group.key += NOT_THERE
    return sets


def _why_of_none(pod: corev1.Pod) -> str:
    """Which setting would make a gang of it, where one would."""
    for source in presets():
        if source.group.text(pod.metadata):
            return f"the key {source.group} counts only with `groupSources: [{{preset: {source.name}}}]` in Coscheduling's arguments"
    if pod.spec.scheduling_group is not None:
        return "spec.schedulingGroup counts only with `inTreePodGroups` in Coscheduling's arguments"
    return "nothing in it names a PodGroup"


def check_namespace(question: Question, namespace: str) -> None:
    """That nothing of another namespace is asked about. Raises QuestionError."""
    wanted = f"wanted: the namespace {namespace}, the only one that the caller may see"
    for number, raw in enumerate(question.pod_groups):
        metadata = raw.get("metadata")
        if not isinstance(metadata, Mapping) or (metadata.get("namespace") or "default") != namespace:
            raise QuestionError(wanted, f"podGroups[{number}].metadata.namespace")
    for number, pod in enumerate(question.pods):
        if (pod.metadata.namespace or "default") != namespace:
            raise QuestionError(wanted, f"pods[{number}].metadata.namespace")


def _manager_like(live: PodGroupManager) -> PodGroupManager:
    """That reads groups as the live one does, and remembers what it has read by itself."""
    manager = PodGroupManager(
        replace(live.labels),
        denied_seconds=0.0,
        permitted_seconds=0.0,
        clock=live.clock,
        gate=live.gate,
        wall=live.wall,
    )
    manager.max_held_binds = live.max_held_binds
    return manager


def _scheduler_name(groups: Sequence[Group]) -> str:
    """Of the first pod by name, as for gangs of the cluster."""
    pods = [member.pod for group in groups for member in group.members.values()]
    return min(pods, key=lambda pod: pod.name).spec.scheduler_name


def _check_number(question: Question, live: PodGroupManager) -> None:
    most = int(min(live.max_held_binds, MOST_MEMBERS))
    if not 1 <= len(question.pods) <= most:
        raise QuestionError(f"wanted: 1 to {most} pods, the most that can start together", "pods")
    if len(question.pod_groups) > MOST_POD_GROUPS:
        raise QuestionError(f"wanted: at most {MOST_POD_GROUPS} PodGroups", "podGroups")


def _pod_group(raw: Mapping[str, Any], place: str) -> PodGroup:
    key = (str(raw.get("apiVersion")), str(raw.get("kind")))
    if key not in KINDS:
        known = ", ".join(f"{version} {kind}" for version, kind in KINDS)
        raise QuestionError(f"wanted: apiVersion and kind of a PodGroup: {known}", place)
    try:
        found: PodGroup = convert(raw, KINDS[key].type)
    except DecodeError as error:
        raise QuestionError(str(error), place) from error
    _check_metadata(found.metadata, f"{place}.metadata")
    return structs.replace(found, metadata=_stored(found.metadata, f"group/{place}"))


def _put(manager: PodGroupManager, pod_group: PodGroup) -> None:
    if isinstance(pod_group, OwnPodGroup):
        manager.objects.pod_group_changed(pod_group)
    else:
        manager.objects.foreign_changed(pod_group)


def _check_metadata(metadata: Any, place: str) -> None:
    for name, text in (("name", metadata.name), ("namespace", metadata.namespace or "default")):
        if not 1 <= len(text) <= MAX_NAME or not text.isprintable() or "/" in text or NOT_THERE in text:
            raise QuestionError(f"wanted: a name of 1 to {MAX_NAME} printable characters", f"{place}.{name}")


def _check_pod(pod: corev1.Pod, place: str) -> None:
    _check_metadata(pod.metadata, f"{place}.metadata")
    if pod.node_name:
        raise QuestionError("a pod that is not there yet is on no node", f"{place}.spec.nodeName")
    if pod.spec.priority_class_name and pod.spec.priority is None:
        raise QuestionError("the number that priorityClassName stands for is wanted", f"{place}.spec.priority")


def _waiting(pod: corev1.Pod, number: int, scheduler_name: str, now: datetime) -> corev1.Pod:
    """As if it had been created now."""
    metadata = structs.replace(_stored(pod.metadata, f"pod/{number}"), creation_timestamp=now, deletion_timestamp=None)
    spec = structs.replace(pod.spec, scheduler_name=scheduler_name)
    return structs.replace(pod, metadata=metadata, spec=spec, status=corev1.PodStatus())


def _stored(metadata: ObjectMeta, uid: str) -> Any:
    """With a UID that no object of the cluster has."""
    return structs.replace(metadata, namespace=metadata.namespace or "default", uid=f"what-if/{uid}")


def _as_in_the_cluster(manager: PodGroupManager, live: PodGroupManager, group: Group) -> None:
    """Pods of a PodGroup that is in the cluster and not in the question ask for what that says."""
    with live.lock:
        known = live.groups.get(group.key)
        own = known.object if known is not None else None
        others = [found for kind in live.specs.foreign.values() if (found := kind.get(group.key)) is not None]
    for pod_group in (own,) if own is not None else sorted(others, key=kind_of):
        _put(manager, pod_group)


def _check_groups(manager: PodGroupManager, question: Question) -> None:
    """A group that asks for nonsense is the caller's mistake here."""
    for group in manager.groups.values():
        spec = manager.specs.of(group)
        if spec is not None and spec.invalid:
            numbers = [
                number for number, raw in enumerate(question.pod_groups) if _key(raw.get("metadata") or {}) == group.key
            ]
            raise QuestionError(spec.invalid, f"podGroups[{numbers[0]}]" if numbers else "pods")


def _key(metadata: Mapping[str, Any]) -> str:
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


def _gang_sets(manager: PodGroupManager) -> Iterator[Sequence[Group]]:
    """Groups without members are not asked about by themselves."""
    seen: set[str] = set()
    for group in _by_key(manager.groups.values()):
        if group.key not in seen and group.members:
            found = gang_set_of(manager, group)
            seen |= {each.key for each in found}
            yield found


def _by_key(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: group.key)
