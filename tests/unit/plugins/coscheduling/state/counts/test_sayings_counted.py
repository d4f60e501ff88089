"""What members say of their group is counted, and only what no other says, or no other says any more, makes the group ask anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.spec.keys import ASKING, MATCH_POLICY, ROLES
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.source import VOLCANO_OBJECT
from extender.plugins.coscheduling.state.counts.sayings import NOTHING, Sayer, Sayings, Wish, said_of, wish_of
from tests.unit.plugins.coscheduling.conftest import pod

OURS = GroupRef("default/g")
BY_LABELS = GroupRef("default/g", lightweight=True, min_available="2")
VOLCANO = GroupRef("default/g", source=VOLCANO_OBJECT)
KIND = VOLCANO_OBJECT.kind
CREATED = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
KNOWN = GroupSpec("default/g", 2, created=CREATED)


def made(created: datetime | None = None, **annotations: str) -> corev1.Pod:
    """annotations: roles, other."""
    names = {"roles": str(ROLES), "policy": str(MATCH_POLICY), "other": "example.com/other"}
    bare, found = pod("p"), {names[key]: text for key, text in annotations.items()}
    return structs.replace(bare, metadata=structs.replace(bare.metadata, annotations=found, creation_timestamp=created))


def asked(roles: str) -> tuple[str, ...]:
    return tuple(roles if key is ROLES else "" for key in ASKING)


@pytest.mark.parametrize(
    ("sayer", "wish"),
    [
        pytest.param((made(), OURS), None, id="nothing but its group"),
        pytest.param((made(other="x"), OURS), None, id="an annotation that asks for nothing"),
        pytest.param((made(roles=""), OURS), None, id="an empty one"),
        pytest.param((made(roles="a=1"), OURS), Wish("", asked("a=1")), id="roles"),
        pytest.param((made(), VOLCANO), Wish(KIND, ()), id="another system's object"),
        pytest.param((made(roles=""), VOLCANO), Wish(KIND, ()), id="that, with an empty annotation"),
        pytest.param((made(roles="a=1"), VOLCANO), Wish(KIND, asked("a=1")), id="that, and roles"),
        pytest.param(NOTHING, None, id="it is no member"),
    ],
)
def test_what_a_member_wishes(sayer: Sayer, wish: Wish | None) -> None:
    assert wish_of(*sayer) == wish


@pytest.mark.parametrize(
    ("sayer", "says"),
    [
        pytest.param((made(), BY_LABELS), (BY_LABELS, ()), id="its labels alone"),
        pytest.param((made(roles="a=1"), BY_LABELS), (BY_LABELS, asked("a=1")), id="its labels, and roles"),
        pytest.param((made(roles="a=1"), OURS), None, id="its group has an object"),
        pytest.param(NOTHING, None, id="it is no member"),
    ],
)
def test_what_a_member_says_of_a_group_without_an_object(sayer: Sayer, says: object) -> None:
    assert said_of(*sayer) == says


ONE, OTHER = (made(roles="a=1"), OURS), (made(roles="b=1"), OURS)
WISH, ANOTHER = Wish("", asked("a=1")), Wish("", asked("b=1"))


def test_the_first_and_the_last_that_wish_something_make_their_group_ask_anew() -> None:
    sayings = Sayings()
    assert sayings.follow(NOTHING, ONE, None), "the first"
    assert not sayings.follow(NOTHING, ONE, None), "one more"
    assert sayings.wishes == {WISH: 2}
    assert not sayings.follow(ONE, ONE, None), "it says the same still"
    assert sayings.wishes == {WISH: 2}
    assert sayings.follow(ONE, OTHER, None), "the first that wishes something else"
    assert sayings.wishes == {WISH: 1, ANOTHER: 1}
    assert sayings.follow(OTHER, ONE, None), "the last that did"
    assert not sayings.follow(ONE, NOTHING, None), "another says so still"
    assert sayings.follow(ONE, NOTHING, None), "the last"
    assert sayings == Sayings(Counter(), Counter())


def test_a_member_without_a_wish_makes_no_group_ask_anew() -> None:
    sayings = Sayings()
    assert not sayings.follow(NOTHING, (made(), OURS), None)
    assert not sayings.follow((made(), OURS), NOTHING, None)
    assert sayings.follow((made(), OURS), ONE, None)
    assert sayings == Sayings(Counter({WISH: 1}))


@pytest.mark.parametrize(
    ("known", "created", "anew"),
    [
        pytest.param(KNOWN, CREATED, False, id="as old as the group"),
        pytest.param(KNOWN, CREATED.replace(second=9), False, id="younger"),
        pytest.param(KNOWN, CREATED.replace(second=1), True, id="older: so is the group"),
        pytest.param(KNOWN, None, False, id="of no age"),
        pytest.param(replace(KNOWN, created=None), CREATED, True, id="the first with an age"),
        pytest.param(replace(KNOWN, created=None), None, False, id="none has an age"),
        pytest.param(None, CREATED, True, id="what the group asks for is not known yet"),
    ],
)
def test_one_more_that_says_the_same_is_news_by_its_age_alone(
    known: GroupSpec | None, created: datetime | None, anew: bool
) -> None:
    sayings = Sayings()
    sayings.follow(NOTHING, (made(), BY_LABELS), None)
    assert sayings.follow(NOTHING, (made(created), BY_LABELS), known) is anew
    assert sayings.said == {said_of(made(), BY_LABELS): 2}


def test_what_labels_say_is_news_with_each_member_that_changes_or_goes() -> None:
    """The group's age is that of its oldest member, which may be this one."""
    sayings = Sayings()
    first, second = (made(), BY_LABELS), (made(), GroupRef("default/g", lightweight=True, min_available="3"))
    assert sayings.follow(NOTHING, first, KNOWN)
    assert not sayings.follow(NOTHING, first, KNOWN)
    assert sayings.follow(first, second, KNOWN)
    assert sayings.said == {said_of(*first): 1, said_of(*second): 1}
    assert sayings.follow(second, first, KNOWN), "also to what another says: what it said before may count no more"
    assert sayings.follow(first, NOTHING, KNOWN)
    assert sayings.said == {said_of(*first): 1}
    assert sayings.follow(first, NOTHING, KNOWN)
    assert sayings.said == {}


def test_all_that_was_said_is_forgotten_at_once() -> None:
    sayings = Sayings()
    sayings.follow(NOTHING, (made(roles="a=1"), BY_LABELS), None)
    assert (len(sayings.wishes), len(sayings.said)) == (1, 1)
    sayings.clear()
    assert sayings == Sayings()
