"""Adds remarks to verdicts: that the members' priorities differ, and which of them the gang has; that the gang has waited for longer
than it asks for.

Coscheduling puts it between everything that decides and the Verdicts that tell users. No counterpart upstream: a PodGroup of
scheduling.k8s.io has its priority as a field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from extender.api import corev1
from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import Verdict, Verdicts
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

NONE: tuple[str, ...] = ()


@dataclass(eq=False)
class RemarkedVerdicts:
    """Fulfils Verdicts. Takes the manager's lock, under which groups come and go: none is told what was decided of another of its name."""

    verdicts: Verdicts
    manager: PodGroupManager

    def __post_init__(self) -> None:
        self.manager.registry.on_dropped.append(self.forget)

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        with self.manager.lock:
            group = self.manager.groups.get(key)
            if pod_group is None and member is not None and (group is None or member.uid not in group.members):
                return
            if group is not None and pod_group is not None and pod_group is group.in_tree:
                served = partial(_served, self.manager, group)
                if not self.manager.quarantine.for_gang(key, "verdicts", served, otherwise=True):
                    return
            differ = group is not None and self.manager.quarantine.for_gang(
                key, "priorities", partial(priorities_differ, self.manager, group), otherwise=False
            )
            gave_up = (
                group is not None
                and not verdict.scheduled
                and self.manager.quarantine.for_gang(
                    key, "patience", partial(self.manager.line.has_given_up, group), otherwise=False
                )
            )
            of_start = not (verdict.event_only or verdict.disrupted)
            if gave_up and of_start:
                verdict = replace(verdict, message=f"{verdict.message}; {messages.GAVE_UP}")
            if differ and of_start:
                verdict = replace(verdict, message=messages.with_priorities(verdict.message))
            fields = self.manager.quarantine.for_gang(key, "not honoured", partial(_not_honoured, group), NONE)
            if group is not None and fields:
                verdict = replace(verdict, message=f"{verdict.message}; {messages.not_honoured(fields)}")
                member = member or _any_member(group)
            self.verdicts.decided(pod_group, key, verdict, member)

    def forget(self, key: str) -> None:
        """Lock held."""
        self.verdicts.forget(key)


def _served(manager: PodGroupManager, group: Group) -> bool:
    """Whether any member is ours to schedule: another kube-scheduler may write the conditions of its own pods' PodGroups. Lock held."""
    return any(manager.labels.ours(group.members[next(iter(uids))].pod) for uids in group.of_scheduler.values())


def priorities_differ(manager: PodGroupManager, group: Group) -> bool:
    """Whether it matters that the members have more than one priority: with a minMember of 1 each is on its own. Lock held."""
    if len(group.priorities) <= 1:
        return False
    spec = manager.specs.valid(group)
    return spec is not None and spec.min_member > 1


def _not_honoured(group: Group | None) -> tuple[str, ...]:
    """At a start, too, a member is told: to another system's PodGroup no condition is written."""
    return group.spec.ignored if group is not None and group.spec is not None else NONE


def _any_member(group: Group) -> corev1.Pod | None:
    return min((each.pod for each in group.members.values()), key=lambda pod: pod.name, default=None)


def remark_is_stale(manager: PodGroupManager, group: Group) -> bool:
    """Whether the condition of a gang says it and it is not so any more, or does not say it yet. Lock held."""
    told = group.told
    if told is None or group.pod_group is None:  # of kube-scheduler's own kind a start is said once
        return False
    return (messages.PRIORITIES_DIFFER in told.message) != priorities_differ(manager, group)
