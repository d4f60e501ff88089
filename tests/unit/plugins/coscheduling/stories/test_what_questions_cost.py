"""A question costs what it asks, whatever number of other gangs have places: the nodes that are cloned for it are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from extender.api import corev1
from extender.backend.cache.snapshot import Snapshot, new_snapshot
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.report.largest_gang import LargestGang
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import make_node, make_pod, make_pod_group
from tests.unit.plugins.coscheduling.cloned import counted_clones
from tests.unit.plugins.coscheduling.conftest import World
from tests.unit.plugins.coscheduling.preempting import Preempting

NODES = 420


class Cached(World):
    """Its snapshot is made once, as the cache makes a new one only for what has changed."""

    known: Snapshot | None = None

    def snapshot(self) -> Snapshot:  # type: ignore[override]
        if self.known is None:
            self.known = new_snapshot(self.on_nodes.values(), self.nodes.values())
        return self.known


def low(number: int) -> corev1.Pod:
    return make_pod().name(f"low{number}").node(f"n{number}").req(cpu=3).obj()


class Town:
    """A pod of low priority on each node; `others` pods of gangs have places on the last nodes, and one gang finds no room."""

    def __init__(self, others: int) -> None:
        nodes = [make_node().name(f"n{number}").capacity(cpu=4, pods=110).obj() for number in range(NODES)]
        self.world = Cached(nodes)
        self.kube = Preempting(self.world)
        self.kube.create(*map(low, range(NODES)))
        wanted = make_pod_group().namespace("default").name("g").min_member(2).created("2026-01-01T00:00:00Z").obj()
        self.kube.apply(wanted)
        members = [make_pod().name(f"g{number}").pod_group("g").priority(50).req(cpu=3) for number in range(2)]
        for number in range(others):
            self.promise(f"other{number}", f"n{NODES - 1 - number}")
        self.kube.create(*(member.obj() for member in members))
        self.world.known = None
        assert "Insufficient cpu" in self.world.filter(members[0].obj())
        plugin = self.world.plugin
        self.largest = LargestGang(plugin.manager, plugin.rounds.requests.overlays, self.world.snapshot, Topology())
        self.report = plugin.report
        self.report.explain_preemption = lambda key: None  # that is asked about by itself

    def promise(self, name: str, node_name: str) -> None:
        pod = make_pod().name(name).priority(100).req(cpu=1).obj()
        self.world.plugin.manager.slots.reserve(Slot(PodInfo(pod), "", node_name, 1e9))


def guarded(town: Town) -> None:
    vip = make_pod().name("vip").priority(50).req(cpu=3).obj()
    candidates = [Candidate(name, Victims((town.kube.pods[f"low{name[1:]}"],))) for name in ("n1", f"n{NODES - 1}")]
    assert len(town.kube.preemption.guard.assess(vip, candidates).usable) == 2


def victims_searched_for(town: Town) -> None:
    looked = town.kube.preemption.gangs.search.look("default/g")
    assert looked is not None
    assert len(looked.view.victims) == 2


def largest_gang(town: Town) -> None:
    assert town.largest().reference == {"cpu": 3000}


def relaxed(town: Town) -> None:
    town.world.clock.now += 10
    status = town.report.status("default/g")
    assert status is not None
    assert status.shortfall is not None


QUESTIONS: Mapping[str, Callable[[Town], None]] = {
    "the guard": guarded,
    "the search for victims": victims_searched_for,
    "the largest gang": largest_gang,
    "what would make it fit": relaxed,
}


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_question_costs_what_it_asks(asked: Callable[[Town], None], monkeypatch: pytest.MonkeyPatch) -> None:
    cost = []
    for others in (4, 400):
        town = Town(others)
        asked(town)
        town.promise("one more", "n2")
        with monkeypatch.context() as patch:
            cloned = counted_clones(patch)
            asked(town)
        cost.append(len(cloned))
    assert cost[1] <= cost[0]
    assert cost[1] < 60
