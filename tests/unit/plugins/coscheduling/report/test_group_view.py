"""One group as the pages show it: each member in its strongest state, the roles, the others of its gang set."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.config.group_sources import PRESETS
from extender.config.plugin_args import CoschedulingArgs
from extender.plugins.coscheduling.report import group_view
from extender.plugins.coscheduling.report.gang_status import RoleCount, ShownState
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4")]))


def of(kube: KubeScheduler, key: str = "default/g") -> Group:
    return kube.plugin.manager.groups[key]


def states(kube: KubeScheduler) -> dict[str, ShownState]:
    return {each.name: each.state for each in group_view.members_by_name(kube.plugin.manager, of(kube))}


def test_a_member_s_way_from_its_gate_to_its_node(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(member("b", gated=True), member("a"))
    assert states(kube) == {"a": ShownState.WAITING, "b": ShownState.GATED}
    kube.create(member("c", gated=True))
    kube.plugin.tick()
    kube.world.run_tasks()
    assert set(states(kube).values()) == {ShownState.PLANNED}, "all have a place"
    kube.run()
    assert set(states(kube).values()) == {ShownState.BOUND}
    shown = group_view.members_by_name(kube.plugin.manager, of(kube))
    assert [(each.name, each.node) for each in shown] == [("a", "n1"), ("b", "n1"), ("c", "n1")], "by name"


def test_every_state_is_counted_also_with_no_member_in_it(kube: KubeScheduler) -> None:
    kube.apply(group())
    kube.create(on_node(member("a"), "n1"))
    expected = {state.value: 0 for state in ShownState} | {"bound": 1}
    assert group_view.count_members(kube.plugin.manager, of(kube)) == expected


def test_roles_are_shown_with_how_many_there_are(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles="master=1,worker=2"))
    kube.create(*members(1, role="worker"))
    assert group_view.role_counts(kube.plugin.manager, of(kube)) == (
        RoleCount("master", 1, 0),
        RoleCount("worker", 2, 1),
    )


def test_the_others_of_its_set_are_named_and_one_that_is_not_there_too(kube: KubeScheduler) -> None:
    kube.apply(group("g", groups="b"), group("b", groups="g"), group("c", groups="gone"))
    assert group_view.starts_with(kube.plugin.manager, of(kube)) == ("default/b",)
    assert group_view.starts_with(kube.plugin.manager, of(kube, "default/c")) == ("default/gone",)


def test_a_gang_has_no_nodes_kept_free_that_another_has(kube: KubeScheduler) -> None:
    kube.apply(group())
    assert group_view.kept_free(of(kube), None, lambda seconds: pytest.fail("no time is asked for")) is None


def test_members_with_an_index_are_shown_in_its_order(world: Make) -> None:
    """As of a source with an indexLabel; one without, or with nonsense for it, comes last."""
    made = world([node("n1", "4")])
    manager = made.plugin.manager
    manager.labels = GroupLabels.of(CoschedulingArgs(group_sources=(PRESETS["lws"],)))
    prefix = "leaderworkerset.sigs.k8s.io"
    for name, index in (("a", "10"), ("b", "2"), ("c", "x"), ("d", "0")):
        plain = member(name, "", annotations={f"{prefix}/size": "4"})
        labels = {f"{prefix}/group-key": "g", f"{prefix}/worker-index": index}
        made.create(structs.replace(plain, metadata=structs.replace(plain.metadata, labels=labels)))
    shown = group_view.members_by_name(manager, manager.groups["default/g"])
    assert [each.name for each in shown] == ["d", "b", "a", "c"]
