"""Koordinator's annotations, on pods that need no object and on PodGroups."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api.metav1 import ObjectMeta
from extender.plugins.coscheduling.spec.group_annotations import asked_by
from extender.plugins.coscheduling.spec.sources import koordinator
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, AskedTopology
from tests.objects import make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, members

Make = Callable[..., World]
PREFIX = "gang.scheduling.koordinator.sh"


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4")]))


def gang(name: str, minimum: str = "2", **more: str) -> dict[str, str]:
    asked = {"name": name, "min-available": minimum, **more}
    return {f"{PREFIX}/{key.replace('_', '-')}": value for key, value in asked.items()}


def test_pods_with_annotations_alone_are_a_gang(kube: KubeScheduler) -> None:
    first, second = members(2, "", prefix="p", annotations=gang("k"))
    kube.create(first)
    kube.run()
    assert "current pods number: 1, minMember of group: 2" in kube.told["p0"]
    kube.create(second)
    kube.run()
    assert kube.starts == [{"p0", "p1"}]


def test_such_a_gang_is_once_satisfied_if_nothing_else_is_asked_for(kube: KubeScheduler) -> None:
    pods = members(2, "", prefix="p", annotations=gang("k"))
    kube.create(*pods)
    kube.run()
    kube.delete(pods[0])
    kube.create(member("again", "", annotations=gang("k")))
    kube.run()
    assert kube.starts[1:] == [{"again"}]


def test_groups_that_start_together_are_a_json_list(kube: KubeScheduler) -> None:
    kube.create(*members(2, "", prefix="a", annotations=gang("a", groups='["default/a", "default/b"]')))
    kube.run()
    assert kube.running() == set()
    kube.create(*members(2, "", prefix="b", annotations=gang("b", groups='["default/a", "default/b"]')))
    kube.run()
    assert kube.starts == [{"a0", "a1", "b0", "b1"}]
    assert list(broken(kube)) == []


def test_a_lightweight_group_whose_last_pod_goes_leaves_the_other_waiting(kube: KubeScheduler) -> None:
    names = '["default/a", "default/b"]'
    pods = members(1, "", prefix="b", annotations=gang("b", "1", groups=names), gated=True)
    kube.create(*members(1, "", prefix="a", annotations=gang("a", "1", groups=names), gated=True), *pods)
    kube.world.run_tasks()
    assert len(kube.plugin.manager.slots) == 2
    kube.delete(*pods)
    assert not len(kube.plugin.manager.slots)
    assert list(broken(kube)) == []
    kube.run()
    assert kube.running() == set()


def test_a_pod_group_may_carry_them_and_our_own_come_first() -> None:
    annotations = {
        f"{PREFIX}/match-policy": "only-waiting",
        "gang-extender.dev/match-policy": "once-satisfied",
        f"{PREFIX}/waiting-time": "1m30s",
        f"{PREFIX}/mode": "Strict",
    }
    asked = asked_by(ObjectMeta(annotations=annotations), "default/g")
    assert (asked.match_policy, asked.schedule_timeout_seconds, asked.invalid) == ("once-satisfied", 90, "")


@pytest.mark.parametrize(
    ("gather", "ours", "asked"),
    [
        pytest.param("", {}, NO_TOPOLOGY, id="no layers"),
        pytest.param(
            '{"layer": "b", "strategy": "PreferGather"}, {"layer": "a", "strategy": "MustGather"}, '
            '{"layer": "c", "strategy": "PreferGather"}',
            {},
            AskedTopology("a", "layer b"),
            id="the first of each strategy",
        ),
        pytest.param(
            '{"layer": "b", "strategy": "MustGather"}',
            {"gang-extender.dev/topology-preferred": "x"},
            AskedTopology(preferred="x"),
            id="our own annotations come first",
        ),
    ],
)
def test_layers_to_gather_in_are_levels(gather: str, ours: dict[str, str], asked: AskedTopology) -> None:
    annotations = {f"{PREFIX}/network-topology-spec": f'{{"gatherStrategy": [{gather}]}}', **ours}
    assert asked_by(ObjectMeta(annotations=annotations), "default/g").topology == asked


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        pytest.param("waiting-time", "soon", "must be a duration, such as 90s", id="a duration that is none"),
        pytest.param("groups", "default/b", "must be a JSON list of namespace/name", id="groups without brackets"),
        pytest.param("groups", '["a/b/c"]', "must be namespace/name", id="a name with two slashes"),
        pytest.param("mode", "Loose", 'supported values: "Strict", "NonStrict"', id="a mode that there is not"),
        pytest.param("network-topology-spec", "rack", "must be a JSON object", id="a topology that is no JSON"),
        pytest.param(
            "network-topology-spec",
            "[" * 8000,
            "must be a JSON object",
            id="a topology that is nested as deep as can be",
        ),
        pytest.param(
            "network-topology-spec",
            '{"gatherStrategy": [{"layer": "rack", "strategy": "May"}]}',
            'supported values: "MustGather", "PreferGather"',
            id="a strategy that there is not",
        ),
        pytest.param("match-policy", "never", 'supported values: "only-waiting"', id="a policy that there is not"),
    ],
)
def test_nonsense_is_refused_by_its_key(key: str, value: str, wrong: str, kube: KubeScheduler) -> None:
    kube.apply(make_pod_group().namespace("default").name("g").min_member(2).annotation(f"{PREFIX}/{key}", value).obj())
    kube.create(*members(2))
    kube.run()
    assert f"annotation {PREFIX}/{key}: " in kube.told["g0"]
    assert wrong in kube.told["g0"]


def test_pods_that_ask_for_different_things_are_refused(kube: KubeScheduler) -> None:
    kube.create(
        member("p0", "", annotations=gang("k")), member("p1", "", annotations=gang("k", match_policy="only-waiting"))
    )
    kube.run()
    assert kube.told["p0"] == (
        f"PodGroup annotations of default/k do not match: annotation {PREFIX}/match-policy: '' and 'only-waiting'"
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("1.5m", 90), ("250ms", 1), ("24h", 86400), ("0s", None)],
    ids=str,
)
def test_durations_are_go_s(text: str, seconds: int | None) -> None:
    assert koordinator.parse_waiting_time(text) == seconds


def test_our_own_label_comes_before_the_annotation(kube: KubeScheduler) -> None:
    kube.apply(group("g", 1))
    kube.create(member("p0", "g", annotations=gang("k", "9")))
    kube.run()
    assert kube.starts == [{"p0"}]
