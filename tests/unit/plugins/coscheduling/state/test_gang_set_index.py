"""The sets that follow from links, in any order of changes, and what happens at the most groups that a set may have."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS, Keys
from extender.plugins.coscheduling.state.gang_set_index import GangSetIndex
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, members

Make = Callable[..., World]

KEYS = tuple(f"{namespace}/{name}" for namespace in ("x", "y") for name in "abcd")
Change = tuple[str, Keys]
"""A group, and those that it names from now on."""


@st.composite
def changes(draw: st.DrawFn) -> list[Change]:
    named = st.sets(st.sampled_from(KEYS), max_size=3)
    drawn = draw(st.lists(st.tuples(st.sampled_from(KEYS), named), max_size=25))
    return [(key, tuple(sorted(others - {key}))) for key, others in drawn]


def counted(named: dict[str, Keys], key: str) -> Keys:
    """The set from scratch, by the rule as the documentation has it."""
    found = {key}
    while True:
        new = {
            other
            for each in found
            for other in KEYS
            if (each in named.get(other, ()) and other in named.get(each, ()))
            or (each[0] == other[0] and (each in named.get(other, ()) or other in named.get(each, ())))
        }
        if new <= found:
            return tuple(sorted(found))
        found |= new


@given(changes())
def test_the_sets_are_those_of_a_count_from_scratch_after_every_change(drawn: list[Change]) -> None:
    groups, named = GangSetIndex(), dict[str, Keys]()
    for key, others in drawn:
        before = {groups.gang_set(each) for each in KEYS}
        for gang_set in before:
            groups.mark_whole(gang_set)
        assert groups.name(key, others) == (named.get(key, ()) != others)
        named[key] = others
        after = {each: counted(named, each) for each in KEYS}
        assert {each: groups.gang_set(each) for each in KEYS} == after
        assert [groups.was_whole(gang_set) for gang_set in after.values() if len(gang_set) > 1] == [
            gang_set in before for gang_set in after.values() if len(gang_set) > 1
        ], "a set of the same groups has been whole, and no other has"
    for key in KEYS:
        groups.name(key, ())
    assert not groups.named
    left = (groups._peers, groups.sets, groups._kept_out, groups._refused, groups._tried_again)
    assert not any(left), "nothing is left over"


@given(changes(), st.integers(2, 4))
def test_no_set_is_too_large_and_one_that_fits_again_is_taken_in(drawn: list[Change], most: int) -> None:
    groups, named = GangSetIndex(most), dict[str, Keys]()
    for key, others in drawn:
        before = {each: groups.gang_set(each) for each in KEYS if groups.refused(each)}
        invalid = set(before)
        groups.name(key, others)
        named[key] = others
        refused = {each for each in KEYS if groups.refused(each)}
        assert refused <= invalid | {key}, "no group but the one whose names have changed"
        assert all(groups.refused(each) > most for each in refused)
        check(groups, named, most)
        for each in groups.fitting():
            groups.try_again(each)
        check(groups, named, most)
        for each in (each for each in KEYS if groups.refused(each)):
            alone = {**accepted(groups, named), each: named[each]}
            assert len(counted(alone, each)) > most, f"{each} would fit, and is not tried again"


def accepted(groups: GangSetIndex, named: dict[str, Keys]) -> dict[str, Keys]:
    return {key: others for key, others in named.items() if not groups.refused(key)}


def check(groups: GangSetIndex, named: dict[str, Keys], most: int) -> None:
    for key in KEYS:
        assert groups.gang_set(key) == counted(accepted(groups, named), key)
        assert len(groups.gang_set(key)) <= most


def star(most: int) -> Iterator[Change]:
    return ((f"x/w{number:03}", ("x/hub",)) for number in range(1, most))


def chain(most: int) -> Iterator[Change]:
    return ((f"x/g{number:03}", (f"x/g{number - 1:03}",)) for number in range(1, most))


def clique(most: int) -> Iterator[Change]:
    """Of groups that name all that were there before them, as far as a list goes."""
    for number in range(1, most):
        yield f"x/c{number:03}", tuple(f"x/c{other:03}" for other in range(max(0, number - MAX_GROUPS + 1), number))


@pytest.mark.parametrize("shape", [star, chain, clique])
def test_the_link_that_would_make_a_set_too_large_is_refused_and_those_in_it_stay(
    shape: Callable[[int], Iterator[Change]],
) -> None:
    groups = GangSetIndex()
    drawn = list(shape(MAX_GROUPS + 1))
    for key, others in drawn:
        groups.name(key, others)
    *_, (last, _) = drawn
    assert [key for key, _ in drawn if groups.refused(key)] == [last]
    assert groups.refused(last) == MAX_GROUPS + 1
    assert groups.gang_set(last) == (last,)
    assert len(groups.gang_set(drawn[0][0])) == MAX_GROUPS


def test_two_large_sets_are_not_joined_and_the_group_that_tries_is_in_neither() -> None:
    groups = GangSetIndex(4)
    for key, other in (("x/a", "x/b"), ("x/b", "x/c"), ("x/d", "x/e")):
        groups.name(key, (other,))
    groups.name("x/new", ("x/c", "x/e"))
    assert groups.refused("x/new") == 6
    assert [groups.gang_set(key) for key in ("x/a", "x/d", "x/new")] == [
        ("x/a", "x/b", "x/c"),
        ("x/d", "x/e"),
        ("x/new",),
    ]


def test_a_group_of_the_set_that_names_one_too_many_is_refused_itself_and_leaves_those_that_it_alone_named() -> None:
    groups = GangSetIndex(3)
    groups.name("x/a", ("x/b", "x/c"))
    groups.name("x/c", ("x/d",))
    assert groups.refused("x/c") == 4
    assert groups.gang_set("x/b") == ("x/a", "x/b", "x/c")
    groups.name("x/a", ("x/b", "x/c", "x/e"))
    assert groups.refused("x/a") == 4
    assert groups.gang_set("x/b") == ("x/b",)


def test_other_namespaces_that_name_a_group_keep_nothing_out_of_its_set() -> None:
    groups = GangSetIndex(3)
    for number in range(100):
        groups.name(f"y/{number}", ("x/a",))
    groups.name("x/a", ("x/b", "x/c"))
    assert groups.gang_set("x/a") == ("x/a", "x/b", "x/c")
    assert groups.unanswered("y/7") == "x/a"


def test_by_consent_the_one_that_answers_is_refused_where_the_set_is_full() -> None:
    groups = GangSetIndex(3)
    groups.name("x/a", ("x/b", "x/c", "y/late"))
    groups.name("y/late", ("x/a",))
    assert groups.refused("y/late") == 4
    assert groups.gang_set("x/a") == ("x/a", "x/b", "x/c")
    assert groups.unanswered("x/a") == "y/late"
    groups.name("x/a", ("x/b", "y/late"))
    assert groups.fitting() == ["y/late"]
    assert groups.try_again("y/late")
    assert groups.gang_set("y/late") == ("x/a", "x/b", "y/late")


@pytest.mark.parametrize(
    ("before", "refused", "then"),
    [
        pytest.param(
            {"x/a": ("x/b",), "x/b": ("x/c",), "x/new": ("x/a",)},
            "x/new",
            ("x/b", ()),
            id="a group that it names lost one",
        ),
        pytest.param(
            {"x/a": ("x/new",), "x/b": ("x/a",), "x/new": ("x/z",)}, "x/new", ("x/b", ()), id="its own set lost one"
        ),
        pytest.param(
            {"x/a": ("x/b", "y/new"), "x/b": ("x/c",), "y/new": ("x/a",)},
            "y/new",
            ("x/b", ()),
            id="one in another namespace, with which it agrees, lost one",
        ),
        pytest.param(
            {"x/a": ("x/b", "x/c", "y/new"), "y/new": ("x/a", "y/b")},
            "y/new",
            ("x/a", ("x/b", "x/c")),
            id="one in another namespace does not agree any more, and its set is as large as before",
        ),
    ],
)
def test_a_refused_group_is_taken_in_once(before: dict[str, Keys], refused: str, then: Change) -> None:
    groups = GangSetIndex(3)
    for key, others in before.items():
        groups.name(key, others)
    assert [key for key in before if groups.refused(key)] == [refused]
    groups.name(*then)
    assert groups.fitting() == [refused]
    assert groups.fitting() == [refused], "until it is taken in: it may be set aside"
    assert groups.try_again(refused)


def test_a_group_that_is_refused_holds_on_to_no_group_that_names_it_no_more() -> None:
    groups = GangSetIndex(3)
    groups.name("x/a", ("x/b", "x/c"))
    groups.name("x/b", ("x/a", "x/d"))
    assert groups.refused("x/b") == 4
    groups.name("x/a", ("x/c",))
    assert groups.gang_set("x/b") == ("x/b",)


def test_the_first_that_was_refused_is_taken_in_first() -> None:
    groups = GangSetIndex(3)
    for name in ("b", "c", "z", "d"):
        groups.name(f"x/{name}", ("x/hub",))
    assert not groups.fitting()
    groups.name("x/b", ())
    assert groups.fitting() == ["x/z", "x/d"]
    assert [groups.try_again(key) for key in ("x/z", "x/d")] == [True, False]
    assert groups.gang_set("x/z") == ("x/c", "x/hub", "x/z")
    assert not groups.fitting(), "and is not tried again before something has changed"
    assert not groups.fitting()


def test_the_one_group_too_many_is_invalid_and_the_others_start_without_it(world: Make) -> None:
    kube = KubeScheduler(world([node("n1", "200")]))
    kube.apply(group("hub", 1))
    for number in range(MAX_GROUPS):
        kube.apply(group(f"w{number:02}", 1, groups="hub"))
        kube.create(*members(1, f"w{number:02}"))
    kube.run()
    assert kube.running() == set()
    text = (
        "PodGroup default/w63 is invalid: annotation gang-extender.dev/groups: Too many: 65: "
        "must have at most 64 groups that start together"
    )
    assert (kube.told["w630"], kube.reason("default/w63")) == (text, "InvalidPodGroup")
    kube.create(*members(1, "hub"))
    kube.run()
    assert [len(start) for start in kube.starts] == [MAX_GROUPS]
    assert kube.running("w63") == set()
    kube.apply(group("w00", 1))
    kube.plugin.tick()
    kube.run()
    assert kube.running("w63") == {"w630"}
    assert list(broken(kube)) == []
