"""Which pods the checks may expect to be preempted, by the configuration of a fault run; every configuration that is drawn can be read."""

from __future__ import annotations

from typing import Any

import pytest

from extender.config.load import read_extender_configuration
from extender.config.yaml_file import Document
from tests.e2e.fault_run.drawn_configuration import AS_SHIPPED, SECOND, DrawnConfiguration, draw_configuration
from tests.unit.e2e.test_fault_run_liveness import pod

LONE, MEMBER = pod("lone", 1, on="n"), pod("m", 1, "g", "n")
SINGLE, GANG = [pod("vip", 1)], [pod("a", 1, "vips"), pod("b", 1, "vips")]


@pytest.mark.parametrize(
    ("settings", "running", "waiting", "kept", "spared"),
    [
        pytest.param({}, MEMBER, GANG, True, False, id="as shipped any pod may go"),
        pytest.param({"gangVictims": "surplusOnly"}, MEMBER, SINGLE, False, True, id="no gang is broken"),
        pytest.param({"gangVictims": "surplusOnly"}, LONE, SINGLE, False, False, id="others may go"),
        pytest.param({"evictThrough": "eviction"}, LONE, GANG, True, True, id="a budget keeps an eviction off"),
        pytest.param({"evictThrough": "eviction"}, LONE, SINGLE, True, False, id="kube-scheduler deletes"),
        pytest.param({"evictThrough": "eviction"}, MEMBER, SINGLE, True, False, id="a member of a gang too"),
        pytest.param({"gangPreemption": False}, LONE, GANG, False, True, id="gangs never preempt"),
        pytest.param({"gangPreemption": False}, LONE, SINGLE, False, False, id="single pods do"),
    ],
)
def test_which_pods_are_spared(
    settings: dict[str, Any], running: dict[str, Any], waiting: list[dict[str, Any]], kept: bool, spared: bool
) -> None:
    assert DrawnConfiguration(settings).spares(running, waiting, lambda pod: kept) == spared


def test_every_drawn_configuration_is_a_configuration_that_is_taken() -> None:
    drawn = [draw_configuration(seed) for seed in range(100)]
    for configuration in (AS_SHIPPED, *drawn):
        read_extender_configuration(Document("extender.yaml", {**HEAD, **configuration.of_the_extender()}))
    assert len({str(configuration) for configuration in drawn}) > 30


def test_gangs_start_early_in_some_of_the_drawn_configurations_and_in_some_not() -> None:
    first = [draw_configuration(seed).of_the_extender()["profiles"][0]["pluginConfig"] for seed in range(20)]
    assert {config[0]["args"]["earlyStart"] for config in first} == {True, False}


def test_the_second_profile_is_kube_scheduler_s_too() -> None:
    config: dict[str, Any] = {"profiles": [{"schedulerName": "first", "pluginConfig": []}]}
    DrawnConfiguration(two_profiles=True).of_the_scheduler(config)
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["first", SECOND]


def test_a_configuration_is_drawn_again_by_its_seed() -> None:
    assert draw_configuration(7) == draw_configuration(7)


HEAD = {"apiVersion": "gang-extender.dev/v1alpha1", "kind": "ExtenderConfiguration"}
