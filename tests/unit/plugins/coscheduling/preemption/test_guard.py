"""What the guard lets kube-scheduler evict, which pods it tells, and what it takes back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock, call, patch

import pytest
from msgspec.structs import replace

from extender import metrics
from extender.api import corev1, policyv1
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import GangVictims
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.preemption.guard import PLACE_SECONDS, PreemptionGuard, Veto
from extender.plugins.coscheduling.preemption.rest_of_gangs import RestOfGangs
from extender.plugins.coscheduling.preemption.waiting_preemptors import WaitingPreemptors
from extender.plugins.coscheduling.scheduling.topology import GangSetDomains
from extender.plugins.coscheduling.state.slots import Slot
from extender.simulation.gangs import NoSteering
from tests.objects import make_node, make_pdb, make_pod
from tests.unit.plugins.coscheduling.conftest import LABEL, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.preemption.test_reselection import Guarded


@pytest.mark.parametrize(
    ("priority", "nodes", "veto"),
    [
        pytest.param(10, ["n2"], None, id="of equal priority it preempts where nothing is kept"),
        pytest.param(20, ["n1", "n2"], None, id="of higher priority anywhere"),
    ],
)
def test_no_pod_is_evicted_for_room_that_the_preemptor_may_not_have(
    priority: int, nodes: list[str], veto: Veto | None
) -> None:
    assert _look(priority, ["n1", "n2"]) == (nodes, veto)


def test_where_all_room_is_kept_no_pod_is_nominated() -> None:
    """kube-scheduler would count the nomination against those that come for their places."""
    assert _look(10, ["n1"]) == ([], Veto.GANG_FRACTION)


def _look(priority: int, offered: list[str]) -> tuple[list[str], Veto | None]:
    """A place is kept on n1, of two nodes that are full with a pod each."""
    low = [make_pod().name(f"low-{name}").node(name).req(cpu="1") for name in ("n1", "n2")]
    cluster = Guarded([make_node().name(name).capacity(cpu=1) for name in ("n1", "n2")], low)
    world = World([node("n1"), node("n2")])
    manager = world.plugin.manager
    member = pod("p0", "g", priority=10)
    world.create(member)
    manager.slots.reserve(Slot(PodInfo(member), "default/g", "n1", math.inf))
    guard = PreemptionGuard(
        manager,
        world.plugin.holds,
        Mock(spec_set=RestOfGangs),
        Mock(spec_set=WaitingPreemptors),
        world.plugin.rounds.requests.overlays,
        cluster.framework,
        newest_snapshot=cluster.cache.snapshot,
        pdbs=lambda: (),
        assumed=lambda: (),
        steering=OrderedSteering(NoSteering(), manager.quarantine),
    )
    victims = {builder.obj().node_name: builder.obj() for builder in low}
    candidates = [Candidate(name, Victims((victims[name],))) for name in offered]
    review = guard.assess(make_pod().name("vip").priority(priority).req(cpu="1").obj(), candidates)
    return sorted(candidate.name for candidate in review.usable), review.veto


@pytest.mark.parametrize(
    ("labels", "veto"),
    [
        pytest.param({"app": "web"}, Veto.GANG_FRACTION, id="a pod that it minds, in its zone"),
        pytest.param({"app": "other"}, None, id="a pod that it does not mind"),
    ],
)
def test_no_pod_is_evicted_where_a_member_to_come_elsewhere_would_not_have_the_preemptor(
    labels: dict[str, str], veto: Veto | None
) -> None:
    bench = Bench(n1=1)
    for name in ("n1", "n2"):
        bench.cluster.cache.add_node(make_node().name(name).label("zone", "z1").capacity(cpu=1).obj())
    bench.group("low", 2)
    offered = [bench.run(name, "n1", "low", cpu="500m") for name in ("low1", "low2")]
    member = (
        make_pod()
        .name("p0")
        .priority(100)
        .req(cpu="1")
        .pod_anti_affinity("zone", {"matchLabels": {"app": "web"}})
        .obj()
    )
    bench.manager.slots.reserve(Slot(PodInfo(member), "", "n2", math.inf))
    preemptor = replace(vip(), metadata=replace(vip().metadata, labels=labels))
    assert bench.guard().assess(preemptor, [offer("n1", *offered)]).veto is veto


class Bench:
    """Nodes of one CPU for each pod on them, and a guard whose dependencies note what they are told.

    A pod is on its node in the filters' snapshot and known to the gangs' state.
    """

    def __init__(self, **cpus: int) -> None:
        names = list(cpus)
        self.cluster = Guarded([make_node().name(name).capacity(cpu=cpus[name]) for name in names], [])
        self.world = World([node(name, str(cpus[name])) for name in names])
        self.manager = self.world.plugin.manager
        self.rest = Mock(spec_set=RestOfGangs)
        self.vetoed = Mock(spec_set=WaitingPreemptors)
        self.budgets: list[policyv1.PodDisruptionBudget] = []
        self.assumed: set[str] = set()
        self.domains = Mock(spec_set=GangSetDomains)
        self.domains.left.return_value = ""

    def guard(self, gang_victims: GangVictims = GangVictims.WHOLE_OR_SURPLUS) -> PreemptionGuard:
        return PreemptionGuard(
            self.manager,
            self.world.plugin.holds,
            self.rest,
            self.vetoed,
            self.world.plugin.rounds.requests.overlays,
            self.cluster.framework,
            newest_snapshot=self.cluster.cache.snapshot,
            pdbs=lambda: self.budgets,
            assumed=lambda: self.assumed,
            steering=OrderedSteering(self.world, self.manager.quarantine),
            gang_victims=gang_victims,
            domains=self.domains,
        )

    def group(self, name: str, min_member: int) -> None:
        self.world.plugin.on_pod_group(None, pod_group(name, min_member))

    def run(self, name: str, on: str, group: str = "", **spec: Any) -> corev1.Pod:
        made = pod(name, group, node_name=on, **spec)
        self.world.on_nodes[made.uid] = made
        self.world.create(made)
        self.cluster.cache.add_pod(made)
        return made

    def hold(self, name: str, on: str, group: str, **spec: Any) -> corev1.Pod:
        """Its bind call waits for the rest of its gang."""
        made = pod(name, group, **spec)
        self.world.create(made)
        assert self.world.bind(made, on) != "starts"
        self.cluster.cache.assume_pod(made, on)
        return self.world.on_nodes[made.uid]

    def waiting_for(self, group: str) -> str:
        return self.world.waiting[group].decision


def offer(node_name: str, *victims: corev1.Pod, violations: int = 0) -> Candidate:
    return Candidate(node_name, Victims(victims, violations))


def vip(priority: int = 100, cpu: str = "1", **spec: Any) -> corev1.Pod:
    return pod("vip", priority=priority, cpu=cpu, **spec)


def vetoes(veto: Veto) -> float:
    return float(metrics.preemption_vetoes.labels(veto.value)._value.get())


def names(candidates: Sequence[Candidate]) -> list[tuple[str, list[str]]]:
    return [(each.name, [victim.name for victim in each.victims.pods]) for each in candidates]


def test_where_no_gang_is_concerned_the_choice_is_kube_schedulers_the_most_important_victim_first() -> None:
    """All that it offers, though one would be better than the other, and the budgets that it counted."""
    bench = Bench(n1=2, n2=1)
    low, high = bench.run("low", "n1", priority=1), bench.run("high", "n1", priority=2)
    other = bench.run("other", "n2")
    offered = [offer("n1", low, high, violations=1), offer("n2", other)]
    assert bench.guard().review(vip(), offered) == [offer("n1", high, low, violations=1), offer("n2", other)]
    assert bench.rest.mock_calls == bench.vetoed.mock_calls == []


def test_a_gang_that_has_not_started_evicts_for_no_single_member() -> None:
    bench = Bench(n1=1, n2=1)
    low, other = bench.run("low", "n1"), bench.run("other", "n2")
    bench.group("g", 2)
    member = pod("p0", "g", priority=100)
    bench.world.create(member)
    before = vetoes(Veto.GANG_MEMBER)
    assert not bench.guard().review(member, [offer("n2", other), offer("n1", low)])
    assert vetoes(Veto.GANG_MEMBER) == before + 1
    assert bench.vetoed.mock_calls == [call.note_extra(member, "n2")], "where it might have preempted"
    assert not bench.guard().review(member, [])
    assert len(bench.vetoed.mock_calls) == 1, "of no candidate there is nothing to note"


@pytest.mark.parametrize(
    ("offered", "usable", "veto"),
    [
        pytest.param(["n2", "n3"], ["n3"], None, id="one in the rack"),
        pytest.param(["n2"], [], Veto.OUTSIDE_DOMAIN, id="none in the rack"),
    ],
)
def test_no_pod_is_evicted_outside_of_the_rack_that_the_preemptors_gang_is_in(
    offered: list[str], usable: list[str], veto: Veto | None
) -> None:
    """kube-scheduler asks us of no node that lacks room: a fault run of seed 24 saw victims in another rack, and the member bound there."""
    bench = Bench(n1=1, n2=1, n3=1)
    bench.group("g", 1)
    bench.run("p0", "n1", "g", priority=100)
    low = {name: bench.run(f"low-{name}", name) for name in ("n2", "n3")}
    bench.domains.left.side_effect = lambda group, uid, node_name, snapshot: "rack" if node_name == "n2" else ""
    member = pod("p1", "g", priority=100)
    bench.world.create(member)
    review = bench.guard().assess(member, [offer(name, low[name]) for name in offered])
    assert ([candidate.name for candidate in review.usable], review.veto) == (usable, veto)


def test_no_hold_is_ended_in_another_rack() -> None:
    bench = Bench(n1=1, n2=1)
    for name, least in (("g", 1), ("held", 2)):
        bench.group(name, least)
    bench.run("p0", "n1", "g", priority=100)
    bench.hold("h0", "n2", "held")
    bench.domains.left.return_value = "rack"
    member = pod("p1", "g", priority=100)
    bench.world.create(member)
    assert not bench.guard().review(member, [offer("n2")])
    assert bench.manager.slots.get("p1") is None


def test_a_gang_that_breaks_is_offered_alone_and_its_other_members_are_expected_to_go() -> None:
    bench = Bench(n1=1, n2=1, n3=1)
    bench.group("g", 2)
    a, b = bench.run("a", "n1", "g", priority=1), bench.run("b", "n2", "g", priority=1)
    bench.group("h", 2)
    x, _ = bench.run("x", "n3", "h", priority=2), bench.run("y", "n3", "h", priority=2)
    preemptor = vip()
    answer = bench.guard().review(preemptor, [offer("n3", x), offer("n2", b), offer("n1", a)])
    assert names(answer) == [("n1", ["a"])], "of two that cost the same the first by name, of two gangs the lower"
    (told,) = bench.rest.expect.call_args_list
    assert told.args[0] is preemptor
    assert (told.args[1].broken, [each.pod.name for each in told.args[1].elsewhere]) == ({"default/g"}, ["b"])
    assert bench.vetoed.mock_calls == []


def test_of_what_breaks_no_gang_all_of_the_best_rank_is_offered() -> None:
    """kube-scheduler's choice among them is its own; what it had chosen would have broken a gang."""
    bench = Bench(n1=2, n2=1, n3=1)
    bench.group("g", 2)
    a = bench.run("a", "n1", "g", priority=1)
    bench.run("b", "n1", "g", priority=1)
    second, third = bench.run("second", "n2", priority=1), bench.run("third", "n3", priority=1)
    answer = bench.guard().review(vip(), [offer("n3", third), offer("n1", a), offer("n2", second)])
    assert names(answer) == [("n3", ["third"]), ("n2", ["second"])]
    assert bench.rest.expect.call_args_list == []


def test_all_that_was_chosen_anew_is_told_the_best_first() -> None:
    """For evaluate, which shows what else there was."""
    bench = Bench(n1=1, n2=1)
    bench.group("g", 2)
    a, lone = bench.run("a", "n1", "g"), bench.run("lone", "n2")
    bench.run("b", "n1", "g")
    review = bench.guard().assess(vip(), [offer("n1", a), offer("n2", lone)])
    assert [each.node_name for each in review.selections] == ["n2", "n1"]
    assert names(review.usable) == [("n2", ["lone"])]


def test_budgets_that_the_new_choice_violates_are_told() -> None:
    bench = Bench(n1=3)
    bench.group("g", 2)
    members = [bench.run(name, "n1", "g", labels={LABEL: "g", "app": "web"}) for name in "abc"]
    bench.budgets = [make_pdb().name("web").match({"app": "web"}).disruptions_allowed(0).obj()]
    (answer,) = bench.guard().review(vip(), [offer("n1", members[0])])
    assert (len(answer.victims.pods), answer.victims.num_pdb_violations) == (1, 1)


def test_a_gang_that_runs_elsewhere_too_stays_where_we_may_not_evict() -> None:
    bench = Bench(n1=1, n2=1)
    bench.group("g", 2)
    a = bench.run("a", "n1", "g")
    bench.run("b", "n2", "g")
    bench.rest.allowed.return_value = False
    before = vetoes(Veto.GANG_FRACTION)
    preemptor = vip()
    assert not bench.guard().review(preemptor, [offer("n1", a)])
    assert vetoes(Veto.GANG_FRACTION) == before + 1
    assert bench.vetoed.mock_calls == [call.note_in_want_of_victims(preemptor, "n1", {"default/g"})]


def test_a_fraction_that_no_gang_would_be_wakes_no_pod() -> None:
    """Room is kept there, and no victim is of a gang."""
    bench = Bench(n1=1)
    low = bench.run("low", "n1")
    member = pod("p0", "g", priority=100)
    bench.world.create(member)
    bench.manager.slots.reserve(Slot(PodInfo(member), "default/g", "n1", math.inf))
    assert not bench.guard().review(vip(), [offer("n1", low)])
    assert bench.vetoed.mock_calls == []


def test_a_preemptors_own_place_is_not_kept_from_it() -> None:
    bench = Bench(n1=1)
    low, preemptor = bench.run("low", "n1"), vip()
    bench.manager.slots.reserve(Slot(PodInfo(preemptor), "", "n1", math.inf))
    assert names(bench.guard().review(preemptor, [offer("n1", low)])) == [("n1", ["low"])]


def test_a_node_that_is_gone_is_no_candidate() -> None:
    bench = Bench(n1=1)
    bench.group("g", 2)
    a, b = bench.run("a", "n1", "g"), pod("b", "g", node_name="gone")
    bench.world.create(b)
    assert names(bench.guard().review(vip(), [offer("gone", b), offer("n1", a)])) == [("n1", ["a"])]


@pytest.mark.parametrize(
    ("gang_victims", "victims"),
    [
        pytest.param(GangVictims.WHOLE_OR_SURPLUS, ["lone"], id="a lone pod goes in place of a member"),
        pytest.param(GangVictims.ANY, ["a"], id="any member may go: kube-scheduler's choice"),
    ],
)
def test_what_may_go_of_a_gang_is_configured(gang_victims: GangVictims, victims: list[str]) -> None:
    bench = Bench(n1=3)
    bench.group("g", 2)
    a = bench.run("a", "n1", "g")
    bench.run("b", "n1", "g")
    bench.run("lone", "n1")
    assert names(bench.guard(gang_victims).review(vip(), [offer("n1", a)])) == [("n1", victims)]


def test_that_any_member_may_go_holds_where_victims_are_chosen_anew() -> None:
    """Since one of kube-scheduler's is held in a bind."""
    bench = Bench(n1=4)
    bench.group("g", 3)
    members = [bench.run(name, "n1", "g") for name in "abc"]
    bench.group("h", 2)
    held = bench.hold("held", "n1", "h")
    answer = bench.guard(GangVictims.ANY).review(vip(cpu="2"), [offer("n1", held, members[0])])
    assert [len(victims) for _, victims in names(answer)] == [2]


def test_a_member_that_is_let_go_this_moment_is_no_victim() -> None:
    """It is on its node by our word only, and leaves it of itself."""
    bench = Bench(n1=1)
    bench.group("g", 2)
    member = pod("p0", "g")
    bench.world.create(member)
    on_node = bench.cluster.cache.assume_pod(member, "n1")
    bench.assumed = {member.uid}
    assert not bench.guard().review(vip(), [offer("n1", on_node)])


def test_members_beyond_what_a_finished_gang_needs_are_kube_schedulers_choice() -> None:
    """With minMember 1 no member needs another."""
    bench = Bench(n1=2)
    bench.group("g", 1)
    a = bench.run("a", "n1", "g")
    bench.run("lone", "n1")
    assert names(bench.guard().review(vip(), [offer("n1", a)])) == [("n1", ["a"])]


class TestHeldMembersLetGo:
    """They are all that is in the way: no pod is evicted."""

    def test_the_room_is_kept_for_the_preemptor(self) -> None:
        bench = Bench(n1=1, n2=1)
        bench.group("g", 2)
        held = bench.hold("p0", "n1", "g")
        bench.assumed = {held.uid}
        before = vetoes(Veto.HELD)
        preemptor = vip()
        assert not bench.guard().review(preemptor, [offer("n1", held)])
        assert vetoes(Veto.HELD) == before + 1
        assert bench.waiting_for("p0") == f"rejected: {messages.PREEMPTED}"
        (place,) = bench.manager.slots
        assert (place.pod, place.group, place.node_name) == (preemptor, "", "n1")
        assert place.expires == bench.world.clock.now + PLACE_SECONDS
        assert bench.vetoed.mock_calls == []

    def test_not_where_it_would_not_fit_without_them(self) -> None:
        bench = Bench(n1=2)
        bench.group("g", 2)
        held = bench.hold("p0", "n1", "g")
        low = bench.run("low", "n1")
        assert names(bench.guard().review(vip(cpu="2"), [offer("n1", held, low)])) == []
        assert bench.waiting_for("p0") == ""

    def test_not_where_another_is_to_have_their_room(self) -> None:
        bench = Bench(n1=1)
        bench.group("g", 2)
        held = bench.hold("p0", "n1", "g")
        other = pod("other", "h", priority=100)
        bench.world.create(other)
        bench.manager.slots.reserve(Slot(PodInfo(other), "default/h", "n1", math.inf))
        assert not bench.guard().review(vip(), [offer("n1", held)])
        assert bench.waiting_for("p0") == ""

    def test_of_several_nodes_the_one_with_the_fewest_gangs_then_members(self) -> None:
        bench = Bench(n1=2, n2=2, n3=1, n4=1)
        for group in ("g", "h", "i"):
            bench.group(group, 9)
        on = {
            "n1": [bench.hold("g0", "n1", "g"), bench.hold("h0", "n1", "h")],
            "n2": [bench.hold("g1", "n2", "g"), bench.hold("g2", "n2", "g")],
            "n4": [bench.hold("h1", "n4", "h")],
            "n3": [bench.hold("i0", "n3", "i")],
        }
        offered = [offer(node_name, *held) for node_name, held in on.items()]
        preemptor = vip()
        assert not bench.guard().review(preemptor, offered)
        (place,) = bench.manager.slots
        assert place.node_name == "n3", "one gang and one member, and its name is before the other's"
        assert {uid for uid, each in bench.world.waiting.items() if each.decision} == {"i0"}


class TestNominations:
    """kube-scheduler keeps one where our verb leaves no candidate: no other pod would have that room."""

    def refused(self, preemptor: corev1.Pod, bench: Bench, *, place: bool = False) -> None:
        bench.group("waits", 2)
        bench.world.create(preemptor)
        if place:
            bench.manager.slots.reserve(Slot(PodInfo(preemptor), "default/waits", "n1", math.inf))
        assert not bench.guard().review(preemptor, [])

    @staticmethod
    def nominated(node_name: str) -> corev1.Pod:
        bare = pod("p0", "waits")
        return replace(bare, status=replace(bare.status, nominated_node_name=node_name))

    def test_one_is_taken_back(self) -> None:
        bench = Bench(n1=1)
        self.refused(self.nominated("n1"), bench)
        assert bench.world.given_up == ["p0"]

    def test_without_one_nothing_is(self) -> None:
        bench = Bench(n1=1)
        self.refused(self.nominated(""), bench)
        assert bench.world.given_up == []

    def test_a_single_pods_is_taken_back_too(self) -> None:
        bench = Bench(n1=1)
        lone = pod("lone")
        lone = replace(lone, status=replace(lone.status, nominated_node_name="n1"))
        assert not bench.guard().review(lone, [])
        assert bench.world.given_up == ["lone"]

    def test_a_place_that_was_promised_keeps_its_own(self) -> None:
        bench = Bench(n1=1)
        self.refused(self.nominated("n1"), bench, place=True)
        assert bench.world.given_up == []

    def test_what_a_plan_has_nominated_the_plan_takes_back(self) -> None:
        """Its place has ended meanwhile."""
        bench, preemptor = Bench(n1=1), self.nominated("n1")
        bench.group("waits", 2)
        bench.world.create(preemptor)
        bench.manager.groups["default/waits"].members[preemptor.uid].nomination = "n1"
        assert not bench.guard().review(preemptor, [])
        assert bench.world.given_up == []

    @pytest.mark.faults
    @pytest.mark.parametrize(
        ("group", "set_aside"),
        [pytest.param("waits", ["default/waits"], id="a member"), pytest.param("", [], id="a lone pod")],
    )
    def test_where_that_raises_its_gang_is_set_aside_and_no_other(self, group: str, set_aside: list[str]) -> None:
        bench = Bench(n1=1)
        bench.group("waits", 2)
        preemptor = pod("p0", group)
        preemptor = replace(preemptor, status=replace(preemptor.status, nominated_node_name="n1"))
        bench.world.create(preemptor)
        with patch.object(bench.world, "clear_foreign_nominations", side_effect=KeyError("a fault of ours")):
            assert not bench.guard().review(preemptor, [])
        assert list(bench.manager.quarantine) == set_aside

    def test_where_a_candidate_is_left_it_stays(self) -> None:
        bench = Bench(n1=1)
        low, preemptor = bench.run("low", "n1"), pod("vip", priority=100)
        preemptor = replace(preemptor, status=replace(preemptor.status, nominated_node_name="n1"))
        assert bench.guard().review(preemptor, [offer("n1", low)])
        assert bench.world.given_up == []


@pytest.mark.faults
def test_where_the_look_at_the_gangs_raises_what_concerns_no_gang_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(n1=2, n2=1)
    bench.group("g", 2)
    member, lone = bench.run("a", "n1", "g"), bench.run("lone", "n1")
    other, higher = bench.run("other", "n2"), bench.run("higher", "n2", priority=1)
    guard = bench.guard()
    with patch.object(bench.cluster.cache, "snapshot", side_effect=KeyError("a fault of ours")):
        guard.newest_snapshot = bench.cluster.cache.snapshot
        answer = guard.review(vip(), [offer("n1", lone, member), offer("n2", other, higher)])
    assert names(answer) == [("n2", ["higher", "other"])]
    assert "unexpected error where=guard preemptor=default/vip" in caplog.text


@pytest.mark.faults
def test_a_candidate_that_may_concern_a_gang_or_not_is_not_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(n1=1, n2=1)
    unclear, lone = bench.run("unclear", "n1"), bench.run("lone", "n2")
    key_of = bench.manager.key_of

    def fault(asked: corev1.Pod) -> str:
        if asked.name in ("unclear", "vip"):
            raise KeyError("a fault of ours")
        return key_of(asked)

    with patch.object(bench.manager, "key_of", fault):
        answer = bench.guard().review(vip(), [offer("n1", unclear), offer("n2", lone)])
    assert names(answer) == [("n2", ["lone"])]
    assert caplog.text.count("unexpected error where=guard") == 2
    assert list(bench.manager.quarantine) == [], "no gang is known to be at fault"
