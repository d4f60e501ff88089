"""Starts of gangs that were cut short: which members such a start has left behind, and what is known of it after a restart.

A start is decided by the GangPermit, once, for the members that are held then; each of their bindings carries its record. A start is
cut short where a part of its quorum is on nodes and the members that it left behind would complete it. These members alone come
before every other gang, and their places alone hold against every priority: neither a minMember that is raised later nor a
member that is lost makes a start of it. Everything runs under the manager's lock. No counterpart upstream.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime, timedelta

from extender.api import corev1
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.ended_phase import record_on
from extender.plugins.coscheduling.spec.sources.foreign import ForeignPodGroup
from extender.plugins.coscheduling.spec.sources.steps import size_told
from extender.plugins.coscheduling.spec.start_record import StartRecord, digest, start_record
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import controller_of
from extender.plugins.coscheduling.state.member import Start
from extender.plugins.coscheduling.state.quorum import is_over, left_behind, note_whole

RECENT = timedelta(minutes=5)  # a start that began before has been finished since, or never will be
STARTED_PHASES = frozenset(("Scheduled", "Running", "Finished", "Completed"))
"""What the controllers of scheduler-plugins, Koordinator and Volcano write once minMember of a gang run, or have."""
REPLACED_AFTER = timedelta(
    seconds=60
)  # a member that is made so long after a sibling has started is none of the first start
QUIET = timedelta(seconds=30)  # a controller that has made no member for so long wants no more of them
SKEW = timedelta(seconds=5)  # between our clock and the API server's, which dates pods


def record_start(group: Group, spec: GroupSpec, uids: AbstractSet[str], now: datetime) -> None:
    """It begins for these members. The rest of a start that was cut short belongs to that one."""
    before = group.start
    if before is not None and uids & before.members:
        group.start = replace(before, members=before.members | uids)
    else:
        group.start = Start(start_record(now, spec.min_member, uids), frozenset(uids))


def follow_start(group: Group, spec: GroupSpec | None) -> None:
    """A start is over once its quorum is on nodes, or once it can be finished no more: what happens later makes no start of it."""
    start = group.start
    if start is None or spec is None or spec.invalid:
        return
    if len(group.assigned) < min(spec.min_member, start.record.quorum) and start.members & group.starting:
        return  # by counting alone: this is asked with each member that comes to its node
    if is_over(group, spec, start):
        group.start = None


def recall_start(group: Group, spec: GroupSpec | None, now: datetime) -> None:
    """What the pods show when we begin to lead, and nothing else: others may have led in between. A start of which members are on their
    way to their nodes has been decided here since."""
    if group.start is None or group.start.members.isdisjoint(group.starting):
        group.start = _recalled(group, now) if spec is not None and not spec.invalid else None


def recall_once_whole(group: Group, spec: GroupSpec | None, foreign: ForeignPodGroup | None = None) -> None:
    """Likewise, whether it has been whole: what members that run were bound with, or what its object says, shows it. Members that have no
    sibling on a node prove nothing, whatever an object says: they may have been made anew, to start whole.

    foreign: another system's object, where that is the gang's."""
    on_node = group.on_node()
    if not on_node or spec is None or spec.invalid or left_behind(group, spec):
        return
    quorums = [record.quorum for uid in on_node if (record := _record_of(group, uid)) is not None]
    if says_started(
        group, foreign
    ):  # of how many it says itself, or the records do; minMember may have been raised since
        told = size_told(group.told) if group.told is not None else 0
        quorums += [told] if told else [] if quorums else [spec.min_member]
    members = max(quorums, default=0)
    if members > group.whole_of:
        note_whole(group, spec, members)


def says_started(group: Group, foreign: ForeignPodGroup | None = None) -> bool:
    """Whether its object's condition, or the phase that another system's controller writes, says that the gang has started."""
    with_phase = group.pod_group or (foreign if group.in_tree is None else None)
    if with_phase is not None and with_phase.status.phase in STARTED_PHASES:
        return True
    return group.told is not None and group.told.status == "True"


def note_replaced(group: Group, spec: GroupSpec, now: datetime) -> bool:
    """Whether the members that wait were made for a gang that has been whole, as the pods themselves show it; it is noted then.

    A gang that another scheduler has started has no record of ours, and its object may say nothing. Where its controller has made
    all that wait long after a sibling's containers have started, and none for a while, it has lost members, and wants no more than
    these. That excludes a gang whose other members have waited all the time. Where a start of ours is on record, that alone
    counts: minMember may have been raised since.
    """
    if spec.invalid or spec.match_policy is MatchPolicy.ONLY_WAITING or group.whole_of >= spec.min_member:
        return False
    waiting = [info.pod for info in group.pending()]
    made = [stamp for pod in waiting if (stamp := pod.metadata.creation_timestamp) is not None]
    owners = {controller_of(pod) for pod in waiting}
    if not waiting or len(made) < len(waiting) or len(owners) != 1 or owners == {""} or now - max(made) < QUIET:
        return False
    siblings = (group.members[uid].pod for uid in group.on_node() if _record_of(group, uid) is None)
    if not any(controller_of(pod) in owners and _ran_before(pod, min(made)) for pod in siblings):
        return False
    note_whole(group, spec, spec.min_member)
    return True


def _ran_before(pod: corev1.Pod, made: datetime) -> bool:
    """Whether its containers have started long before another was made."""
    since = pod.status.start_time
    return pod.status.phase == "Running" and since is not None and made - since >= REPLACED_AFTER


def _recalled(group: Group, now: datetime) -> Start | None:
    records = {uid: record for uid in group.on_node() if (record := _record_of(group, uid)) is not None}
    recent = [record for record in records.values() if abs(now - record.began) <= RECENT]
    if not recent:
        return None
    newest = max(recent, key=lambda record: record.began)
    bound = {uid for uid, record in records.items() if record == newest}
    waiting = {
        info.pod.uid for info in group.pending() if _began(newest, info.pod.uid, info.pod.metadata.creation_timestamp)
    }
    return Start(newest, frozenset(bound | waiting))


def seconds_since_start(group: Group, now: datetime) -> float:
    """By the newest record of its members, those of an earlier phase among them; infinite where none has one."""
    records = (_record_of(group, uid) for uid in group.on_node())
    began = [record.began for record in records if record is not None]
    if group.ended_phase is not None and group.ended_phase.began is not None:
        began.append(group.ended_phase.began)
    return (now - max(began)).total_seconds() if began else math.inf


def _record_of(group: Group, uid: str) -> StartRecord | None:
    return record_on(group.members[uid].pod)


def _began(record: StartRecord, uid: str, created: datetime | None) -> bool:
    """Whether a member that waits was part of the start; where that names none, by its age."""
    if record.members:
        return digest(uid) in record.members
    return created is None or created <= record.began + SKEW
