"""A role whose minimum is 0 may be missing: it is no part of the quorum, by which priority and age go."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from extender.api.codec import convert
from extender.api.corev1 import Pod
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL, Roles
from extender.plugins.coscheduling.state.counts.standing import Standing, standing_of
from extender.plugins.coscheduling.state.member import Member

FIRST, SECOND, LATE = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 9))


def member(name: str, role: str, priority: int, created: datetime) -> Member:
    metadata = {"name": name, "uid": name, "labels": {ROLE_LABEL: role}, "creationTimestamp": created.isoformat()}
    pod = convert({"metadata": metadata, "spec": {"priority": priority}}, Pod)
    return Member(PodInfo(pod), GroupRef("ns/g"))


WORKERS = [member("w0", "worker", 100, FIRST), member("w1", "worker", 100, SECOND)]


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="none of the role is there"),
        pytest.param([member("e0", "evaluator", -5, LATE)], id="one of it is there, less important and younger"),
    ],
)
def test_a_role_of_minimum_0_counts_for_neither(others: list[Member]) -> None:
    members = {each.pod.uid: each for each in (*WORKERS, *others)}
    priorities = Counter(each.pod.priority for each in members.values())
    spec = GroupSpec("ns/g", 2, roles=Roles((("worker", 2), ("evaluator", 0))))
    assert standing_of(members, priorities, spec) == Standing(100, SECOND)
