"""The guard's own choice of victims on a node: kube-scheduler's where no gang is concerned, by its rules where one is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api import corev1, policyv1
from extender.framework.cycle_state import CycleState
from extender.framework.hypothetical import with_pods
from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.preemption.evictable import Rules, RunningGang, evictable_pods
from extender.plugins.coscheduling.preemption.reselection import Reselection, Selection
from tests.objects import PodBuilder, make_node, make_pdb, make_pod
from tests.unit.plugins.preemption_world import PreemptionWorld

APP = {"app": "web"}
VIP = 100


def pod(name: str, node: str = "n1", priority: int = 0, cpu: int = 1, second: int = 0) -> PodBuilder:
    start = f"2026-01-01T00:00:{second:02}Z"
    return make_pod().name(name).uid(name).node(node).priority(priority).req(cpu=str(cpu)).start_time(start)


Gang = tuple[str, int, Sequence[str]] | tuple[str, int, Sequence[str], int]
"""Key, minMember, names of members; and the gang's priority, where it is not that of the least important."""


class Guarded(PreemptionWorld):
    def select(
        self,
        preemptor: corev1.Pod,
        gangs: Sequence[Gang] = (),
        *,
        may_evict_elsewhere: bool = True,
        promised: Sequence[PodBuilder] = (),
    ) -> Selection | None:
        snapshot = self.cache.snapshot()
        nodes = snapshot.list()
        by_name = {info.pod.name: (info, node.name) for node in nodes for info in node.pods}
        running = [
            RunningGang(
                key,
                minimum,
                {by_name[name][0].pod.uid: by_name[name] for name in names},
                standing_priority=priority[0] if priority else None,
            )
            for key, minimum, names, *priority in gangs
        ]
        evictable = evictable_pods(nodes, running, Rules(preemptor.priority))
        pdbs = [
            pdb
            for pdb in self.framework.lister(policyv1.PodDisruptionBudget).list()
            if isinstance(pdb, policyv1.PodDisruptionBudget)
        ]
        reselection = Reselection(
            self.framework,
            preemptor,
            snapshot,
            with_pods(snapshot, [("n1", each.info()) for each in promised]),
            evictable,
            pdbs,
            may_evict_elsewhere=may_evict_elsewhere,
        )
        return reselection.on_node("n1")


def _node(nodes: Sequence[NodeInfo], name: str) -> NodeInfo:
    return next(node for node in nodes if node.name == name)


def names(selection: Selection | None) -> list[str] | None:
    return None if selection is None else [victim.name for victim in selection.victims]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.booleans()), min_size=1, max_size=7),
    st.integers(1, 6),
    st.integers(0, 2),
)
def test_without_gangs_it_is_kube_schedulers_own_choice(
    pods: list[tuple[int, int, bool]], wanted: int, allowed: int
) -> None:
    builders = []
    for i, (priority, cpu, protected) in enumerate(pods):
        builder = pod(f"p{i}", priority=priority, cpu=cpu, second=i)
        builders.append(builder.labels(APP) if protected else builder)
    world = Guarded(
        [make_node().name("n1").capacity(cpu=sum(cpu for _, cpu, _ in pods))],
        builders,
        pdbs=[make_pdb().name("web").match(APP).disruptions_allowed(allowed)],
    )
    preemptor = make_pod().name("vip").priority(2).req(cpu=str(wanted)).obj()
    snapshot = world.cache.snapshot()
    node = _node(snapshot.list(), "n1")
    world.framework.set_snapshot(snapshot)
    state = CycleState()
    world.framework.run_pre_filter_plugins(state, preemptor, snapshot.list())
    pdbs = world.plugin.evaluator.pdbs()
    expected, violations, status = world.plugin.select_victims_on_node(state.clone(), preemptor, node.clone(), pdbs)
    found = world.select(preemptor)
    if not status.success:
        assert found is None
    else:
        assert found is not None
        assert names(found) == [victim.name for victim in expected]
        assert found.violations == violations


GANG: list[Gang] = [("g", 2, ("a", "b"))]


@pytest.mark.parametrize(
    ("pods", "gangs", "cpu", "victims", "elsewhere"),
    [
        pytest.param(
            [pod("a"), pod("b"), pod("lone")], GANG, 1, ["lone"], set(), id="of one priority a lone pod first"
        ),
        pytest.param(
            [pod("a"), pod("b"), pod("lone", priority=50)],
            GANG,
            1,
            ["a", "b"],
            set(),
            id="a gang before a lone pod of higher priority",
        ),
        pytest.param(
            [pod("a"), pod("b", "n2"), pod("lone", priority=50)],
            GANG,
            1,
            ["a"],
            {"b"},
            id="wherever its members run",
        ),
        pytest.param(
            [pod("a", second=1), pod("b"), pod("c", second=2), pod("lone")],
            [("g", 2, ("a", "b", "c"))],
            2,
            ["lone", "c"],
            set(),
            id="then the least important of what a gang has to spare",
        ),
        pytest.param(
            [pod("a"), pod("b"), pod("c", second=2), pod("lone", priority=50)],
            [("g", 2, ("a", "b", "c"))],
            1,
            ["c"],
            set(),
            id="which goes before a lone pod of higher priority",
        ),
        pytest.param(
            [pod("a"), pod("b", "n2"), pod("x", priority=5), pod("y", priority=5)],
            GANG,
            2,
            ["x", "y"],
            set(),
            id="where a lone pod has to go anyway, another as important goes and no gang",
        ),
        pytest.param(
            [
                *(pod("a", cpu=0), pod("b", cpu=0), pod("c", second=2)),
                *(pod("x", priority=50, cpu=2), pod("y", priority=50, second=2)),
            ],
            [("g", 2, ("a", "b", "c"))],
            2,
            ["y", "c"],
            set(),
            id="the important are asked first whether they can stay, surplus or not",
        ),
        pytest.param([pod("a"), pod("b"), pod("lone")], GANG, 2, ["a", "b", "lone"][:2], set(), id="then a whole gang"),
        pytest.param([pod("a"), pod("b", "n2")], GANG, 1, ["a"], {"b"}, id="with its members on other nodes"),
        pytest.param(
            [pod("a"), pod("b", "n2"), pod("x", priority=5), pod("y", "n2", priority=5)],
            [*GANG, ("h", 2, ("x", "y"))],
            1,
            ["a"],
            {"b"},
            id="of two gangs the less important",
        ),
        pytest.param(
            [pod("a"), pod("b", "n2", priority=VIP)],
            GANG,
            1,
            ["a"],
            {"b"},
            id="one with a member as important as the preemptor: all of it counts at its one priority",
        ),
        pytest.param(
            [pod("a", priority=VIP - 1), pod("b", "n2", priority=VIP - 1), pod("lone", priority=50)],
            [("g", 2, ("a", "b"), 0)],
            1,
            ["a"],
            {"b"},
            id="and at that it is compared with lone pods",
        ),
        pytest.param(
            [pod("a"), pod("b", "n2")],
            [("g", 2, ("a", "b"), VIP)],
            1,
            None,
            set(),
            id="never one that counts as high as the preemptor",
        ),
        pytest.param(
            [pod("a", priority=VIP), pod("b", "n2", priority=VIP), pod("c")],
            [("g", 2, ("a", "b", "c"), VIP)],
            1,
            ["c"],
            set(),
            id="a member beyond the quorum counts at its own lower priority",
        ),
        pytest.param(
            [pod("a", priority=50), pod("b", "n2", priority=50), pod("c"), pod("lone", priority=20)],
            [("g", 2, ("a", "b", "c"), 50)],
            1,
            ["c"],
            set(),
            id="and is compared with lone pods at that",
        ),
        pytest.param(
            [pod("a"), pod("b")], [("g", 3, ("a", "b"))], 1, ["a", "b"], set(), id="what is left of a gang goes whole"
        ),
        pytest.param(
            [pod("a"), pod("b", "n2"), pod("lone")],
            [("g", 3, ("a", "b"))],
            1,
            ["lone"],
            set(),
            id="and not for what a lone pod has",
        ),
    ],
)
def test_lone_pods_then_surplus_then_whole_gangs(
    pods: Sequence[PodBuilder],
    gangs: Sequence[Gang],
    cpu: int,
    victims: list[str] | None,
    elsewhere: set[str],
) -> None:
    here = sum(each.info().requests.milli_cpu for each in pods if each.obj().node_name == "n1") // 1000
    world = Guarded([make_node().name("n1").capacity(cpu=here), make_node().name("n2").capacity(cpu=4)], pods)
    found = world.select(make_pod().name("vip").priority(VIP).req(cpu=str(cpu)).obj(), gangs)
    assert names(found) == victims or (victims is not None and set(names(found) or ()) == set(victims))
    assert {victim.pod.name for victim in found.elsewhere} == elsewhere if found else not elsewhere


def test_a_gang_that_runs_elsewhere_too_stays_where_we_may_not_evict() -> None:
    nodes = [make_node().name("n1").capacity(cpu=1), make_node().name("n2").capacity(cpu=1)]
    world = Guarded(nodes, [pod("a"), pod("b", "n2")])
    vip = make_pod().name("vip").priority(VIP).req(cpu="1").obj()
    assert world.select(vip, GANG, may_evict_elsewhere=False) is None


@pytest.mark.parametrize(
    ("elsewhere", "allowed", "lone", "victims"),
    [
        pytest.param("n2", 0, False, ["a"], id="the only victims: kube-scheduler evicts them too"),
        pytest.param("n1", 0, False, ["a", "b"], id="all on the node"),
        pytest.param("n2", 0, True, ["lone"], id="a lone pod of higher priority comes before a budget is violated"),
        pytest.param("n2", 1, True, ["lone"], id="before one is violated elsewhere, too"),
        pytest.param("n2", 2, True, ["a"], id="a budget that allows all of the gang spares none of it"),
    ],
)
def test_budgets_count_before_priority_and_make_no_gang_immune(
    elsewhere: str, allowed: int, lone: bool, victims: list[str]
) -> None:
    nodes = [make_node().name("n1").capacity(cpu=2), make_node().name("n2").capacity(cpu=2)]
    pods = [pod("a").labels(APP), pod("b", elsewhere).labels(APP), *([pod("lone", priority=50)] if lone else [])]
    world = Guarded(nodes, pods, pdbs=[make_pdb().name("pdb").match(APP).disruptions_allowed(allowed)])
    cpu = 1 if lone else 2
    found = world.select(make_pod().name("vip").priority(VIP).req(cpu=str(cpu)).obj(), GANG)
    assert names(found) == victims


def test_a_budget_is_counted_for_all_of_a_gang_at_once() -> None:
    nodes = [make_node().name("n1").capacity(cpu=1), make_node().name("n2").capacity(cpu=1)]
    budget = make_pdb().name("pdb").match(APP).disruptions_allowed(1)
    world = Guarded(nodes, [pod("a").labels(APP), pod("b", "n2").labels(APP)], pdbs=[budget])
    found = world.select(make_pod().name("vip").priority(VIP).req(cpu="1").obj(), GANG)
    assert found is not None
    assert found.violations == 1, "of two that go it allows one, wherever they run"


def test_places_that_are_promised_count_as_taken() -> None:
    world = Guarded([make_node().name("n1").capacity(cpu=2)], [pod("low"), pod("other", priority=1)])
    vip = make_pod().name("vip").priority(VIP).req(cpu="1").obj()
    assert names(world.select(vip)) == ["low"]
    assert names(world.select(vip, promised=[pod("member", priority=VIP)])) == ["other", "low"]


@pytest.mark.parametrize(
    ("held", "nominated"),
    [
        pytest.param("n1", False, id="held on the node already"),
        pytest.param("", True, id="nominated to it"),
    ],
)
def test_a_place_that_is_promised_counts_once(held: str, nominated: bool) -> None:
    """Twice, a preemptor was told that no victims would help, and nothing woke it when the member had come."""
    member = pod("member", node=held, priority=VIP)
    here = [pod("low"), pod("other", priority=1), *([member] if held else [])]
    world = Guarded([make_node().name("n1").capacity(cpu=3 if held else 2)], here)
    if nominated:
        world.framework.nominator.add_nominated_pod(member.obj(), "n1")
    vip = make_pod().name("vip").priority(VIP).req(cpu="1").obj()
    assert names(world.select(vip, promised=[member])) == (["low"] if held else ["other", "low"])


def test_a_pod_that_is_going_anyway_is_a_victim_that_need_not_be_told() -> None:
    world = Guarded(
        [make_node().name("n1").capacity(cpu=2)], [pod("leaving", priority=9).terminating(), pod("staying")]
    )
    vip = make_pod().name("vip").priority(VIP).req(cpu="1").obj()
    found = world.select(vip)
    assert names(found) == ["leaving"]
    assert found is not None
    assert found.rank == (0, 9, 0, False), "kube-scheduler counts it among the victims"


def test_a_budget_counts_for_more_than_a_gang_s_surplus() -> None:
    world = Guarded(
        [make_node().name("n1").capacity(cpu=4)],
        [pod("a"), pod("b"), pod("c", second=2), pod("lone").labels(APP)],
        pdbs=[make_pdb().name("web").match(APP).disruptions_allowed(0)],
    )
    vip = make_pod().name("vip").priority(VIP).req(cpu="1").obj()
    found = world.select(vip, [("g", 2, ("a", "b", "c"))])
    assert found is not None
    assert (names(found), found.violations, found.from_gangs) == (["c"], 0, True)
