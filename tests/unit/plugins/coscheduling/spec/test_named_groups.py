"""Names of groups: which a user may write, and which groups a list of names stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from extender.plugins.coscheduling.spec.field_errors import FieldError
from extender.plugins.coscheduling.spec.named_groups import (
    MAX_GROUPS,
    check_group_key,
    check_label_key,
    check_label_value,
    is_group_name,
    namespace_of,
    parse_group_list,
    parse_groups,
    peers,
)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("a", True),
        ("train-7.b_C", True),
        ("a" * 253, True),
        ("a" * 254, False),
        ("", False),
        ("-a", False),
        ("a.", False),
        ("a/b", False),
        ("\u00e4", False),
        ("a\n", False),
    ],
    ids=lambda value: ascii(str(value)[:12]),
)
def test_names(name: str, valid: bool) -> None:
    assert is_group_name(name) == valid


@pytest.mark.parametrize("key", ["a", "ns/a", "ns-1/A_b"])
def test_a_name_with_or_without_its_namespace(key: str) -> None:
    assert check_group_key(key) == key


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (check_group_key, "/a"),
        (check_group_key, "Ns/a"),
        (check_group_key, "n" * 64 + "/a"),
        (check_group_key, "ns/"),
        (check_group_key, "a/b/c"),
        (check_label_key, "a b"),
        (check_label_value, "x" * 64),
        (parse_group_list, "{}"),
        (parse_group_list, "[1]"),
    ],
)
def test_what_is_none_of_these(check: Callable[[str], object], text: str) -> None:
    with pytest.raises(FieldError, match="Invalid value: "):
        check(text)


def test_both_ways_to_write_a_list_and_each_name_counts_once() -> None:
    assert parse_groups(" b, ns/c ,b,, ") == ("b", "ns/c")
    assert parse_group_list('["b", "ns/c", "b"]') == ("b", "ns/c")


@pytest.mark.parametrize(
    ("names", "others"),
    [
        pytest.param(["c", "b"], ("ns/b", "ns/c"), id="of its own namespace, sorted"),
        pytest.param(["g", "ns/g"], (), id="itself"),
        pytest.param(["other/g"], ("other/g",), id="its name in another namespace"),
    ],
)
def test_peers(names: Sequence[str], others: tuple[str, ...]) -> None:
    assert peers(tuple(names), "ns/g") == others


def test_at_most_as_many_as_a_gang_set_holds_with_the_group_itself() -> None:
    names = tuple(f"g{number}" for number in range(MAX_GROUPS))
    assert len(peers(names, "ns/g0")) == MAX_GROUPS - 1
    with pytest.raises(FieldError, match="Too many"):
        peers(names, "ns/another")
    with pytest.raises(FieldError, match="Too many"):
        parse_groups(",".join((*names, "one-more")))


def test_the_namespace_of_a_key() -> None:
    assert namespace_of("ns/g") == "ns"
