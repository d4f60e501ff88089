"""All or nothing, and what annotations promise, but for what a fault of the leader excuses."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from tests.e2e.fault_run.promises import Story, broken_promises
from tests.e2e.fault_run.record import Past
from tests.e2e.fault_run.wishes import ONCE_SATISFIED, Wish
from tests.e2e.history import Change, Excused, outside, violations

BINDING_SECONDS = 0.010  # which the time of a commit allows each member
EVICTION_SECONDS = 1.0  # from one write to the next, on a busy machine
PREEMPTION_SECONDS = 5.0  # from the first victim that is told to go to the last, likewise
WRITERS = ("-extender", "-scheduler")
WRITES = ("create", "patch", "delete")
MINE = ("default", "other")  # namespaces of the gangs that are judged; those of hostile tenants are theirs


def fractions(past: Past) -> list[str]:
    known = _wishes(past)
    return violations(
        _evicted_at_once(list(_gone_when_told(past.history))),
        {key: wish.min_member for key, wish in known.items()},
        {},
        ended=past.outcome["ended"],
        excused=past.outcome["excused"],
        loose={key: wish.most for key, wish in known.items() if wish.policy == ONCE_SATISFIED},
        excused_fraction=_excused(past),
        known_since=past.excuses.blind_since,
    )


def _excused(past: Past) -> Excused:
    """A fault of the commit, or of what is known of an eviction; or a busy machine, on which the rig stood still, or the API servers took
    longer for writes to the group's pods than is usual. After a fault of the commit the queue of the next kube-scheduler counts for it."""

    def excused(group: str, since: float, until: float, limit: float) -> bool:
        if past.excuses.of_a_fraction(since, until, limit, list(_in_the_queue(past, group, since, until))):
            return True
        evicted = _was_evicted(past, group, since)
        if evicted and past.excuses.of_the_rest_of_a_gang(since, until):
            return True
        names = {change.pod.name for change in past.history if change.pod.group == group}
        if evicted:
            names |= _told_to_go(past, since, until + PREEMPTION_SECONDS)
        return outside([*past.pauses, *_slow_writes(past, names)], since, until) <= limit

    return excused


def _in_the_queue(past: Past, group: str, since: float, until: float) -> Iterator[tuple[float, float]]:
    """From when a kube-scheduler came to lead to when it first asked about a member. All pods with neither node nor gate are in its active
    queue then, and no extender says which of them is the next."""
    ungated: dict[str, float] = {}
    for change in past.history:
        if change.pod.group == group and not change.pod.gated:
            ungated.setdefault(change.pod.uid, change.at)
    for began, replica in past.leaders.begun:
        if since <= began <= until:
            asked: dict[str, float] = {}
            for call in past.calls:
                uid, at = call["uid"], call["began"]
                if call["replica"] == replica and began <= at <= until and ungated.get(uid, math.inf) < began:
                    asked[uid] = min(at, asked.get(uid, at))
            yield from ((began, at) for at in asked.values())


def _was_evicted(past: Past, group: str, at: float) -> bool:
    """Whether it is then that a member of it was told to go."""
    return any(
        change.at == at and change.pod.group == group and (change.deleted or change.pod.leaving)
        for change in past.history
    )


def _told_to_go(past: Past, since: float, until: float) -> set[str]:
    """Names of the pods: all victims of a preemption are marked before the first is deleted."""
    return {
        change.pod.name
        for change in past.history
        if since <= change.at <= until and (change.deleted or change.pod.leaving)
    }


def _slow_writes(past: Past, names: Collection[str]) -> Iterator[tuple[float, float]]:
    """When a Binding of one of these pods, or what it takes to evict it, was at an API server for longer than BINDING_SECONDS. Reads the
    audit logs: only a fraction that no fault excuses asks."""
    for write in past.audit():
        ours = write["writer"].endswith(WRITERS) and write["resource"] == "pods" and write["verb"] in WRITES
        if ours and write["name"] in names and write["took"] > BINDING_SECONDS:
            yield write["at"] + BINDING_SECONDS, write["at"] + write["took"]


def _gone_when_told(history: Iterable[Change]) -> Iterator[Change]:
    """A pod that is told to go is gone: its kubelet may take its time. It comes back only where etcd was restored to a time before
    it was told."""
    told: set[str] = set()
    for change in history:
        if change.pod.name.partition("/")[0] not in MINE:
            continue
        goes = change.deleted or change.pod.leaving
        if not goes or change.pod.uid not in told:
            yield replace(change, deleted=goes)
        (told.add if goes else told.discard)(change.pod.uid)


def _evicted_at_once(changes: Sequence[Change]) -> list[Change]:
    """Each eviction is a write of its own: of a gang those that follow one another within a second's time count as the last of them."""
    following: dict[str, float] = {}  # of the gang: when the eviction after this one counts, and was
    at: dict[str, float] = {}
    found = []
    for change in reversed(changes):
        if change.deleted and change.pod.node:
            group = change.pod.group
            if at.get(group, math.inf) - change.at > EVICTION_SECONDS:
                following[group] = change.at
            at[group] = change.at
            change = replace(change, at=following[group])
        found.append(change)
    found.reverse()
    return sorted(found, key=lambda change: change.at)


def promises(past: Past) -> list[str]:
    story = Story(
        list(_gone_when_told(past.history)),
        past.outcome["labels"],
        frozenset(past.outcome["excused"]),
        limit=5.0,
        ended=past.outcome["ended"],
        excused_state=past.excuses.of_a_fraction,
        known_since=past.excuses.blind_since,
    )
    return broken_promises(story, _wishes(past))


def _wishes(past: Past) -> dict[str, Wish]:
    return {key: Wish(**{**each, "groups": frozenset(each["groups"])}) for key, each in past.outcome["wishes"].items()}
