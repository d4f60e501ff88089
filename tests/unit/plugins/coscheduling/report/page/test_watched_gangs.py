"""The list that the page follows is at any time the list that is made anew, and an update costs what has changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from extender.plugins.coscheduling.report.gang_observer import Seen
from extender.plugins.coscheduling.report.gang_status import GangSummary
from extender.plugins.coscheduling.report.page import watched_gangs
from extender.plugins.coscheduling.report.page.picture import Picture
from extender.plugins.coscheduling.report.page.watched_gangs import OTHERS_SECONDS, TURNS, WatchedGangs
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members

Make = Callable[..., World]
GANGS = 7
TOGETHER = {"g0": "default/g1", "g1": "default/g0"}
NEVER = datetime.min.replace(tzinfo=UTC)


class Page:
    """What a page has after all messages so far, put together as page.js does."""

    def __init__(self, kube: KubeScheduler) -> None:
        self.kube = kube
        self.picture = Picture(kube.plugin.report, lambda: True)
        self.gangs: dict[str, GangSummary] = {}
        self.places: dict[str, int] = {}

    def update(self) -> set[str]:
        """The keys of the gangs that were told of."""
        change = self.picture.update()
        for key in change.gone_gangs:
            del self.gangs[key]
        self.gangs.update((gang.key, gang) for gang in change.gangs)
        if change.places is not None:
            self.places = dict(change.places)
        return {gang.key for gang in change.gangs}

    def shown(self) -> dict[str, GangSummary]:
        return {key: replace(gang, place=self.places.get(key, 0), since=NEVER) for key, gang in self.gangs.items()}

    def anew(self) -> dict[str, GangSummary]:
        """Without since: the clock of these stories goes on, and the time of day does not."""
        return {gang.key: replace(gang, since=NEVER) for gang in self.kube.plugin.report.summaries()}


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node(f"n{number}", "4") for number in range(3)]))


@pytest.fixture
def page(kube: KubeScheduler) -> Iterator[Page]:
    page = Page(kube)
    yield page
    page.picture.close()


def act(kube: KubeScheduler, chance: random.Random) -> None:
    """One thing that users, kube-scheduler or time do."""
    name = f"g{chance.randrange(GANGS)}"
    mine = [pod for pod in kube.pods.values() if pod.name.startswith(f"{name}-")]
    match chance.randrange(6):
        case 0 if f"default/{name}" not in kube.groups:
            groups = {"groups": TOGETHER[name]} if name in TOGETHER else {}
            kube.apply(group(name, chance.randrange(1, 5), **groups))
        case 1 if f"default/{name}" in kube.groups and not mine:
            kube.remove(kube.groups[f"default/{name}"])
        case 2 if len(mine) < 6:
            prefix = f"{name}-{kube.world.clock.now}-{chance.random()}-"  # never a UID once more
            kube.create(*members(chance.randrange(1, 5), name, prefix, gated=chance.random() < 0.5))
        case 3 if mine:
            kube.delete(*mine[: chance.randrange(1, len(mine) + 1)])
        case 4:
            kube.run()
        case _:
            kube.world.clock.now += chance.choice((0.5, 4.0, 70.0))
            kube.plugin.tick()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("at_once", [pytest.param(50, id="all closely"), pytest.param(1, id="one of them closely")])
def test_after_any_history_the_page_shows_the_list_that_is_made_anew(
    kube: KubeScheduler, page: Page, seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_gangs, "AT_ONCE", at_once)
    chance = random.Random(seed)
    for _ in range(150):
        act(kube, chance)
        if chance.random() < 0.4:
            kube.world.clock.now += OTHERS_SECONDS
            for _ in range(1 if at_once > 1 else TURNS):
                page.update()
            assert page.shown() == page.anew()


def test_an_update_tells_of_the_gangs_that_changed_alone(kube: KubeScheduler, page: Page) -> None:
    for name in ("a", "b"):
        kube.apply(group(name, 2))
        kube.create(*members(1, name))
    assert page.update() == {"default/a", "default/b"}
    assert page.update() == set()
    kube.create(*members(2, "b")[1:])
    assert page.update() == {"default/b"}
    assert page.update() == set()


def test_a_gang_that_nothing_happened_to_is_not_looked_at(
    kube: KubeScheduler, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        kube.apply(group(f"a{number}", 2))
        kube.create(*members(1, f"a{number}"))
    page.update()
    looked: list[str] = []
    report, line_of = kube.plugin.report, kube.plugin.report.line_of

    def noted(each: Group, line: dict[str, int]) -> GangSummary:
        looked.append(each.key)
        return line_of(each, line)

    monkeypatch.setattr(report, "line_of", noted)
    kube.create(*members(2, "a0")[1:])  # the first in line, and stays so
    page.update()
    assert looked == ["default/a0"]


def test_a_gang_that_goes_is_told_of_and_another_of_its_name_is_new(kube: KubeScheduler, page: Page) -> None:
    kube.apply(group("a", 2))
    page.update()
    kube.remove(kube.groups["default/a"])
    assert page.picture.update().gone_gangs == ["default/a"]
    kube.apply(group("a", 3))
    page.gangs.clear()
    assert page.update() == {"default/a"}
    assert page.shown()["default/a"].min_member == 3


@pytest.mark.faults
def test_a_gang_at_which_something_raises_is_shown_as_set_aside_beside_the_others(
    kube: KubeScheduler, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        kube.apply(group(name, 2))
        kube.create(*members(1, name))
    observer = kube.plugin.observer
    see = observer.see

    def raises(each: Group) -> Seen:
        if each.key == "default/a":
            raise ValueError("a fault of ours")
        return see(each)

    monkeypatch.setattr(observer, "see", raises)
    page.update()
    page.update()
    phases = {key: gang.phase for key, gang in page.shown().items()}
    assert phases == {"default/a": "Quarantined", "default/b": "Gathering"}


def test_members_that_permit_holds_are_known_with_their_nodes(kube: KubeScheduler, page: Page) -> None:
    kube.apply(group("a", 3))
    kube.create(*members(3, "a"))
    kube.wake()
    kube.world.run_tasks()
    while len(kube.held()) < 2:
        kube.wake()
        kube.attempt(next(iter(kube.active)))
    watched = WatchedGangs(kube.plugin.report, page.picture.watch, kube.world.clock)
    nodes = watched.update().nodes
    assert nodes == set(watched.held["default/a"].values())
    kube.run()
    assert (watched.update().nodes, watched.held) == (nodes, {})
