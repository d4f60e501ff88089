"""What the filters say of a hypothetical state: one pod, its nodes, and the pods that are added meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from extender.framework.runtime.framework import Framework
from extender.framework.status import Status
from extender.plugins import names
from tests.objects import HOSTNAME, PodBuilder, make_pod
from tests.unit.plugins.coscheduling.planning import GANG, JUDGE, existing, member, node

NODES = [node("n1", cpu=1).info(), node("n2", cpu=4).info()]


@pytest.mark.parametrize(
    ("pod", "plugins"),
    [
        pytest.param(member(), ["", ""], id="both take it"),
        pytest.param(member(cpu=2), [names.NODE_RESOURCES_FIT, ""], id="one is too small"),
        pytest.param(member().node_selector({"gpu": "yes"}), [names.NODE_AFFINITY] * 2, id="no node has the label"),
        pytest.param(
            member().node_affinity_in("metadata.name", ["n2"], field=True),
            [names.NODE_AFFINITY, ""],
            id="it names a node",
        ),
    ],
)
def test_all_nodes_at_once_are_judged_as_one_by_one(pod: PodBuilder, plugins: list[str]) -> None:
    trial = JUDGE.begin(pod.name("p").obj(), NODES)
    assert [status.plugin for status in trial.filter_all()] == plugins
    assert [trial.filter(info).plugin for info in NODES] == plugins


def test_a_pod_that_needs_a_feature_of_the_kubelet_goes_where_a_node_declares_it() -> None:
    pod = member().container(restartPolicyRules=[{"action": "RestartAllContainers"}]).name("p").obj()
    declaring = node("n3")._in("status", "declaredFeatures", ["RestartAllContainersOnContainerExits"]).info()
    statuses = JUDGE.begin(pod, [*NODES, declaring]).filter_all()
    assert [status.plugin for status in statuses] == [names.NODE_DECLARED_FEATURES] * 2 + [""]


def test_a_pod_that_was_added_counts_and_a_clone_goes_its_own_way() -> None:
    trial = JUDGE.begin(member().pod_anti_affinity(HOSTNAME, GANG).name("p").obj(), NODES)
    clone, there = trial.clone(), NODES[1].clone()
    sibling = member().name("s").node("n2").info()
    there.add_pod(sibling)
    trial.add_pods([(sibling, there, {})])
    assert trial.filter(there).plugin == names.INTER_POD_AFFINITY
    assert clone.filter(NODES[1]).success


def test_a_pod_that_comes_and_minds_one_that_no_pod_minded_before_is_not_overlooked() -> None:
    """PreFilter has skipped InterPodAffinity, which hears of no added pod then."""
    trial = JUDGE.begin(member().name("p").obj(), NODES)
    shy = existing("shy", "n2").pod_anti_affinity(HOSTNAME, GANG).info()
    there = NODES[1].clone()
    there.add_pod(shy)
    trial.add_pods([(shy, there, {})])
    assert trial.filter(there).plugin == names.INTER_POD_AFFINITY
    assert trial.filter(NODES[0]).success


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        pytest.param(member(), 0, id="which looks at no other pod"),
        pytest.param(member().pod_anti_affinity(HOSTNAME, GANG), 3, id="which minds them"),
    ],
)
def test_plugins_are_told_of_pods_that_are_added_if_they_listen(
    pod: PodBuilder, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 512 members with a trial each, all others are added to each."""
    calls: list[object] = []
    add_pod = Framework.run_pre_filter_extension_add_pod

    def counted(*args: Any) -> Status:
        calls.append(args)
        return add_pod(*args)

    monkeypatch.setattr(Framework, "run_pre_filter_extension_add_pod", counted)
    trial, there = JUDGE.begin(pod.name("p").obj(), NODES), NODES[1].clone()
    for name in "abc":
        sibling = member().name(name).node("n2").info()
        there.add_pod(sibling)
        trial.add_pods([(sibling, there, {})])
    assert trial.filter(NODES[0]).success
    assert len(calls) == told


def test_a_refusal_of_pre_filter_is_that_of_every_node() -> None:
    trial = JUDGE.begin(make_pod().name("p").node_affinity_in("metadata.name", [], field=True).obj(), NODES)
    assert not any(status.success for status in trial.filter_all())


def test_without_volumes_nothing_tells_ephemeral_claims_apart() -> None:
    assert JUDGE.ties(member().name("p").obj()) == ()


def test_the_hints_of_its_plugins_are_those_of_filters() -> None:
    assert {names.NODE_RESOURCES_FIT, names.NODE_AFFINITY} <= {row.plugin for row in JUDGE.hint_rows()}
