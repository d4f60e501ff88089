"""Since when each gang is in its phase, and what gangs that are not refused wait for.

The plugin's tick has it look about once a second; pages ask it for times. A check that has failed for about a second is
told by `decided`: a gang that is being created says nothing. Denials and starts are told where they are decided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from extender.api import corev1
from extender.client.interface import OwnPodGroup
from extender.client.short_steps import pause
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import (
    GAVE_UP,
    REJECTED,
    SCHEDULED,
    WAITING,
    CoschedulingDependencies,
    Verdict,
)
from extender.plugins.coscheduling.report.priority_remark import remark_is_stale
from extender.plugins.coscheduling.scheduling.checks import (
    extra_members_wait,
    failed_check,
    says_broken,
    verdict_of_start,
)
from extender.plugins.coscheduling.scheduling.phases import Phase, Situation, phase_of, situation
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import no_longer_reserved
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, FailedCheck, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts

log = logging.getLogger(__name__)

TOLD_AFTER_SECONDS = 1.0
UNTOLD = frozenset((UnschedulableReason.BACKING_OFF,))  # passes by itself; the verdict before it stands


@dataclass(frozen=True, slots=True)
class Seen:
    """phase, and since when; the check that fails, and since when. Seconds of the clock.

    group, object_uid, stopped: of which group it was seen, by which PodGroup, and what had been decided of it last: to another group or
    PodGroup of that name, or after another decision, the same check is news.
    """

    group: Group
    object_uid: str
    last_diagnosis: Diagnosis | None
    phase: Phase
    since: float
    failed_check: tuple[UnschedulableReason, str] | None = None
    failed_since: float = 0.0
    told: bool = False
    settled: Situation | None = None  # in which nothing is left to be told of it


Telling = tuple[OwnPodGroup | None, str, Verdict, corev1.Pod | None]
"""What `Verdicts.decided` is given: the group with its key, what was decided, and a member that may hear of it."""


@dataclass(eq=False)
class GangObserver:
    """The manager's lock guards what was seen. is_short: told the keys of gangs of which it is told that they have too few members.
    came_into: told each phase that a gang comes into, under the lock."""

    manager: PodGroupManager
    dependencies: CoschedulingDependencies
    is_short: Callable[[str], None]
    came_into: Callable[[str, Phase], None] = lambda key, phase: None

    def __post_init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._given_up: set[str] = set()  # keys of gangs of which that is told
        self.manager.registry.on_dropped.append(self.forget)

    def tick(self) -> None:
        manager = self.manager
        with manager.lock:
            keys = list(manager.groups)
        for some in in_parts(keys):
            with manager.lock:
                looked = [
                    manager.quarantine.for_gang(key, "observer", partial(self._look, group), None)
                    for key in some
                    if (group := manager.groups.get(key)) is not None
                ]
            for telling in filter(None, looked):
                self.dependencies.verdicts.decided(*telling)
                _, key, verdict, _ = telling
                if verdict.reason in (WAITING, GAVE_UP) and self.dependencies.may_plan():
                    log.info("gang waits group=%s reason=%s message=%r", key, verdict.why, verdict.message)
                if verdict.why == UnschedulableReason.QUORUM_MISSING:
                    self.is_short(key)
            pause()

    def tell_anew(self) -> None:
        """We begin to lead: what was told until now was not heard. Lock held."""
        self._seen = {key: replace(seen, told=False, settled=None) for key, seen in self._seen.items()}
        self._given_up.clear()

    def forget(self, key: str) -> None:
        """A gang is gone; or is set aside, and told of that: what it waits for is told anew when it is looked at again. Lock held."""
        self._seen.pop(key, None)
        self._given_up.discard(key)

    def _look(self, group: Group) -> Telling | None:
        """Lock held. A gang that nothing happens to costs a comparison."""
        if self.is_settled(group):
            return None
        telling = self._look_closely(group)
        seen = self._seen.get(group.key)
        if telling is None and seen is not None and (seen.failed_check is None or seen.told):
            self._seen[group.key] = replace(seen, settled=situation(self.manager, group))
        return telling

    def is_settled(self, group: Group) -> bool:
        """Whether nothing has happened to it since nothing was left to be told of it. Lock held."""
        seen = self._seen.get(group.key)
        if seen is None or seen.settled is None:
            return False
        same = seen.group is group and seen.last_diagnosis is group.last_diagnosis
        return same and seen.settled == situation(self.manager, group)

    def _look_closely(self, group: Group) -> Telling | None:
        """Lock held."""
        seen = self._seen.get(group.key)
        if (stop := no_longer_reserved(self.manager, group)) is not None:
            group.last_diagnosis = stop
            return _telling(group, Verdict(False, REJECTED, stop.text, stop.reason), _spokesman(group))
        before, seen = seen, self.see(group)
        runs = seen.phase is Phase.BOUND and seen.failed_check is None
        over = before is not None and (_is_of_another(group, before) or (before.told and _extra(before)))
        if runs and (self._says_what_is_not_so(group) or over):
            return self._complete(group)
        if self._gives_up(group, seen):
            return self._gave_up(group, seen)
        if seen.failed_check is None or seen.told or self.manager.clock() - seen.failed_since < TOLD_AFTER_SECONDS:
            return None
        self._seen[group.key] = replace(seen, told=True)
        reason, text = seen.failed_check
        if reason in UNTOLD:
            return None
        return _telling(group, Verdict(_extra(seen), WAITING, text, reason), _spokesman(group))

    def _gives_up(self, group: Group, seen: Seen) -> bool:
        """Whether it is to be told that it has waited for longer than it asks for."""
        if seen.phase not in WAITING_PHASES or not self.manager.line.has_given_up(group):
            self._given_up.discard(group.key)
            return False
        return group.key not in self._given_up and self.manager.groups.get(group.key) is group

    def _gave_up(self, group: Group, seen: Seen) -> Telling:
        """With why it waits; that it has given up is remarked on each verdict (priority_remark)."""
        self._given_up.add(group.key)
        stop = group.last_diagnosis
        reason, text = seen.failed_check or (
            (stop.reason, stop.text) if stop is not None else (UnschedulableReason.NOT_TRIED, "no plan")
        )
        return _telling(group, Verdict(False, GAVE_UP, text, reason), _spokesman(group))

    def _says_what_is_not_so(self, group: Group) -> bool:
        """Whether the condition of a gang that runs denies that, or is wrong on its members' priorities."""
        if group.key in self.manager.begun.broken and says_broken(group):
            return False  # it is to be restarted, and budgets may forbid that for a while
        return _denies_it(group) or remark_is_stale(self.manager, group)

    def _complete(self, group: Group) -> Telling:
        """No member is left over any more, or it was not said that it has started: not before we ended, or stopped leading."""
        spec = self.manager.specs.of(group)
        verdict = Verdict(True, SCHEDULED, messages.complete(0)) if spec is None else verdict_of_start(group, spec)
        return _telling(group, verdict)

    def last_seen(self, key: str) -> Seen | None:
        """As the last look has found it, a second ago at most. Lock held."""
        return self._seen.get(key)

    def see(self, group: Group) -> Seen:
        """As it is now, with since when. Lock held."""
        now = self.manager.clock()
        phase = phase_of(self.manager, group)
        failed = self.failed_check(group) if phase in WAITING_PHASES else extra_members_wait(self.manager, group)
        noted = (failed.reason, failed.cause) if failed is not None else None
        before = self._seen.get(group.key)
        seen = Seen(group, _object_uid(group), group.last_diagnosis, phase, now, noted, now)
        if before is not None and before.group is group:
            same_check = before.failed_check == noted and before.last_diagnosis is group.last_diagnosis
            if same_check and not _is_of_another(group, before):
                if before.phase is phase:
                    return before
                seen = replace(seen, failed_since=before.failed_since, told=before.told)
            elif before.phase is phase:
                seen = replace(seen, since=before.since)
        if self.manager.groups.get(group.key) is group:  # a page may ask about one that has just gone
            self._seen[group.key] = seen
            if before is None or before.phase is not phase:
                self.came_into(group.key, phase)
        return seen

    def failed_check(self, group: Group) -> FailedCheck | None:
        """The check that fails for members of ours that have no place yet. Lock held."""
        pods = [info.pod for info in group.pending() if self.dependencies.ours(info.pod)]
        if not pods:
            return self._object_gate(group)
        pod = min(pods, key=_name)
        return failed_check(self.manager, group, pod.spec.scheduler_name, pod.name)

    def _object_gate(self, group: Group) -> FailedCheck | None:
        """Of a PodGroup that has no pods yet: its owner hears at once that it is invalid, and that it is so no longer."""
        spec = self.manager.specs.of(group)
        if group.members or group.pod_group is None or spec is None:
            return None
        if spec.invalid:
            return FailedCheck(UnschedulableReason.INVALID_POD_GROUP, spec.invalid, spec.invalid)
        if group.told is not None and group.told.reason == UnschedulableReason.INVALID_POD_GROUP:
            text = messages.waiting_for_members(spec.asked)
            return FailedCheck(UnschedulableReason.QUORUM_MISSING, text, text)
        return None


def _telling(group: Group, verdict: Verdict, member: corev1.Pod | None = None) -> Telling:
    return group.object, group.key, verdict, member


def _object_uid(group: Group) -> str:
    return group.object.metadata.uid if group.object is not None else ""


def _is_of_another(group: Group, seen: Seen) -> bool:
    """Whether it was seen with another PodGroup, or none: this one has not been told of it."""
    return group.object is not None and seen.object_uid != _object_uid(group)


WAITING_PHASES = frozenset((Phase.GATHERING, Phase.DENIED, Phase.BACKING_OFF, Phase.TIMED_OUT))


def _extra(seen: Seen) -> bool:
    """Whether the gang runs, and only members beyond minMember wait."""
    return seen.failed_check is not None and seen.failed_check[0] is UnschedulableReason.EXTRA_MEMBERS_WAIT


def _denies_it(group: Group) -> bool:
    """Whether the group's condition says that it does not run, or is set aside."""
    told = group.told
    return told is not None and (told.status == "False" or told.reason == UnschedulableReason.INTERNAL_ERROR)


def _spokesman(group: Group) -> corev1.Pod | None:
    """Of a gang without an object, a member that our gate holds: kube-scheduler tells the others."""
    return min((group.members[uid].pod for uid in group.gated if uid in group.members), key=_name, default=None)


def _name(pod: corev1.Pod) -> str:
    return pod.metadata.name
