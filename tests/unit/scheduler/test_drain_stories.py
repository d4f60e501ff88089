"""A node is to be drained: which gangs fall below minMember by it, and where their members would go. Nothing is left of the question."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender.client.interface import POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS
from extender.config.types import ExtenderConfiguration, TopologyLevel
from extender.plugins.coscheduling.questions import drain
from extender.plugins.coscheduling.report.outlook import DrainedGang, DrainOutlook, UsedUpBudget
from extender.scheduler.interface import DRAIN
from tests.unit.scheduler.conftest import GROUP_LABEL, Bench, running
from tests.unit.scheduler.test_what_if_stories import trace


@pytest.fixture
def racks() -> Iterator[Bench]:
    with running(ExtenderConfiguration(topology=(TopologyLevel("rack", "example.com/rack"),))) as made:
        for number in range(4):
            made.node(f"n{number}", cpu="2", labels={"example.com/rack": f"r{number // 2}"})
        yield made


def ask(bench: Bench, node: str = "n0") -> DrainOutlook:
    found = bench.scheduler.pages()[DRAIN](node)
    assert isinstance(found, DrainOutlook)
    return found


def run_gang(bench: Bench, name: str, minimum: int, *nodes: str, cpu: str = "1", priority: int = 0) -> None:
    """A member on each of these nodes."""
    bench.pod_group(name, minimum)
    for number, node in enumerate(nodes):
        bench.pod(f"{name}-{number}", name, cpu=cpu, node=node, priority=priority)


def places(gang: DrainedGang) -> dict[str, str]:
    return {place.member: place.node for place in gang.places}


def test_a_gang_falls_below_min_member_and_its_members_find_places_elsewhere(bench: Bench) -> None:
    for name in ("n0", "n1", "n2"):
        bench.node(name, cpu="2")
    run_gang(bench, "train", 3, "n0", "n1", "n0")
    bench.pod("lone", node="n0", cpu="0")
    found = ask(bench)
    [gang] = found.gangs
    assert (gang.group, gang.here, gang.left, gang.min_member) == ("default/train", ("train-0", "train-2"), 1, 3)
    assert (gang.below, gang.fits) == (True, True)
    assert set(places(gang)) == {"train-0", "train-2"}
    assert "n0" not in places(gang).values()
    assert (found.others, found.unschedulable) == (1, False)


def test_a_gang_with_members_to_spare_stays_whole(bench: Bench) -> None:
    bench.node("n0")
    bench.node("n1")
    run_gang(bench, "train", 2, "n0", "n1", "n1")
    [gang] = ask(bench).gangs
    assert (gang.below, gang.fits, gang.left) == (False, True, 2)
    assert places(gang) == {"train-0": "n1"}


def test_a_gang_whose_members_find_no_place_is_told_what_is_missing(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.node("n1", cpu="2")
    run_gang(bench, "train", 3, "n0", "n0", "n1")
    [gang] = ask(bench).gangs
    assert (gang.below, gang.fits, gang.places) == (True, False, ())
    assert gang.reason == "Insufficient cpu"
    assert gang.shortfall is not None
    assert (gang.shortfall.placed, gang.shortfall.needed, gang.shortfall.missing) == (1, 2, "1")


def test_those_of_higher_priority_find_their_places_first(bench: Bench) -> None:
    """Beside each other: one place is no place for two."""
    bench.node("n0", cpu="2")
    bench.node("n1", cpu="1")
    run_gang(bench, "a", 1, "n0")
    run_gang(bench, "z", 1, "n0", priority=9)
    found = {gang.group: gang for gang in ask(bench).gangs}
    assert (found["default/z"].fits, found["default/a"].fits) == (True, False)


def test_members_stay_in_the_rack_that_the_rest_is_in(racks: Bench) -> None:
    annotations = {"gang-extender.dev/topology-required": "rack"}
    racks.api.create(POD_GROUPS, {"metadata": {"name": "train", "annotations": annotations}, "spec": {"minMember": 2}})
    racks.pod("train-0", "train", node="n0")
    racks.pod("train-1", "train", node="n1")
    [gang] = ask(racks).gangs
    assert places(gang) == {"train-0": "n1"}
    racks.pod("fills", cpu="1", node="n1")
    [gang] = ask(racks).gangs
    assert (gang.fits, gang.reason) == (False, "no single rack takes it: Insufficient cpu")


def test_members_that_are_still_to_come_to_the_node_are_named(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod_group("train", 2)
    members = [bench.pod(f"train-{number}", "train") for number in range(2)]
    assert bench.filter(members[0], "n0").node_names == ["n0"]
    [gang] = ask(bench).gangs
    assert (gang.here, gang.promised, gang.below) == ((), ("train-0", "train-1"), False)


def test_gangs_that_fall_below_come_first(bench: Bench) -> None:
    bench.node("n0", cpu="9")
    bench.node("n1", cpu="9")
    run_gang(bench, "spare", 1, "n0", "n1", priority=9)
    run_gang(bench, "whole", 2, "n0", "n1")
    assert [(gang.group, gang.below) for gang in ask(bench).gangs] == [
        ("default/whole", True),
        ("default/spare", False),
    ]


def test_a_node_that_is_not_there(bench: Bench) -> None:
    assert bench.scheduler.pages()[DRAIN]("n0") is None


def test_nothing_is_left_of_a_question(bench: Bench) -> None:
    bench.node("n0", cpu="3")
    bench.node("n1", cpu="3")
    run_gang(bench, "runs", 2, "n0", "n1", priority=3)
    run_gang(bench, "also", 2, "n0", "n1")
    bench.pod_group("waits", 2)
    members = [bench.pod(f"waits-{number}", "waits") for number in range(2)]
    assert bench.filter(members[0], "n0", "n1").node_names
    bench.flush()
    before = trace(bench)
    groups = bench.scheduler._dependencies.coscheduling.manager.groups
    members_before = {key: {uid: repr(each) for uid, each in group.members.items()} for key, group in groups.items()}
    for _ in range(3):
        ask(bench)
        ask(bench, "n1")
    assert trace(bench) == before
    after = {key: {uid: repr(each) for uid, each in group.members.items()} for key, group in groups.items()}
    assert after == members_before


def test_a_gang_for_which_no_time_is_left_is_not_planned(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "BUDGET_SECONDS", 0.0)
    bench.node("n0")
    run_gang(bench, "train", 1, "n0")
    [gang] = ask(bench).gangs
    assert (gang.asked, gang.below, gang.fits) == (False, True, False)


def test_budgets_at_which_the_drain_would_wait_are_told(bench: Bench) -> None:
    for name in ("n0", "n1"):
        bench.node(name)
    run_gang(bench, "train", 2, "n0", "n0")
    bench.pod("web", node="n0", labels={"app": "web"})
    for name in ("train-0", "train-1", "web"):
        bench.api.patch(PODS, name, {"status": {"phase": "Running"}}, namespace="default", subresource="status")
        bench.until(
            lambda name=name: bench.store(PODS).get(f"default/{name}").status.phase == "Running",  # type: ignore[misc]
            "it runs",
        )
    for name, allowed, labels in (
        ("train", 1, {GROUP_LABEL: "train"}),
        ("web", 1, {"app": "web"}),
        ("other", 0, {"app": "other"}),
    ):
        budget = {
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": allowed},
        }
        bench.api.create(POD_DISRUPTION_BUDGETS, budget)
        bench.until(
            lambda name=name: bench.store(POD_DISRUPTION_BUDGETS).get(f"default/{name}") is not None,  # type: ignore[misc]
            "the budget is seen",
        )
    assert ask(bench).budgets == (UsedUpBudget("default/train", 1, ("default/train-0", "default/train-1")),)
    assert ask(bench, "n1").budgets == ()
