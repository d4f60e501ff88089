"""Each filter and each score beside what the real Go plugin answered, on 200 random clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from extender.framework.cycle_state import CycleState
from extender.framework.node_info import NodeInfo
from extender.framework.status import Status
from tests.parity.corpus import Json, World, scenarios

PLUGINS = (
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
)


def _verdict(status: Status) -> tuple[str, str, frozenset[str]]:
    return str(status.code), status.plugin, frozenset(status.reasons)


def _expected(verdict: Json) -> tuple[str, str, frozenset[str]]:
    return verdict["code"], verdict.get("plugin", ""), frozenset(verdict.get("reasons") or ())


def _amounts(node: NodeInfo) -> dict[str, Any]:
    def of(resource: Any, pods: int) -> Json:
        amounts = {
            "milliCPU": resource.milli_cpu,
            "memory": resource.memory,
            "ephemeralStorage": resource.ephemeral_storage,
            "pods": pods,
        }
        scalar = {name: amount for name, amount in resource.scalar.items() if amount}
        return {**amounts, "scalar": scalar} if scalar else amounts

    return {
        "allocatable": of(node.allocatable, node.allocatable.allowed_pod_number),
        "requested": of(node.requested, len(node.pods)),
        "nonZeroRequested": {
            "milliCPU": node.non_zero_milli_cpu,
            "memory": node.non_zero_memory,
            "ephemeralStorage": 0,
            "pods": len(node.pods),
        },
    }


@pytest.mark.parametrize(("scenario", "expected"), [pytest.param(s, e, id=s["name"]) for s, e in scenarios()])
def test_every_plugin_answers_as_the_real_one(scenario: Json, expected: Json, tmp_path: Path) -> None:
    world = World(scenario, tmp_path, PLUGINS)
    framework, pod, nodes = world.framework, world.pod, world.snapshot.list()
    assert [node.name for node in nodes] == expected["nodeOrder"]
    state = CycleState()
    framework.set_snapshot(world.snapshot)
    result, status, plugins = framework.run_pre_filter_plugins(state, pod, nodes)
    allowed = result.node_names if result is not None else None
    pre_filter = expected["preFilter"]
    assert _verdict(status)[0] == pre_filter["verdict"]["code"]
    assert state.skip_filter_plugins == set(pre_filter["skipFilterPlugins"]) & set(PLUGINS)
    feasible = [node for node in nodes if node.name in (expected.get("feasible") or ())]
    scored: dict[str, tuple[list[Any], list[Any], int]] = {}
    if feasible:
        assert framework.run_pre_score_plugins(state, pod, feasible).success
        assert state.skip_score_plugins == set(expected["skipScorePlugins"]) & set(PLUGINS)
        results, status = framework.score_by_plugin(state, pod, feasible)
        assert status.success, status
        scored = {each.plugin: (list(each.raw), list(each.normalized), each.weight) for each in results}
    for answer in expected["nodes"]:
        node = world.snapshot.get(answer["name"])
        assert _amounts(node) == _without_zero_scalars({key: answer[key] for key in _amounts(node)})
        if allowed is not None and node.name not in allowed:
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]"
            assert _expected(answer["verdict"]) == ("UnschedulableAndUnresolvable", "", frozenset({reason}))
        elif status.success:
            _compare_filters(world, state, node, answer)
        if node in feasible:
            _compare_scores(scored, feasible.index(node), answer)


def _without_zero_scalars(amounts: Json) -> Json:
    result = {}
    for kind, values in amounts.items():
        values = dict(values)
        scalar = {name: amount for name, amount in (values.pop("scalar", None) or {}).items() if amount}
        result[kind] = {**values, "scalar": scalar} if scalar else values
    return result


def _compare_filters(world: World, state: CycleState, node: NodeInfo, answer: Json) -> None:
    status = world.framework.run_filter_plugins_with_nominated_pods(state, world.pod, node)
    assert _verdict(status) == _expected(answer["verdict"]), node.name
    alone = {}
    for plugin in world.framework.filter_plugins:
        if plugin.name in state.skip_filter_plugins:
            continue
        status = plugin.filter(state, world.pod, node)
        if not status.success:
            alone[plugin.name] = (str(status.code), frozenset(status.reasons))
    expected = {
        name: (verdict["code"], frozenset(verdict.get("reasons") or ()))
        for name, verdict in (answer.get("perPlugin") or {}).items()
        if name in PLUGINS and verdict["code"] != "Success"
    }
    assert alone == expected, node.name


def _compare_scores(scored: dict[str, tuple[list[Any], list[Any], int]], index: int, answer: Json) -> None:
    ours = {
        name: {"raw": _score(raw[index]), "norm": _score(norm[index]), "weighted": _score(norm[index]) * weight}
        for name, (raw, norm, weight) in scored.items()
    }
    theirs = {name: score for name, score in answer["scores"].items() if name in PLUGINS}
    assert ours == theirs, answer["name"]


def _score(entry: Any) -> int:
    return int(getattr(entry, "score", entry))
