"""Whatever raises at one gang, in whichever function: the other gang and the single pod start, and it comes back by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import BackfillRules
from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.quarantine import BACK_OFF
from extender.plugins.coscheduling.report.largest_gang import LargestGang
from extender.plugins.coscheduling.scheduling import lost_slots
from extender.plugins.coscheduling.scheduling.phases import count_phases
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.injection import (
    BAD,
    BindingAgain,
    Fault,
    Place,
    called_by,
    is_bad,
    places,
    with_boundaries,
)
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, members, on_node
from tests.unit.plugins.coscheduling.preempting import Preempting

pytestmark = pytest.mark.faults

BOUNDARIES = (
    "plugin:",
    "extension_points.pre_filter:",
    "report.gang_report:GangReport.status",
    "report.gang_report:GangReport.line_of",
    "report.largest_gang:LargestGang._members",
    "scheduling.planning_order:PlanningLine._ranked_by",
    "scheduling.planning_order:take",
    "scheduling.planning_rounds:PlanningRounds.plan_one",
    "state.manager.line:Line.in_order",
    "preemption.guard:PreemptionGuard.review",
    "preemption.gang_preemption:GangPreemption._told",
    "preemption.terminating_victims:TerminatingVictims.go",
    "preemption.preemption:Preemption.on_pod",
    "preemption.evictable:running_gang",
    "preemption.evictable:running_members",
    "report.priority_remark:RemarkedVerdicts.decided",
    "report.gang_story:GangStories.decided",
    "quarantine:",
)
"""Where `for_gang` and `blame` stand, and what is around them: the framework's runtime, the server, the evictor."""

TRUSTED = (
    "preemption.evictable:_running",
    "report.gang_report:GangReport._set_aside",
    "preemption.evictable:",
    "preemption.reselection:",
    "preemption.gang_preemption:GangPreemption._until",
    "preemption.terminating_victims:VictimTermination.on_pod",
    "state.group_members:_follow_gate",
    "state.group_members:_follow_node",
    "state.group_members:_leave_scheduler",
    "state.group_members:_left_the_line",
    "state.group_members:_uncount",
    "state.group_members:",
    "spec.roles:role_of",  # two look-ups, by which members are counted
    "spec.sources.steps:step_of",  # likewise
    "state.slots:",
    "scheduling.lost_slots:fits_beside",  # these two once more below, beside slots of others
    "scheduling.lost_slots:no_longer_fit",
    "state.gang_queue:GangQueue.follow",
    "state.gang_queue:GangQueue._put",
    "planner.waits_for:WaitIndex.add",
    "state.group:",
)
"""What holds for a gang of which nothing else is known; arithmetic on pods that might be victims: where that raises the preemptor
finds none, or gives up once their time is over; arithmetic on slots that the plan of their own gang has done before; single assignments
to dictionaries, which nothing could make good."""

NAMELESS = (
    "spec.membership:",
    "state.pod_group_manager:PodGroupManager.key_of",
    "state.pod_group_manager:PodGroupManager.find",
    "state.pod_group_manager:PodGroupManager.holder_of",
    "extension_points.reserved_room:_coming",
)
"""The gang is not known yet, or it is a matter of all that is kept on a node: there need not be a gang that is set aside. Others
start all the same, but not in the room of pods of which it is not known whether they are members."""

KINDS = (ValueError, OverflowError, RecursionError, KeyError, AssertionError)
PLACES = [place for place in places() if not place.id.startswith(BOUNDARIES + TRUSTED)]


class Around(BindingAgain, Preempting):
    """Preempting, with the boundaries that are around the plugin."""

    def __init__(self, nodes: Sequence[corev1.Node]) -> None:
        world = World(nodes)
        world.connect(backfill=BackfillRules(after_seconds=5, max_seconds=60, max_nodes_percent=100))
        super().__init__(world)
        self.catch_up, _ = with_boundaries(world)
        self.set_aside: set[str] = set()
        quarantine = world.plugin.manager.quarantine
        begins = quarantine.on_set_aside

        def begin(key: str) -> None:
            self.set_aside.add(key)
            begins(key)

        quarantine.on_set_aside = begin

    def seconds_pass(self, seconds: float = 1.0, times: int = 3) -> None:
        for _ in range(times):
            self.world.clock.now += seconds
            self.catch_up()
            self.plugin.tick()
            self.end_all()

    def looked_at(self) -> Mapping[str, str]:
        """All pages and metrics; the reason of each gang in the list."""
        plugin = self.plugin
        report = plugin.report
        for key in list(plugin.manager.groups):
            assert report.status(key) is not None
        count_phases(plugin.manager)
        LargestGang(plugin.manager, plugin.rounds.requests.overlays, self.world.snapshot, Topology())()
        return {gang.key: gang.reason for gang in report.summaries()}


def of_priority(priority: int, *pods: corev1.Pod) -> list[corev1.Pod]:
    return [structs.replace(pod, spec=structs.replace(pod.spec, priority=priority)) for pod in pods]


def gated() -> Around:
    """Both gangs fit; bad comes first."""
    kube = Around([node("n1", "4"), node("n2", "4")])
    kube.apply(group("bad", 2), group("good", 2))
    kube.create(*members(2, "bad", gated=True), *members(2, "good", gated=True), member("single", ""))
    return kube


def plain() -> Around:
    kube = Around([node("n1", "4"), node("n2", "4")])
    kube.apply(group("bad", 2), group("good", 2))
    first, second = members(2, "bad")
    kube.create(*of_priority(1, first), second, *members(2, "good"), member("single", ""))
    return kube


def begun() -> Around:
    """A part of bad runs already, as after a restart."""
    kube = Around([node("n1", "4"), node("n2", "4")])
    kube.apply(group("bad", 2, match_policy="only-waiting"), group("good", 2))
    kube.create(on_node(member("bad0", "bad"), "n1"), member("bad1", "bad"), *members(2, "good"), member("single", ""))
    kube.plugin.rounds.begun.look_again()
    return kube


def too_large() -> Around:
    """Bad finds no room at first, waits long enough for nodes to be kept free for it, and evicts a pod for it."""
    kube = Around([node("n1", "2"), node("n2", "2")])
    kube.apply(group("bad", 2), group("good", 1))
    low = of_priority(-5, member("low", "", cpu=2))
    kube.create(*(on_node(pod, "n2") for pod in low))
    kube.create(*members(2, "bad", cpu=1, gated=True))
    kube.seconds_pass(3.0)
    kube.create(*of_priority(7, member("good0", "good"), member("single", "")))
    return kube


def victims() -> Around:
    """Bad runs, and good and the single pod need its room."""
    kube = Around([node("n1", "2"), node("n2", "2")])
    kube.apply(group("bad", 2), group("good", 2))
    running = of_priority(-5, *members(2, "bad", cpu=2))
    kube.create(*(on_node(pod, f"n{number}") for number, pod in enumerate(running, 1)))
    kube.create(*of_priority(5, *members(2, "good"), member("single", "")))
    return kube


def node_goes() -> Around:
    """With the places that bad has on it."""
    kube = Around([node("n1", "2"), node("n2", "4"), node("n3", "4")])
    kube.apply(group("bad", 3), group("good", 2))
    kube.create(*members(3, "bad", gated=True))
    kube.world.run_tasks()
    kube.world.clock.now += 1
    kube.plugin.tick()
    gone = kube.world.nodes.pop("n1")
    kube.plugin.on_node(gone, None)
    kube.create(*members(2, "good"), member("single", ""))
    return kube


STORIES = (gated, plain, begun, too_large, node_goes, victims)


def told(story: Callable[[], Around]) -> Around:
    kube = story()
    kube.end_all()
    kube.seconds_pass()
    kube.looked_at()
    return kube


@cache
def called(story: Callable[[], Around]) -> frozenset[str]:
    """The places that the bad gang comes to in it."""
    return called_by(partial(told, story), PLACES)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.id)
def test_a_fault_of_one_gang_is_its_own(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault(place, KINDS[PLACES.index(place) % len(KINDS)])
    nameless = place.id.startswith(NAMELESS)
    stories = [story for story in STORIES if place.id in called(story) and not (nameless and story is victims)]
    fault.inject(monkeypatch)
    for story in stories:
        fault.hits, fault.armed = 0, True
        kube = told(story)
        assert {"good0", "single"} <= kube.running(), f"{story.__name__}: {kube.told}"
        if story is not too_large:
            assert "good1" in kube.running(), f"{story.__name__}: {kube.told}"
        assert kube.set_aside <= {BAD}, story.__name__
        assert kube.set_aside or not fault.hits or nameless, story.__name__
        if kube.set_aside and BAD in kube.plugin.manager.groups:
            check_that_it_is_told(kube, fault, story.__name__)
        fault.armed = False
        kube.seconds_pass(BACK_OFF.longest_seconds, times=2)
        kube.seconds_pass(times=3)
        if fault.hits and story is not victims and not nameless:
            check_that_it_is_back(kube, story.__name__)


@pytest.mark.parametrize("name", ["fits_beside", "no_longer_fit"])
def test_a_fault_beside_the_slots_of_others_is_that_of_the_gang_that_is_planned(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the node has slots of its own plan alone they are not looked at again."""
    function = getattr(lost_slots, name)

    def faulty(*args: object) -> object:
        if any(is_bad(each) for arg in args if isinstance(arg, list) for each in arg):
            raise ValueError("a fault of ours")
        return function(*args)

    kube = Around([node("n1", "4")])
    kube.apply(group("good", 2), group("bad", 2))
    with monkeypatch.context() as patched:
        patched.setattr(lost_slots, name, faulty)
        kube.create(*members(2, "good", gated=True))
        kube.world.run_tasks()
        kube.create(*members(2, "bad", gated=True))
        kube.world.run_tasks()
        assert kube.set_aside == {BAD}
        assert kube.looked_at()[BAD] == "InternalError"
    kube.seconds_pass(BACK_OFF.longest_seconds, times=2)
    kube.seconds_pass(times=3)
    assert kube.running() == {"good0", "good1", "bad0", "bad1"}


def check_that_it_is_told(kube: Around, fault: Fault, story: str) -> None:
    assert any(messages.INTERNAL_ERROR in told and told.startswith(BAD) for told in kube.world.verdicts), story
    reason = kube.looked_at()[BAD]
    assert (reason == "InternalError") is bool(list(kube.plugin.manager.quarantine)), story


def check_that_it_is_back(kube: Around, story: str) -> None:
    assert {name for name in kube.running() if name.startswith("bad")} >= {"bad0", "bad1"}, f"{story}: {kube.told}"
    assert len(kube.plugin.manager.quarantine) == 0
    kube.plugin.pre_filter(CycleState(), member("later", ""), kube.world.snapshot().list())
