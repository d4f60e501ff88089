"""What the planner is asked for a gang set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from extender.plugins.coscheduling.planner import Request
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from tests.objects import make_node, make_pod, make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

Make = Callable[..., World]
NAME = member("x").spec.scheduler_name


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "8"), node("n2", "8")]))


def question(kube: KubeScheduler, key: str = "default/g", caller: str = "") -> PlanQuestion:
    manager = kube.plugin.manager
    with manager.lock:
        gang_set = gang_set_of(manager, manager.groups[key])
        return kube.plugin.rounds.requests.question(gang_set, NAME, kube.world.snapshot(), caller=caller)


def request(kube: KubeScheduler, key: str = "default/g", caller: str = "") -> Request:
    return question(kube, key, caller).request


def names(members: Sequence[object]) -> list[str]:
    return [info.pod.name for info in members]  # type: ignore[attr-defined]


def test_members_without_a_place_are_asked_for_the_caller_first(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(3), on_node(member("bound"), "n1"))
    asked = request(kube, caller="default/g2")
    assert names(asked.members) == ["g2", "g0", "g1"]
    assert (asked.needed, list(asked.placed), asked.minima) == (2, ["n1"], ()), "one has its node"


def test_each_role_s_minimum_comes_before_the_group_s(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles="master=1,worker=2"))
    kube.create(member("m", role="master"), *members(3, role="worker"))
    asked = request(kube)
    assert [(each.name, each.needed, each.asked, len(each.uids)) for each in asked.minima] == [
        ("role master", 1, 1, 1),
        ("role worker", 2, 2, 3),
        ("minMember", 3, 3, 4),
    ]


def test_groups_that_start_together_are_one_request_and_minima_say_whose_they_are(kube: KubeScheduler) -> None:
    kube.apply(group("a", 1, groups="g"), group("g", 2, groups="a"))
    kube.create(*members(1, "a"), *members(2))
    asked = request(kube)
    assert (names(asked.members), asked.needed) == (["a0", "g0", "g1"], 3)
    assert sorted(each.name for each in asked.minima) == ["minMember of default/a", "minMember of default/g"]


def test_places_of_another_gang_are_in_the_cluster_that_is_asked_about_and_can_be_left_out(kube: KubeScheduler) -> None:
    kube.apply(group("first", 2), group("g", 2))
    kube.create(*members(2, "first", gated=True))
    kube.plugin.tick()
    kube.world.run_tasks()
    kube.create(*members(2))
    asked = question(kube)
    assert asked.others
    used = sum(info.requested.milli_cpu for info in asked.cluster.list())
    assert (used, sum(info.requested.milli_cpu for info in asked.without_others().cluster.list())) == (2000, 0)


def test_what_the_cluster_lacks_for_min_resources_counts_no_cordoned_node(kube: KubeScheduler) -> None:
    kube.apply(group())
    kube.create(*members(2))
    kube.world.nodes["n2"] = node("n2", "8", unschedulable=True)
    manager = kube.plugin.manager
    lacks = kube.plugin.rounds.requests.resource_gap
    with manager.lock:
        gang = manager.groups["default/g"]
        spec = manager.specs.of(gang)
        assert spec is not None
        assert lacks(gang, spec, kube.world.snapshot()) == ()
    kube.remove(group())
    kube.apply(make_pod_group().namespace("default").name("g").min_member(2).min_resources(cpu="9").obj())
    with manager.lock:
        gang = manager.groups["default/g"]
        spec = manager.specs.of(gang)
        assert spec is not None
        assert lacks(gang, spec, kube.world.snapshot()) == ("cpu",)


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        pytest.param(5, (), id="what two nodes have left together"),
        pytest.param(6, ("example.com/gpu",), id="one more"),
    ],
)
def test_what_all_nodes_have_left_of_any_resource_counts_together(
    asked: int, lacking: tuple[str, ...], kube: KubeScheduler
) -> None:
    """Of 4 and 2 GPUs one is taken; a node that was given too many does not count against the others."""
    for name, there in (("n1", "4"), ("n2", "2"), ("n3", "1")):
        kube.world.nodes[name] = make_node().name(name).capacity({"cpu": "8", "example.com/gpu": there}).obj()
    for name, taken in (("n1", "1"), ("n3", "3")):
        kube.world.on_nodes[name] = make_pod().name(name).node(name).req({"example.com/gpu": taken}).obj()
    group_of = make_pod_group().namespace("default").name("g").min_member(2)
    kube.apply(group_of.min_resources({"example.com/gpu": str(asked)}).obj())
    manager = kube.plugin.manager
    with manager.lock:
        gang = manager.groups["default/g"]
        spec = manager.specs.of(gang)
        assert spec is not None
        assert kube.plugin.rounds.requests.resource_gap(gang, spec, kube.world.snapshot()) == lacking
