"""Which members a gang waits for that was whole, or that comes in phases: those that exist, and none that has gone or is made later."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.keys import JOBSET_JOBS, REPLICATED_JOB
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.roles import Roles
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.quorum import Needs, in_phase, needs
from tests.unit.plugins.coscheduling.conftest import pod
from tests.unit.plugins.coscheduling.state.test_group_members import put
from tests.unit.plugins.coscheduling.state.test_quorum import group

ROLES = GroupSpec("default/g", 3, roles=Roles((("master", 1), ("worker", 2))))


@pytest.mark.parametrize(
    ("members", "having", "lacks"),
    [
        pytest.param("aB", "aB", Needs(), id="a worker has gone, and those that are left are there"),
        pytest.param("aB", "a", Needs(1, (("worker", 1),)), id="and the worker that is left is not"),
        pytest.param("aB", "B", Needs(1, (("master", 1),)), id="and the master is not: no worker takes its part"),
        pytest.param("BC", "BC", Needs(), id="the master has gone"),
        pytest.param("BC", "B", Needs(1, (("worker", 1),)), id="the master has gone, and a worker is not there"),
        pytest.param("BCD", "BCD", Needs(1, (("master", 1),)), id="another worker is no master"),
    ],
)
def test_a_gang_with_roles_that_was_whole_waits_for_those_that_exist(members: str, having: str, lacks: Needs) -> None:
    whole = group(members)
    whole.whole_of = 3
    assert needs(whole, ROLES, set(having)) == lacks


@pytest.mark.parametrize(
    ("jobs", "minimum", "waits_for", "to_come"),
    [
        pytest.param(2, 3, 2, 1, id="its JobSet has one more Job, the launcher, which is made later"),
        pytest.param(2, 4, 4, 0, id="two are missing: one of them is a node"),
        pytest.param(3, 3, 3, 0, id="its JobSet has two more Jobs"),
    ],
)
def test_nodes_of_a_train_job_do_not_wait_for_its_launcher(
    jobs: int, minimum: int, waits_for: int, to_come: int
) -> None:
    made = Group("default/g")
    for name in "pq":
        put(made, pod(name, "g", labels={str(REPLICATED_JOB): "node", str(JOBSET_JOBS): str(jobs)}))
    found = in_phase(made, GroupSpec("default/g", minimum))
    assert (found.min_member, found.to_come, found.asked) == (waits_for, to_come, minimum)


@pytest.mark.parametrize(
    ("on_node", "kept"),
    [
        pytest.param(True, ["ended"], id="a sibling runs"),
        pytest.param(False, [], id="none runs: it may be another gang of that name"),
    ],
)
def test_a_member_without_a_controller_that_has_ended_counts_beside_siblings_that_run(
    on_node: bool, kept: list[str]
) -> None:
    made = Group("default/g")
    put(made, pod("p", "g", node_name="n1" if on_node else ""))
    made.ended = {"ended": pod("ended", "g")}
    put(made, pod("q", "g"))
    assert list(made.ended) == kept
