"""What the pods of a cluster show: gangs with another scheduler, keys of groups that nothing reads, other controllers of PodGroups.

All pods are looked through once, page by page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from extender.api import corev1
from extender.client import interface as kinds
from extender.client.errors import ForbiddenError, NotFoundError
from extender.client.interface import list_all
from extender.client.transport import USER_AGENT
from extender.config.findings import Finding, Severity
from extender.doctor.questions import Questions
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.sources.source import presets

ERROR, WARNING, INFO = Severity

GROUPS_SHOWN = 20
"""Each is a line of its own: a cluster of another scheduler's gangs would be a thousand."""
CONTROLLER_IMAGE = "scheduler-plugins/controller"


@dataclass(slots=True)
class _Seen:
    """ours: keys of groups with members of ours. others: of groups with others, how many are of which scheduler.

    unread: key of a label or annotation -> pods of ours in no group, where its value names a PodGroup, or a preset would read it.
    controllers: pods of scheduler-plugins' controller.
    """

    ours: set[str] = field(default_factory=set)
    others: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unread: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    controllers: list[str] = field(default_factory=list)


def examine(ask: Questions) -> Iterator[Finding]:
    """Raises ApiError where the API server does not answer."""
    groups, managers = _pod_groups(ask)
    seen = _Seen()
    _, forbidden = ask.read("pods", partial(_look_through, ask, groups, seen))
    yield from forbidden
    if not forbidden and not ask.unknown:
        yield from (*_mixed(ask, seen), *_unread(ask, seen))
    yield from _controllers(ask, managers, seen.controllers)


def _pod_groups(ask: Questions) -> tuple[Collection[str], Collection[str]]:
    """Their keys, and the field managers besides us that write phases. Both empty where we may not ask: that is said already."""
    keys: set[str] = set()
    managers: set[str] = set()
    try:
        for group in list_all(ask.api, kinds.POD_GROUPS):
            keys.add(group.key)
            managers |= group.phase_managers - {USER_AGENT}
    except (NotFoundError, ForbiddenError):
        return (), ()
    return keys, managers


def _look_through(ask: Questions, groups: Collection[str], seen: _Seen) -> None:
    labels = GroupLabels.of(ask.configuration.coscheduling_args)
    preset_keys = {str(each.group) for each in presets()}
    for pod in list_all(ask.api, kinds.PODS, field_selector=kinds.NON_TERMINAL_PODS):
        if any(CONTROLLER_IMAGE in container.image for container in pod.spec.containers):
            seen.controllers.append(pod.key)
        ref, ours = labels.group_of(pod), ask.configuration.serves(pod.spec.scheduler_name)
        if ref is None:
            for key in _keys_of_groups(pod, groups, preset_keys) if ours else ():
                seen.unread[key].append(pod.key)
        elif ours:
            seen.ours.add(ref.key)
        elif (ref.source is None or ref.lightweight) and not pod.spec.scheduling_group:
            # Another system's object, or kube-scheduler's own, with that system's scheduler is well.
            seen.others[ref.key][pod.spec.scheduler_name] += 1


def _keys_of_groups(pod: corev1.Pod, groups: Collection[str], preset_keys: Collection[str]) -> Iterable[str]:
    metadata = pod.metadata
    for key, value in (*metadata.labels.items(), *metadata.annotations.items()):
        if key in preset_keys or (len(value) < 254 and f"{pod.namespace}/{value}" in groups):
            yield key


def _mixed(ask: Questions, seen: _Seen) -> Iterator[Finding]:
    """Groups with pods that name a scheduler which is not ours."""
    names, others = ask.configuration.scheduler_names, seen.others
    served = ", ".join(names)
    for key in sorted(others, key=lambda key: (key not in seen.ours, key))[:GROUPS_SHOWN]:
        named = ", ".join(f"{count} of {name}" for name, count in sorted(others[key].items()))
        severity = ERROR if key in seen.ours else WARNING
        message = (
            f"pods of this group are of another scheduler, which starts them singly: {named}; served here: {served}"
        )
        fix = f"write `schedulerName: {names[0]}` in their template, or apply manifests/scheduler-name"
        yield ask.finding(severity, "ForeignScheduler", f"group {key}", message, fix)
    if len(others) > GROUPS_SHOWN:
        message = f"{len(others) - GROUPS_SHOWN} more groups have pods of other schedulers"
        yield ask.finding(WARNING, "ForeignScheduler", "groups", message, "mend those above, and ask again")


def _unread(ask: Questions, seen: _Seen) -> Iterator[Finding]:
    """Pods of ours that are in no group, though a label or an annotation of theirs says which."""
    of_presets = {str(each.group): each.name for each in presets()}
    for key in sorted(seen.unread)[:GROUPS_SHOWN]:
        pods, preset = seen.unread[key], of_presets.get(key)
        says = f"a gang of {preset}" if preset else "the name of a PodGroup"
        message = f"{len(pods)} pods, as {pods[0]}, have {says} there, and start singly: the key is not read"
        fix = (
            f"add `{{preset: {preset}}}` to groupSources"
            if preset
            else "use the label of podGroupLabels, or add this one"
        )
        yield ask.finding(WARNING, "KeyNotRead", key, message, f"{fix} in the arguments of Coscheduling")


def _controllers(ask: Questions, managers: Collection[str], pods: Collection[str]) -> Iterator[Finding]:
    """Another controller of PodGroups, by what it has written or by its image."""
    if not managers and not pods:
        return
    by = f"written by {', '.join(sorted(managers))}" if managers else "nothing written yet"
    where = f"; its pods: {', '.join(sorted(pods)[:3])}" if pods else ""
    message = (
        f"another controller keeps the phases and counts of PodGroups, and the extender leaves them to it ({by}{where})"
    )
    fix = "keep one: without that controller the extender keeps phase and counts itself"
    yield ask.finding(INFO, "OtherController", str(kinds.POD_GROUPS), message, fix)
