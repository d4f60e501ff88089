"""Batches of a group with only-waiting, by name: after a restart those of a batch that was cut short are to be told from the rest.

A start gives its members the name of their batch, an annotation that comes with their bindings. The GangPermit names batches,
PlanningRounds looks for one that is not whole when we begin to lead; `quorum` then counts its members and no others.
No counterpart in Koordinator, which forgets which members started together.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import partial

from extender.plugins.coscheduling.spec.keys import BATCH
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy, batch_name
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.reading import Reading
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import in_part
from extender.plugins.coscheduling.state.starts import recall_start, records_of

CUT_SHORT = timedelta(minutes=5)  # a batch that began before is not whole because members of it have gone


def name_batch(group: Group, spec: GroupSpec, uids: AbstractSet[str], now: datetime) -> None:
    """These start now: as a batch of their own, unless they belong to one that has begun. Lock held."""
    if spec.match_policy is not MatchPolicy.ONLY_WAITING:
        group.batch = ""
    elif not group.batch or not (uids <= group.started or in_part(group, spec)):
        group.batch = batch_name(now)


def recall_batches(manager: PodGroupManager) -> None:
    """Which starts, and with only-waiting which batches, had begun and were not whole when we began to lead. Lock held."""
    now = manager.wall()
    for group in list(manager.groups.values()):
        manager.quarantine.for_gang(group.key, "batches", partial(_recall, manager, group, now), None)


def _recall(manager: PodGroupManager, group: Group, now: datetime) -> None:
    spec = manager.spec(group)
    recall_start(group, spec, now)
    if spec is None or spec.match_policy is not MatchPolicy.ONLY_WAITING or spec.invalid:
        return
    batch_of = {uid: BATCH.text(group.members[uid].pod.metadata) for uid in group.on_node()}
    newest = max((name for name in set(batch_of.values()) if _began(name, now)), default="")
    if not newest:
        return
    members = [uid for uid, name in batch_of.items() if name == newest]
    quorum = min([spec.min_member, *(record.quorum for _, record in records_of(group, members))])  # as it was then
    if len(members) >= quorum:
        return
    group.batch = newest
    group.earlier = {uid for uid, name in batch_of.items() if name != newest}


def _began(name: str, now: datetime) -> bool:
    """Lately enough to be in mid-commit; False for what is no name of a batch."""
    began = Reading().parsed(BATCH, name)
    return began is not None and abs(now - began) <= CUT_SHORT
