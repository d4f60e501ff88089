"""What happened to a gang, in order: the phases that it came through and what was decided of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.dependencies import Verdict
from extender.plugins.coscheduling.quarantine import Quarantine
from extender.plugins.coscheduling.report.gang_story import MAX_GANGS, MAX_MESSAGE, MAX_NOTES, GangStories
from extender.plugins.coscheduling.scheduling.phases import Phase
from tests.unit.plugins.coscheduling.conftest import FakeClock, World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members

Make = Callable[..., World]


class Told:
    """Fulfils Verdicts."""

    def __init__(self) -> None:
        self.decided_of: list[str] = []
        self.forgotten: list[str] = []

    def decided(self, pod_group: object, key: str, verdict: Verdict, member: object = None) -> None:
        self.decided_of.append(key)

    def forget(self, key: str) -> None:
        self.forgotten.append(key)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def stories(told: Told) -> GangStories:
    return GangStories(told, Quarantine(threading.RLock(), FakeClock()), FakeClock())


def says(stories: GangStories, key: str = "default/g") -> list[str]:
    return [note.phase or f"{note.reason}: {note.message}" for note in stories.of(key)]


def test_the_page_of_a_gang_tells_its_story(world: Make) -> None:
    kube = KubeScheduler(world([node("n1", "4")]))
    kube.apply(group(minimum=3))
    kube.create(*members(2))
    kube.run()
    kube.plugin.tick()
    kube.create(*members(3)[2:])
    kube.run()
    kube.plugin.tick()
    status = kube.plugin.report.status("default/g")
    assert status is not None
    story = [entry.phase or entry.reason for entry in status.story]
    assert story == ["Gathering", "GangScheduled", "Bound"]
    assert [entry.at for entry in status.story] == sorted(entry.at for entry in status.story)


def test_what_is_decided_is_noted_and_handed_on(stories: GangStories, told: Told) -> None:
    stories.decided(None, "default/g", Verdict(False, "GangRejected", "no room"))
    stories.forget("default/g")
    assert says(stories) == ["GangRejected: no room"]
    assert (told.decided_of, told.forgotten) == (["default/g"], ["default/g"])


def test_the_same_again_is_no_news_and_neither_is_a_pair_of_two_in_turn(stories: GangStories) -> None:
    for _ in range(5):
        stories.came_into("default/g", Phase.DENIED)
        stories.decided(None, "default/g", Verdict(False, "GangRejected", "no room"))
    assert says(stories) == ["Denied", "GangRejected: no room"]


def test_another_group_of_that_name_has_a_story_of_its_own(stories: GangStories) -> None:
    stories.came_into("default/g", Phase.DENIED)
    stories.dropped("default/g")
    assert says(stories) == []


def test_what_is_remembered_is_bounded(stories: GangStories) -> None:
    for number in range(MAX_NOTES + 5):
        stories.decided(None, "default/g", Verdict(False, f"Reason{number}", "x" * (MAX_MESSAGE + 1)))
    notes = stories.of("default/g")
    assert (len(notes), len(notes[0].message), notes[0].reason) == (MAX_NOTES, MAX_MESSAGE, "Reason5")
    for number in range(MAX_GANGS):
        stories.came_into(f"default/g{number}", Phase.DENIED)
    assert says(stories) == []
    assert says(stories, "default/g0") == ["Denied"]
