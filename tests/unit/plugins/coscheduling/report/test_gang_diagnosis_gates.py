"""What would open a gate that is shut: pods that are missing, a lower minMember, a foreign gate that comes off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.report.gang_diagnosis import would_open
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, members

Make = Callable[..., World]
QUORUM, GATED = UnschedulableReason.QUORUM_MISSING, UnschedulableReason.GATED


def foreign(name: str, *gates: str) -> corev1.Pod:
    gated = make_pod().scheduling_gates(*gates).obj().spec.scheduling_gates
    made = member(name)
    return structs.replace(made, spec=structs.replace(made.spec, scheduling_gates=gated))


@pytest.mark.parametrize(
    ("asked", "pods", "reason", "texts"),
    [
        pytest.param(
            {"minimum": 3},
            members(2),
            QUORUM,
            ["1 pod more of the group", "minMember 2 instead of 3"],
            id="one is missing",
        ),
        pytest.param({"minimum": 3}, [], QUORUM, ["3 pods more of the group"], id="no minMember would do without pods"),
        pytest.param(
            {"minimum": 2, "roles": "a=1,b=1"},
            members(2, role="a"),
            QUORUM,
            ["1 pod more of role b"],
            id="of a role",
        ),
        pytest.param(
            {"minimum": 2},
            [foreign("g0", "queue/admission"), foreign("g1", "queue/admission", "other/gate")],
            GATED,
            ["2 pods freed of the gates of others: other/gate, queue/admission"],
            id="gates of others",
        ),
        pytest.param({"minimum": 2}, members(2), UnschedulableReason.INSUFFICIENT_RESOURCES, [], id="no gate"),
        pytest.param({"minimum": 2, "roles": "nonsense"}, members(1), QUORUM, [], id="a group that cannot be read"),
    ],
)
def test_what_would_open_it(
    asked: dict[str, Any], pods: list[corev1.Pod], reason: str, texts: list[str], world: Make
) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, group(**asked))
    w.create(*pods)
    with w.plugin.manager.lock:
        found = would_open(w.plugin.manager, w.plugin.manager.groups["default/g"], reason)
    assert [each.text for each in found] == texts
