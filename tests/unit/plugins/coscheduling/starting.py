"""Gangs whose start was cut short: as a restart finds them, and as the process knows them in which it happened."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state.member import Start
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


def bound_by(pod: corev1.Pod, quorum: int, uids: Collection[str], began: datetime | None = None) -> corev1.Pod:
    """With what its binding left on it: that it was bound by the start of these."""
    text = start_record(began or datetime.now(UTC), quorum, uids).text()
    annotations = {**(pod.metadata.annotations or {}), str(START): text}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=annotations))


def cut_short(manager: PodGroupManager, key: str) -> None:
    """All its members were in it, with the minMember that it has now; of those on no node the binding has failed."""
    with manager.lock:
        group = manager.groups[key]
        spec = manager.specs.of(group)
        assert spec is not None
        group.start = Start(start_record(datetime.now(UTC), spec.min_member, group.members), frozenset(group.members))
        manager.begun.follow(group, manager.specs.of(group))
