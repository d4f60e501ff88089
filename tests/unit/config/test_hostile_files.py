"""Whatever stands in a file, it is read or refused in words; it never ends in a traceback."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.config.kube_scheduler import load_kube_scheduler_configuration
from extender.config.load import load_extender_configuration
from extender.config.yaml_file import ConfigurationError

AFFINITY = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}], "matchFields": []}
PROFILE: dict[str, Any] = {
    "schedulerName": "a",
    "plugins": {"multiPoint": {"enabled": [{"name": "NodeName", "weight": 1}], "disabled": [{"name": "*"}]}},
    "pluginConfig": [
        {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 1, "podGroupLabels": ["a"]}},
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "LeastAllocated", "resources": []}}},
        {"name": "NodeAffinity", "args": {"addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [AFFINITY]}}}},
        {"name": "PodTopologySpread", "args": {"defaultConstraints": [{"maxSkew": 1}], "defaultingType": "List"}},
        {"name": "Mine", "args": {"a": 1}},
    ],
}  # fmt: skip
OURS = {
    "apiVersion": "gang-extender.dev/v1alpha1",
    "kind": "ExtenderConfiguration",
    "schedulerNames": ["a"],
    "leaderLease": "a/b",
    "bindTimeoutSeconds": 60,
    "topology": ["a"],
    "profiles": [PROFILE],
}
KUBE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [PROFILE],
    "leaderElection": {"leaseDuration": "15s"},
    "extenders": [{"urlPrefix": "u", "httpTimeout": "5s", "managedResources": [{"name": "a.b/c"}], "tlsConfig": {}}],
}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize(
    ("load", "document"),
    [
        pytest.param(load_extender_configuration, OURS, id="our own"),
        pytest.param(load_kube_scheduler_configuration, KUBE, id="kube-scheduler's"),
    ],
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_anything_anywhere_is_read_or_refused(tmp_path: Path, load: Any, document: Any, data: st.DataObject) -> None:
    changed = copy.deepcopy(document)
    container, key = data.draw(st.sampled_from(list(places(changed))))
    container[key] = data.draw(JUNK)
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(changed), encoding="utf-8")
    with contextlib.suppress(ConfigurationError):
        load(path)


def test_a_mistake_takes_one_line_whatever_the_names_are(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        json.dumps(OURS | {"profiles": [], "a\nb": 1, "gangVictims": "c\nd", "topology": ["e\x00"] * 2}),
        encoding="utf-8",
    )
    with pytest.raises(ConfigurationError) as caught:
        load_extender_configuration(path)
    lines = str(caught.value).split("\n")
    assert len(lines) == 5
    assert any("a?b: unknown field" in line for line in lines)
    assert any('gangVictims: Unsupported value: "c\\nd"' in line for line in lines)
    assert any('topology[1]: Duplicate value: "e?"' in line for line in lines)
