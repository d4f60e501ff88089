"""A dump of a cluster with hostile objects in it is simulated: a gang and a pod beside them are bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

from tests.hostile import Hostile, objects
from tests.unit.simulation.conftest import World


class Dumped(World):
    """As `kubectl get -o yaml` writes it: with any character in a text."""

    def written(self, objects: dict[str, Any]) -> str:
        return yaml.dump(objects, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@settings(max_examples=12, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck))
@given(hostile=objects())
def test_beside_hostile_objects_a_pod_and_a_gang_are_bound(hostile: list[Hostile], folder: Path) -> None:
    world = Dumped(folder)
    for number in range(4):
        world.node(f"n{number}", cpu="64")
    world.objects += dumped(hostile)
    world.pod("single")
    world.pod_group("honest", 2)
    world.pod("honest-0", group="honest")
    world.pod("honest-1", group="honest")
    report = world.run(until=600.0)
    bound = {pod.name for pod in report.pods if pod.state == "Scheduled"}
    assert {"single", "honest-0", "honest-1"} <= bound


def dumped(hostile: list[Hostile]) -> list[dict[str, Any]]:
    """As `kubectl get` prints what an API server has let in; one of each name."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in hostile:
        name = each.document["metadata"]["name"]
        if each.readable and "priorityClassName" not in json.dumps(each.document):
            kind = {"apiVersion": each.resource.api_version, "kind": each.resource.kind}
            found.setdefault((str(each.resource), name), {**kind, **each.document})
    return list(found.values())
