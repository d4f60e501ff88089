"""What a member notes of its way to its node."""

from __future__ import annotations

import pytest

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.state.member import Member
from tests.unit.plugins.coscheduling.conftest import pod


def member(node_name: str = "") -> Member:
    return Member(PodInfo(pod("p", node_name=node_name)), GroupRef("default/g"))


@pytest.mark.parametrize(
    ("shown", "held", "where"),
    [
        pytest.param("", "", "", id="nowhere: it waits"),
        pytest.param("", "n1", "n1", id="where it is held"),
        pytest.param("n2", "n1", "n2", id="where the API server shows it, whatever was planned"),
    ],
)
def test_where_a_member_is(shown: str, held: str, where: str) -> None:
    found = member(shown)
    found.node = held
    assert (found.node_name, found.pod.name) == (where, "p")


@pytest.mark.parametrize(
    ("nomination", "without", "nominated", "doubted"),
    [
        pytest.param(None, False, False, None, id="it was not sent"),
        pytest.param("n1", False, True, "", id="it was sent to a node"),
        pytest.param("", False, True, "", id="its nomination may be out of date"),
        pytest.param("n1", True, False, "", id="it was ungated alone: kube-scheduler knows no node"),
    ],
)
def test_what_kube_scheduler_knows_of_where_a_member_is_to_go(
    nomination: str | None, without: bool, nominated: bool, doubted: str | None
) -> None:
    found = member()
    found.nomination, found.ungated_without_nomination = nomination, without
    assert found.is_nominated is nominated
    found.doubt_nomination()
    assert (found.nomination, found.ungated_without_nomination) == (doubted, without)
    found.forget_dispatch()
    assert (found.nomination, found.ungated_without_nomination, found.is_nominated) == (None, False, False)
