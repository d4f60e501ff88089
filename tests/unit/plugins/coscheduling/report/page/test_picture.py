"""Messages of the page: the whole, what has changed, and what of it a user of one namespace is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from extender.api import codec
from extender.plugins.coscheduling.report.page.picture import Change, Picture
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4")]))


@pytest.fixture
def picture(kube: KubeScheduler) -> Iterator[Picture]:
    made = Picture(kube.plugin.report, lambda: kube.world.leading)
    yield made
    made.close()


def test_the_first_update_is_all_there_is_and_the_next_says_nothing(kube: KubeScheduler, picture: Picture) -> None:
    kube.apply(group("a", 2))
    kube.create(*members(1, "a"))
    first = picture.update()
    assert [row.name for row in first.nodes] == ["n1"]
    assert [gang.key for gang in first.gangs] == ["default/a"]
    assert (first.places, first.in_line) == ({"default/a": 1}, 1)
    assert picture.update().says_nothing


def test_the_whole_is_what_all_updates_have_told(kube: KubeScheduler, picture: Picture) -> None:
    kube.apply(group("a", 2))
    picture.update()
    kube.create(*members(1, "a"))
    picture.update()
    whole = picture.whole()
    assert whole.whole
    assert [gang.members["waiting"] for gang in whole.gangs] == [1]
    assert (list(whole.places or {}), whole.resources) == (["default/a"], ("cpu", "memory"))


def test_a_replica_that_leads_no_more_says_so_once(kube: KubeScheduler, picture: Picture) -> None:
    assert picture.update().standby is None
    kube.world.leading = False
    assert picture.update().standby is True
    assert picture.update().says_nothing


def test_places_of_a_plan_come_with_the_nodes_that_they_are_on(kube: KubeScheduler, picture: Picture) -> None:
    picture.update()
    kube.apply(group("a", 2))
    kube.create(*members(2, "a", gated=True))
    kube.world.run_tasks()
    [row] = picture.update().nodes
    assert (row.name, row.promised[0]) == ("n1", 2000)


def test_places_and_goings_of_other_namespaces_are_not_told() -> None:
    change = Change(gone_gangs=["a/x", "ab/y", "b/z"], places={"a/x": 2, "b/z": 1}, in_line=2, levels=(), resources=())
    seen = change.of_namespace("a")
    assert (seen.gone_gangs, seen.places, seen.in_line) == (["a/x"], {"a/x": 2}, 2)
    assert seen.levels is None


def test_nodes_are_not_told_to_a_user_of_a_namespace(picture: Picture) -> None:
    seen = picture.update().of_namespace("default")
    assert (seen.nodes, seen.levels, seen.resources) == ((), None, None)


@pytest.mark.parametrize(
    ("change", "nothing"),
    [
        pytest.param(Change(), True, id="empty"),
        pytest.param(Change(nodes=[], gangs=[], gone_gangs=[]), True, id="empty lists"),
        pytest.param(Change(gone_gangs=["b/z"]).of_namespace("a"), True, id="only of others"),
        pytest.param(Change(places={}), False, id="the line is empty now"),
        pytest.param(Change(standby=False), False, id="it leads"),
        pytest.param(Change(whole=True), False, id="a whole that is empty"),
    ],
)
def test_what_says_nothing(change: Change, nothing: bool) -> None:
    assert change.says_nothing is nothing


def test_what_is_as_before_takes_no_room_in_a_message() -> None:
    assert msgspec.json.decode(codec.encode(Change(gone_gangs=["a/x"]))).keys() <= {"goneGangs", "nodes", "gangs"}
