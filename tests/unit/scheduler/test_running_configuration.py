"""A whole scheduler says what it runs with, and what it sees to be wrong: in the log, to the probe, in a metric, on a page."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from prometheus_client import generate_latest

from extender import metrics
from extender.api import codec
from extender.api.extenderv1 import ExtenderArgs
from extender.config.types import ExtenderConfiguration, NamespacedName
from extender.scheduler.interface import CONFIGURATION, Check
from extender.scheduler.running_configuration import ConfigurationPage
from tests.objects import make_pod
from tests.unit.scheduler.conftest import Bench

SCRAPED = b'gang_extender_configuration_findings{code="NotNodeCacheCapable",severity="error"} 1.0'


@pytest.fixture
def started(caplog: pytest.LogCaptureFixture) -> Iterator[Bench]:
    caplog.set_level(logging.INFO, "extender")
    bench = Bench(ExtenderConfiguration(scheduler_names=("gangs",), max_held_binds=7))
    yield bench
    bench.stop()


def check(bench: Bench) -> Check:
    (only,) = (each for each in bench.scheduler.readiness() if each.name == "configuration")
    return only


def page(bench: Bench) -> ConfigurationPage:
    """As the doctor decodes it."""
    return codec.decode(codec.encode(bench.scheduler.pages()[CONFIGURATION]()), ConfigurationPage)


def with_whole_nodes() -> ExtenderArgs:
    return codec.convert({"Pod": make_pod().name("a").json(), "Nodes": {"items": []}}, ExtenderArgs)


def test_the_configuration_in_effect_is_one_line_of_the_log(started: Bench, caplog: pytest.LogCaptureFixture) -> None:
    said_at_the_start = [record.getMessage() for record in caplog.get_records("setup")]
    (line,) = (each for each in said_at_the_start if each.startswith("configuration in effect configuration="))
    said = json.loads(line.partition("=")[2])
    assert (said["schedulerNames"], said["maxHeldBinds"], said["gangVictims"]) == (["gangs"], 7, "wholeOrSurplus")


def test_nothing_is_wrong(started: Bench) -> None:
    assert check(started) == Check("configuration", True)
    assert page(started).findings == ()
    assert b"gang_extender_configuration_findings{" not in generate_latest(metrics.REGISTRY)


def test_what_is_seen_is_said_everywhere_and_the_extender_stays_ready(started: Bench) -> None:
    assert "nodeCacheCapable" in started.scheduler.filter(with_whole_nodes()).error
    seen = check(started)
    assert seen.ok
    assert "kube-scheduler sends whole nodes in place of names (filter): every pod waits" in seen.reason
    (finding,) = page(started).findings
    assert (finding.code, finding.field) == ("NotNodeCacheCapable", "extenders[].nodeCacheCapable")
    assert SCRAPED in generate_latest(metrics.REGISTRY)


def test_the_page_is_there_before_the_cluster_has_been_seen() -> None:
    """What is wrong may be why it is never seen."""
    bench = Bench(ExtenderConfiguration(leader_lease=NamespacedName("kube-system", "gangs")))
    try:
        assert page(bench).configuration["leaderLease"] == "kube-system/gangs"
    finally:
        bench.stop()
