"""The running extender asks what it may do, once, beside everything else, and warns of what is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError
from extender.client.interface import ResourceType
from extender.config.types import ExtenderConfiguration
from extender.scheduler.rights import ASK_AGAIN_SECONDS, OwnRights


class Guarded(EmbeddedAPI):
    """without: rights that are missing, as in `patch pods/status`. down: the API server does not answer."""

    def __init__(self, *without: str) -> None:
        super().__init__()
        self.without, self.down, self.asked = set(without), False, 0

    def may(self, verb: str, resource: ResourceType[Any], subresource: str = "", **of: str) -> bool:
        self.asked += 1
        assert of["user"] == ""
        if self.down:
            raise ApiError("no answer")
        return f"{verb} {resource.plural}{'/' * bool(subresource)}{subresource}" not in self.without


class World:
    def __init__(self, *without: str, wake_by: str = "auto") -> None:
        self.now, self.api = 0.0, Guarded(*without)
        self.rights = OwnRights(self.api, ExtenderConfiguration(wake_by=wake_by), self.run, lambda: self.now)

    def run(self, work: Callable[[], None]) -> None:
        work()

    def tick(self, later: float = 0.0) -> list[str]:
        self.now += later
        self.rights.tick()
        return [f"{each.code} {each.field}" for each in self.rights.findings()]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "extender")
    return caplog


def test_all_rights_are_there_and_nothing_is_asked_again(logged: pytest.LogCaptureFixture) -> None:
    world = World()
    assert world.tick() == []
    asked = world.api.asked
    assert world.tick(later=10 * ASK_AGAIN_SECONDS) == []
    assert (world.api.asked, logged.messages) == (asked, [])


def test_a_missing_right_is_warned_of_once_until_it_is_there(logged: pytest.LogCaptureFixture) -> None:
    world = World("patch pods/status")
    assert world.tick() == ["MissingRight pods/status"]
    assert world.tick(later=ASK_AGAIN_SECONDS) == ["MissingRight pods/status"]
    assert [record.levelname for record in logged.records] == ["WARNING"]
    assert logged.messages[0].startswith("right is missing verbs=patch resource=pods/status lost=members that kube")
    world.api.without.clear()
    assert world.tick(later=ASK_AGAIN_SECONDS) == []
    assert logged.messages[1:] == ["right is there now verbs=patch resource=pods/status"]


@pytest.mark.parametrize(("wake_by", "said"), [("annotation", ["MissingRight pods"]), ("auto", []), ("status", [])])
def test_to_annotate_pods_is_missed_where_that_is_what_wakes_them(wake_by: str, said: list[str]) -> None:
    assert World("patch pods", wake_by=wake_by).tick() == said


def test_what_evictions_need_is_left_to_the_evictor() -> None:
    assert World("delete pods", "create pods/eviction").tick() == []


def test_an_api_server_that_does_not_answer_is_asked_again(logged: pytest.LogCaptureFixture) -> None:
    world = World("create pods/binding")
    world.api.down = True
    assert world.tick() == []
    assert logged.messages == ["rights could not be asked for error=no answer"]
    world.api.down = False
    assert world.tick() == []
    assert world.tick(later=ASK_AGAIN_SECONDS) == ["MissingRight pods/binding"]


def test_a_tick_does_not_wait_for_the_answers() -> None:
    begun: list[Callable[[], None]] = []
    world = World()
    rights = OwnRights(world.api, ExtenderConfiguration(), begun.append, lambda: 0.0)
    rights.tick()
    rights.tick()
    assert (world.api.asked, len(begun)) == (0, 1)
