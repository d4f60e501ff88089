"""Minima by role: how they are written, and which role a pod has."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.field_errors import FieldError
from extender.plugins.coscheduling.spec.roles import MAX_ROLES, ROLE_LABEL, Roles, parse_minima
from tests.objects import make_pod


def test_roles_are_kept_in_the_order_in_which_they_are_written() -> None:
    assert parse_minima("worker = 3,master=1") == (("worker", 3), ("master", 1))
    assert Roles(parse_minima("worker=3,master=1")).total == 4


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("worker", "must be role=minimum", id="no minimum"),
        pytest.param("=3", "must be role=minimum", id="no role"),
        pytest.param("worker=", "must be role=minimum", id="an empty minimum"),
        pytest.param("a=1,a=1", "Duplicate value: 'a'", id="twice"),
        pytest.param("a=2147483647,b=1", "the sum of the minima is too large", id="a sum beyond int32"),
        pytest.param(",".join(f"r{i}=1" for i in range(MAX_ROLES + 1)), "at most 64 roles", id="one role too many"),
    ],
)
def test_what_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(FieldError, match=wrong):
        parse_minima(text)


def test_as_many_roles_as_there_may_be() -> None:
    assert len(parse_minima(",".join(f"r{i}=1" for i in range(MAX_ROLES)))) == MAX_ROLES


def test_the_role_of_a_pod_is_the_value_of_its_label() -> None:
    pod = make_pod().label(ROLE_LABEL, "worker").label("example.com/kind", "ps").obj()
    assert (Roles().role_of(pod), Roles(label="example.com/kind").role_of(pod), Roles(label="no").role_of(pod)) == (
        "worker",
        "ps",
        "",
    )
