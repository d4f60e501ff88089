"""A PodGroupManager without a scheduler around it: groups, members and places for the tests of its parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from extender.api import corev1
from extender.api.codec import convert
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.api.schedulingv1beta1 import PodGroup as PodGroupInTree
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent, Start
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import pod, pod_group

KEY = "default/g"
POD = pod("p", "g")
LIGHT = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}


def members(group: Group | None) -> list[str]:
    assert group is not None
    return list(group.members)


def place(manager: PodGroupManager, *members: corev1.Pod, group: str = "", firm: bool = False, wave: int = 0) -> None:
    for member in members:
        key = group or manager.key_of(member)
        manager.slots.reserve(Slot(PodInfo(member), key, "n1", math.inf, firm, wave=wave))


def places(manager: PodGroupManager) -> set[str]:
    return {each.uid for each in manager.slots}


def hold(group: Group, uid: str) -> None:
    group.happened(uid, MemberEvent.HELD, "n1")


def naming(name: str, *others: str, min_member: int = 1) -> Any:
    bare = pod_group(name, min_member)
    listed = ",".join(f"default/{each}" for each in (name, *others))
    return replace(bare, metadata=replace(bare.metadata, annotations={GROUPS: listed}))


def cut_short(manager: PodGroupManager, name: str) -> Group:
    """Of two members one is on a node, and the other has been left behind."""
    group = manager.objects.pod_group_changed(pod_group(name, 2))
    bound, waits = f"{name}-0", f"{name}-1"
    manager.pod_changed(pod(bound, name, node_name="n1"))
    manager.pod_changed(pod(waits, name))
    uids = frozenset((bound, waits))
    group.start = Start(start_record(datetime(2026, 1, 1, tzinfo=UTC), 2, uids), uids)
    return group


def in_tree(name: str, count: int) -> InTreePodGroup:
    policy = {"gang": {"minCount": count}}
    return convert(
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"schedulingPolicy": policy}}, InTreePodGroup
    )


def below(name: str, parent: str, count: int = 1) -> InTreePodGroup:
    """A group of this CompositePodGroup."""
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}, "parentCompositePodGroupName": parent}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, PodGroupInTree)


def set_wall(manager: PodGroupManager, wall: Callable[[], datetime]) -> None:
    """From now on it goes by this time of day, and so do its parts."""
    manager.wall = manager.line._wall = manager.begun._wall = manager.starts._wall = wall
