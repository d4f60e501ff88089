"""What the judges may expect to go, by the configuration that a storm was given; and that every climate can be drawn and read."""

from __future__ import annotations

from typing import Any

import pytest

from extender.config.load import read_extender_configuration
from extender.config.yaml_file import Document
from tests.e2e.storm.climate import AS_SHIPPED, SECOND, Climate, climate_of
from tests.unit.e2e.test_storm_in_vain import pod

LONE, MEMBER = pod("lone", 1, on="n"), pod("m", 1, "g", "n")
SINGLE, GANG = [pod("vip", 1)], [pod("a", 1, "vips"), pod("b", 1, "vips")]


@pytest.mark.parametrize(
    ("settings", "running", "waiting", "kept", "spared"),
    [
        pytest.param({}, MEMBER, GANG, True, False, id="as shipped anybody may go"),
        pytest.param({"gangVictims": "surplusOnly"}, MEMBER, SINGLE, False, True, id="no gang is broken"),
        pytest.param({"gangVictims": "surplusOnly"}, LONE, SINGLE, False, False, id="others may go"),
        pytest.param({"evictThrough": "eviction"}, LONE, GANG, True, True, id="a budget keeps an eviction off"),
        pytest.param({"evictThrough": "eviction"}, LONE, SINGLE, True, False, id="kube-scheduler deletes"),
        pytest.param({"evictThrough": "eviction"}, MEMBER, SINGLE, True, False, id="a member of a gang too"),
        pytest.param({"gangPreemption": False}, LONE, GANG, False, True, id="gangs evict nobody"),
        pytest.param({"gangPreemption": False}, LONE, SINGLE, False, False, id="single pods do"),
    ],
)
def test_who_is_spared(
    settings: dict[str, Any], running: dict[str, Any], waiting: list[dict[str, Any]], kept: bool, spared: bool
) -> None:
    assert Climate(settings).spares(running, waiting, lambda pod: kept) == spared


def test_every_climate_is_a_configuration_that_is_taken() -> None:
    drawn = [climate_of(seed) for seed in range(100)]
    for climate in (AS_SHIPPED, *drawn):
        read_extender_configuration(Document("extender.yaml", {**HEAD, **climate.of_the_extender()}))
    assert len({str(climate) for climate in drawn}) > 30


def test_the_second_profile_is_kube_scheduler_s_too() -> None:
    config: dict[str, Any] = {"profiles": [{"schedulerName": "first", "pluginConfig": []}]}
    Climate(two_profiles=True).of_the_scheduler(config)
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["first", SECOND]


def test_a_climate_is_drawn_again_by_its_seed() -> None:
    assert climate_of(7) == climate_of(7)


HEAD = {"apiVersion": "gang-extender.dev/v1alpha1", "kind": "ExtenderConfiguration"}
