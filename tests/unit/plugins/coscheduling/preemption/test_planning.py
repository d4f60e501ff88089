"""Victims for a whole gang: as few and as unimportant as can be, whole gangs or their surplus, or none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.config.types import TopologyLevel
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.fewest_violations import Budgets, FewestViolations
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import GangVictims
from extender.plugins.coscheduling.planner import Judge, NoPlacement, Placement, Request
from extender.plugins.coscheduling.planner.request import Topology
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind, Rules
from extender.plugins.coscheduling.preemption.planning import VictimPlan
from tests.objects import (
    HOSTNAME,
    NodeBuilder,
    PodBuilder,
    PodDisruptionBudgetBuilder,
    make_node,
    make_pdb,
    make_pod,
    selector,
)
from tests.unit.plugins.coscheduling.preemption.conftest import Cluster

APP = {"app": "protected"}
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def _node(name: str, cpu: int = 2) -> NodeBuilder:
    return make_node().name(name).capacity(cpu=cpu).label(HOSTNAME, name)


def _pod(name: str, node: str, priority: int = 0, cpu: str = "2", gang: str = "") -> PodBuilder:
    pod = make_pod().name(name).node(node).priority(priority).req(cpu=cpu).start_time(OLD)
    return pod.pod_group(gang) if gang else pod


def _members(count: int, cpu: str = "2", priority: int = 100) -> list[PodBuilder]:
    return [make_pod().name(f"m{i}").priority(priority).req(cpu=cpu) for i in range(count)]


NODES = [_node("n1"), _node("n2"), _node("n3")]
FULL = [_pod("a", "n1"), _pod("b", "n2"), _pod("c", "n3")]
PROTECTED = make_pdb().name("pdb").match(APP).disruptions_allowed(0)


@pytest.mark.parametrize(
    ("nodes", "pods", "gangs", "members", "victims"),
    [
        pytest.param(NODES, FULL, {}, _members(3), {"a", "b", "c"}, id="one on each node"),
        pytest.param(NODES, FULL[:2], {}, _members(2), {"a"}, id="free room first"),
        pytest.param(NODES, FULL[:1], {}, _members(2), set(), id="none where there is room"),
        pytest.param(
            NODES,
            [_pod("a", "n1", 5), _pod("b", "n2", 1), _pod("c", "n3", 3)],
            {},
            _members(2),
            {"b", "c"},
            id="the lowest priorities",
        ),
        pytest.param(
            [_node("n1", 4), _node("n2", 4)],
            [_pod("a", "n1", cpu="3"), *(_pod(f"b{i}", "n2", cpu="1") for i in range(3))],
            {},
            _members(1, cpu="4"),
            {"a"},
            id="one victim, not three",
        ),
        pytest.param(
            [_node("n1", 4)],
            [_pod("small", "n1", 1, "1"), _pod("large", "n1", 2, "3")],
            {},
            _members(1, cpu="1"),
            {"small"},
            id="a pod that need not go is spared",
        ),
        pytest.param(
            NODES,
            [_pod("a", "n1").labels(APP), *FULL[1:]],
            {},
            _members(2),
            {"b", "c"},
            id="none that a budget protects",
        ),
        pytest.param(
            NODES,
            [_pod("a", "n1", 0).labels(APP), _pod("b", "n2", 9), _pod("c", "n3", 9)],
            {},
            _members(2),
            {"b", "c"},
            id="a budget counts for more than priority",
        ),
        pytest.param(
            NODES,
            [_pod("g0", "n1", gang="g"), _pod("g1", "n2", gang="g"), _pod("c", "n3")],
            {"g": 2},
            _members(1),
            {"c"},
            id="a lone pod rather than a gang",
        ),
        pytest.param(
            NODES,
            [_pod("g0", "n1", gang="g"), _pod("g1", "n2", gang="g"), _pod("c", "n3", 100)],
            {"g": 2},
            _members(1),
            {"g0", "g1"},
            id="a whole gang where there is no other pod",
        ),
        pytest.param(
            NODES,
            [_pod(f"g{i}", f"n{i + 1}", gang="g") for i in range(3)],
            {"g": 2},
            _members(1),
            {"g2"},
            id="a gang's surplus, and not the gang",
        ),
        pytest.param(
            NODES,
            [_pod("g0", "n1", gang="g"), _pod("g1", "n2", 5, gang="g"), _pod("c", "n3", 9)],
            {"g": 2},
            _members(1),
            {"g0", "g1"},
            id="a gang of low priority rather than a pod of high",
        ),
        pytest.param(
            [_node("n1", 4), _node("n2", 4)],
            [_pod("a", "n1").labels({"quiet": "yes"}), _pod("b", "n2")],
            {},
            [make_pod().name("m").priority(9).req(cpu="1").pod_anti_affinity(HOSTNAME, selector({"quiet": "yes"}))],
            set(),
            id="the pod that minds a neighbour goes where there is none",
        ),
        pytest.param(
            [_node("n1", 4)],
            [_pod("a", "n1").labels({"quiet": "yes"}), _pod("b", "n1", cpu="1")],
            {},
            [make_pod().name("m").priority(9).req(cpu="1").pod_anti_affinity(HOSTNAME, selector({"quiet": "yes"}))],
            {"a"},
            id="or the neighbour goes, though there is room",
        ),
    ],
)
def test_victims(
    nodes: Sequence[NodeBuilder],
    pods: Sequence[PodBuilder],
    gangs: Mapping[str, int],
    members: Sequence[PodBuilder],
    victims: set[str],
) -> None:
    plan = Cluster(nodes, pods, gangs).plan(members, pdbs=[PROTECTED.obj()])
    assert isinstance(plan, VictimPlan), plan
    assert {victim.pod.name for victim in plan.victims} == victims


@pytest.mark.parametrize(
    ("pods", "gangs", "members"),
    [
        pytest.param([*FULL[:2], _pod("c", "n3", 100)], {}, _members(3), id="one node is held by an equal"),
        pytest.param(FULL, {}, _members(3, cpu="3"), id="the nodes are too small"),
        pytest.param(
            [_pod("g0", "n1", 100, gang="g"), _pod("g1", "n2", 100, gang="g"), _pod("c", "n3", 100)],
            {"g": 2},
            _members(1),
            id="a gang of equal priority is not broken",
        ),
    ],
)
def test_no_pod_goes_where_the_gang_would_not_fit(
    pods: Sequence[PodBuilder], gangs: Mapping[str, int], members: Sequence[PodBuilder]
) -> None:
    assert isinstance(Cluster(NODES, pods, gangs).plan(members), NoPlacement)


@pytest.mark.parametrize(
    ("rules", "victims"),
    [
        pytest.param(Rules(100, protected={"a"}), {"b"}, id="never one that is held in our bind"),
        pytest.param(Rules(100, started_before=1.7675e9), {"b"}, id="none that has not run for long enough"),
        pytest.param(Rules(100, GangVictims.SURPLUS_ONLY), None, id="no whole gang where only surplus may go"),
        pytest.param(Rules(100, GangVictims.ANY), {"b"}, id="gangs are nothing special where any may go"),
    ],
)
def test_rules(rules: Rules, victims: set[str] | None) -> None:
    gang = rules.gang_victims is not GangVictims.WHOLE_OR_SURPLUS
    pods = [_pod("a", "n1", 5, gang="g"), _pod("b", "n2", 0, gang="g")]
    if not gang:
        pods = [_pod("a", "n1").start_time("2026-12-01T00:00:00Z"), _pod("b", "n2", 5)]
    plan = Cluster(NODES[:2], pods, {"g": 2} if gang else {}).plan(_members(1), rules=rules)
    if victims is None:
        assert isinstance(plan, NoPlacement)
    else:
        assert isinstance(plan, VictimPlan)
        assert {victim.pod.name for victim in plan.victims} == victims


def test_pods_that_are_going_are_waited_for() -> None:
    plan = Cluster(NODES, [FULL[0].terminating(), *FULL[1:]]).plan(_members(1), going={"a"})
    assert isinstance(plan, VictimPlan)
    assert plan.victims == ()
    assert plan.awaited == {"a"}


@pytest.mark.parametrize(
    ("cpu", "going", "members", "awaited"),
    [
        pytest.param(4, {"late": 2}, 1, set(), id="there is room beside it"),
        pytest.param(4, {"late": 2}, 2, {"late"}, id="the second member needs its room"),
        pytest.param(4, {"late": 2, "soon": 2}, 1, {"soon"}, id="of two the one that goes first"),
        pytest.param(4, {"late": 1, "soon": 2}, 1, {"soon"}, id="the one that goes last gives too little, and stays"),
        pytest.param(4, {"late": 3, "soon": 1}, 1, {"late"}, id="the other gives too little"),
    ],
)
def test_a_gang_waits_for_those_going_whose_room_it_needs(
    cpu: int, going: dict[str, int], members: int, awaited: set[str]
) -> None:
    ends = {"soon": "2026-01-01T00:01:00Z", "late": "2026-01-01T01:00:00Z"}
    pods = [_pod(name, "n1", cpu=str(asked)).terminating(ends[name]) for name, asked in going.items()]
    plan = Cluster([_node("n1", cpu)], pods).plan(_members(members), going=set(going))
    assert isinstance(plan, VictimPlan)
    assert plan.going == set(going)
    assert plan.awaited == awaited


def test_a_gang_waits_for_all_of_them_where_the_planner_finds_no_place_beside_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than room is in its way, such as a volume that one pod alone may use: the decision would find no place either."""
    at_first = planner.plan

    def later(*args: object) -> NoPlacement:
        return NoPlacement("a volume is in use", placed=0, needed=1)

    def once(cluster: NodeInfoLister, request: Request, judge: Judge) -> Placement | NoPlacement:
        monkeypatch.setattr(planner, "plan", later)
        return at_first(cluster, request, judge)

    monkeypatch.setattr(planner, "plan", once)
    plan = Cluster([_node("n1", 4)], [_pod("a", "n1").terminating()]).plan(_members(1), going={"a"})
    assert isinstance(plan, VictimPlan)
    assert plan.awaited == {"a"}


def test_a_budget_that_allows_one_is_used_once() -> None:
    one = make_pdb().name("pdb").match(APP).disruptions_allowed(1)
    pods = [_pod("a", "n1", 1).labels(APP), _pod("b", "n2", 2).labels(APP), _pod("c", "n3", 3)]
    plan = Cluster(NODES, pods).plan(_members(2), pdbs=[one.obj()])
    assert isinstance(plan, VictimPlan)
    assert {victim.pod.name for victim in plan.victims} == {"a", "c"}
    assert plan.cost[0] == 0


small = st.integers(1, 3)


@settings(max_examples=150, deadline=None)
@given(
    nodes=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    pods=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), small, st.booleans()), max_size=6),
    members=st.integers(1, 3),
    cpu=small,
)
@example(  # the protected pod on the first node gives no room: it is none of that node's price
    nodes=[3, 2, 4], pods=[(0, 0, 1, False), (0, 0, 1, True), (1, 0, 1, True), (2, 0, 1, True)], members=3, cpu=2
)
@example(  # two others give as much as one of them and the protected pod
    nodes=[3, 2, 4],
    pods=[(0, 0, 1, False), (0, 0, 1, True), (1, 0, 1, True), (2, 0, 1, True), (0, 0, 1, False)],
    members=3,
    cpu=2,
)
@example(  # one protected pod of no priority, or another with a neighbour of some
    nodes=[4, 2], pods=[(0, 0, 2, True), (0, 1, 1, False), (0, 0, 1, True)], members=2, cpu=2
)
@example(  # the one protected pod that is large enough alone has more priority than the other, and less than its neighbour
    nodes=[4, 2], pods=[(0, 0, 1, True), (0, 2, 1, False), (0, 1, 2, True)], members=2, cpu=2
)
@example(  # one protected pod of a node rather than all of another's, which give as much
    nodes=[3, 3, 4],
    pods=[(2, 2, 3, True), (2, 0, 1, True), (0, 0, 1, True), (1, 2, 3, True), (0, 2, 2, True)],
    members=2,
    cpu=3,
)
def test_as_good_as_trying_everything(
    nodes: list[int], pods: list[tuple[int, int, int, bool]], members: int, cpu: int
) -> None:
    """Never too many; as few violations, and as low a top priority, as any set of victims could do with."""
    free = dict(enumerate(nodes))
    builders: list[PodBuilder] = []
    for at, priority, size, protected in pods:
        if at < len(nodes) and free[at] >= size:
            free[at] -= size
            pod = _pod(f"p{len(builders)}", f"n{at}", priority, str(size))
            builders.append(pod.labels(APP) if protected else pod)
    plan = Cluster([_node(f"n{i}", size) for i, size in enumerate(nodes)], builders).plan(
        _members(members, cpu=str(cpu), priority=3), pdbs=[PROTECTED.obj()]
    )
    best = _best(nodes, builders, members, cpu)
    if best is None:
        assert isinstance(plan, NoPlacement)
        return
    assert isinstance(plan, VictimPlan)
    assert plan.cost[:2] == best
    chosen = {victim.pod.name for victim in plan.victims}
    assert _fits(nodes, builders, chosen, members, cpu)
    for name in chosen:
        spared = chosen - {name}
        on = {pod.obj().node_name for pod in builders if pod.obj().name == name}
        taken = sum(1 for node in plan.placement.nodes.values() if node in on)
        assert not _takes(nodes, builders, spared, next(iter(on)), taken, cpu), f"{name} need not go"


def _takes(nodes: list[int], pods: Sequence[PodBuilder], gone: set[str], node: str, members: int, cpu: int) -> bool:
    used = sum(_cpu(pod) for pod in pods if pod.obj().node_name == node and pod.obj().name not in gone)
    return (nodes[int(node[1:])] - used) // cpu >= members


def _cpu(pod: PodBuilder) -> int:
    return int(pod.json()["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _fits(nodes: list[int], pods: Sequence[PodBuilder], gone: set[str], members: int, cpu: int) -> bool:
    free = list(nodes)
    for pod in pods:
        if pod.obj().name not in gone:
            free[int(pod.obj().node_name[1:])] -= _cpu(pod)
    return sum(left // cpu for left in free) >= members


def _best(nodes: list[int], pods: Sequence[PodBuilder], members: int, cpu: int) -> tuple[int, int] | None:
    """(violations, top priority) of the best set of victims."""
    found = []
    objects = [pod.obj() for pod in pods]
    candidates = [pod for pod in objects if pod.priority < 3]
    for count in range(len(candidates) + 1):
        for gone in combinations(candidates, count):
            if _fits(nodes, pods, {pod.name for pod in gone}, members, cpu):
                violations = sum(pod.labels == APP for pod in gone)
                found.append((violations, max((pod.priority for pod in gone), default=0)))
    return min(found, default=None)


@pytest.mark.parametrize(
    "protected", [pytest.param(3, id="few: all sets are tried"), pytest.param(30, id="many: each alone is tried")]
)
def test_one_large_protected_pod_goes_rather_than_two_small_ones(protected: int) -> None:
    """Though they are of lower priority: a violated budget counts for more."""
    small = [_pod(f"small{i}", "n1", 0, "1").labels(APP) for i in range(protected - 1)]
    pods = [*small, _pod("large", "n1", 5, "2").labels(APP)]
    plan = Cluster([_node("n1", protected + 1)], pods).plan(_members(1), pdbs=[PROTECTED.obj()])
    assert isinstance(plan, VictimPlan)
    assert {victim.pod.name for victim in plan.victims} == {"large"}


def test_more_sets_than_can_be_tried_are_not_tried_at_all() -> None:
    asked: list[int] = []

    def fits(gone: Collection[Evictable]) -> bool:
        asked.append(len(gone))
        return False

    pods = [_pod(f"p{i}", "n1").labels(APP).obj() for i in range(100)]
    region = [Evictable(PodInfo(pod), "n1", Kind.LONE) for pod in pods]
    few = FewestViolations(region, Budgets([PROTECTED.obj()], region), fits, lambda: False)
    assert few.allowed(at_most=60) is None
    assert asked == [1] * 100


def test_no_set_is_tried_when_the_time_is_up() -> None:
    region = [Evictable(_pod("p", "n1").labels(APP).info(), "n1", Kind.LONE)]
    budgets = Budgets([PROTECTED.obj()], region)
    assert FewestViolations(region, budgets, lambda gone: True, lambda: True).allowed(1) is None


def test_the_protected_go_when_nothing_else_helps() -> None:
    pods = [_pod("a", "n1").labels(APP), _pod("b", "n2", 100), _pod("c", "n3", 100)]
    plan = Cluster(NODES, pods).plan(_members(1), pdbs=[PROTECTED.obj()])
    assert isinstance(plan, VictimPlan)
    assert plan.cost[:2] == (1, 0)
    budget: PodDisruptionBudgetBuilder = PROTECTED
    assert budget.obj().status.disruptions_allowed == 0


def test_a_pod_in_the_way_of_room_that_is_promised_to_others_is_not_spared(cluster: type[Cluster]) -> None:
    """There is room for the gang beside the victim, but it is kept for another gang."""
    (member,) = _members(1, cpu="1")
    other = PodInfo(make_pod().name("other").priority(100).req(cpu="1").obj())
    request = Request(members=[member.info()], needed=1, promised=[("n1", other)])
    found = cluster([_node("n1")], [_pod("a", "n1", cpu="1")]).plan([member], request=request)
    assert isinstance(found, VictimPlan)
    assert [victim.pod.name for victim in found.victims] == ["a"]


@pytest.mark.parametrize(
    ("apart", "level"),
    [
        pytest.param(False, "", id="judged by arithmetic"),
        pytest.param(True, "", id="judged by the filters"),
        pytest.param(False, "host", id="domain by domain"),
    ],
)
def test_a_victim_s_gang_goes_with_its_member_whose_node_has_gone(
    apart: bool, level: str, cluster: type[Cluster]
) -> None:
    """Until its controller, or the garbage collector of pods, has found that out."""
    pods = [_pod("g0", "n1", gang="g"), _pod("g1", "gone", gang="g")]
    member = make_pod().name("m").priority(100).req(cpu="2").label("app", "m")
    member = member.pod_anti_affinity(HOSTNAME, selector({"app": "m"})) if apart else member
    topology = Topology((TopologyLevel("host", HOSTNAME),), required=level)
    request = Request(members=[member.info()], needed=1, topology=topology)
    plan = cluster([_node("n1")], pods, {"g": 2}).plan([member], request=request)
    assert isinstance(plan, VictimPlan)
    assert {victim.pod.name for victim in plan.victims} == {"g0", "g1"}


def test_a_member_whose_node_has_gone_gives_no_room(cluster: type[Cluster]) -> None:
    plan = cluster([_node("n1", 1)], [_pod("g0", "gone", gang="g")], {"g": 1}).plan(_members(1))
    assert isinstance(plan, NoPlacement)
