"""The cache against the watch and against the API: what differs for good is named, what was only on its way is not."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from extender.client.errors import ApiError
from extender.client.interface import PODS
from extender.plugins.coscheduling.report.gang_dump import GangDump
from extender.scheduler.debugging import MOST_NAMES, Debugger
from extender.scheduler.interface import DEBUG_GANG, DEBUG_GANGS, BusyError
from tests.objects import make_node, make_pod
from tests.unit.scheduler.conftest import Bench


@pytest.fixture
def debugger(bench: Bench) -> Debugger:
    made = bench.scheduler._dependencies.debugger
    made.sleep = lambda seconds: None
    bench.node("n1")
    bench.node("n2")
    bench.pod("runs", node="n1")
    bench.pod("waits")
    return made


Plant = Callable[[Bench], None]


def lost_node(bench: Bench) -> None:
    bench.scheduler._dependencies.debugger.cache.remove_node(make_node().name("n2").obj())


def node_too_many(bench: Bench) -> None:
    bench.scheduler._dependencies.debugger.cache.add_node(make_node().name("ghost").obj())


def pod_too_many(bench: Bench) -> None:
    bench.scheduler._dependencies.debugger.cache.add_pod(make_pod().name("ghost").uid("ghost").node("n1").obj())


def lost_pod(bench: Bench) -> None:
    bench.scheduler._dependencies.debugger.cache.remove_pod(bench.store(PODS).get("default/runs"))


@pytest.mark.parametrize("against_api", [False, True], ids=["against the watch", "against the API"])
@pytest.mark.parametrize(
    ("plant", "nodes", "pods"),
    [
        pytest.param(None, ((), ()), ((), ()), id="nothing differs"),
        pytest.param(lost_node, (("n2",), ()), ((), ()), id="a node that was lost"),
        pytest.param(node_too_many, ((), ("ghost",)), ((), ()), id="a node too many"),
        pytest.param(lost_pod, ((), ()), (("default/runs",), ()), id="a pod that was lost"),
        pytest.param(pod_too_many, ((), ()), ((), ("default/ghost",)), id="a pod too many"),
    ],
)
def test_what_differs(
    bench: Bench, debugger: Debugger, against_api: bool, plant: Plant | None, nodes: object, pods: object
) -> None:
    if plant is not None:
        plant(bench)
    report = debugger.compare_cache(against_api)
    assert (report.of_nodes.missed_names, report.of_nodes.redundant_names) == nodes
    assert (report.of_pods.missed_names, report.of_pods.redundant_names) == pods
    assert report.differs is (plant is not None)


def test_what_comes_within_a_second_is_no_difference(bench: Bench, debugger: Debugger) -> None:
    node_too_many(bench)
    debugger.sleep = lambda seconds: debugger.cache.remove_node(make_node().name("ghost").obj())
    assert not debugger.compare_cache().differs


def test_a_pod_that_is_assumed_is_none(bench: Bench, debugger: Debugger) -> None:
    debugger.cache.assume_pod(make_pod().name("assumed").uid("assumed").node("n1").obj())
    report = debugger.compare_cache()
    assert (report.differs, report.assumed, report.nodes, report.pods) == (False, 1, 2, 2)


def test_of_thousands_that_differ_some_are_named(bench: Bench, debugger: Debugger) -> None:
    for number in range(MOST_NAMES + 5):
        debugger.cache.add_node(make_node().name(f"ghost-{number:04}").obj())
    found = debugger.compare_cache().of_nodes
    assert (found.redundant, len(found.redundant_names)) == (MOST_NAMES + 5, MOST_NAMES)


def test_an_api_server_that_does_not_answer_is_told_of(debugger: Debugger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> object:
        raise ApiError("pods is forbidden")

    monkeypatch.setattr(debugger.api, "list_page", refuse)
    report = debugger.compare_cache(True)
    assert (report.unanswered, report.differs, report.nodes) == ("pods is forbidden", False, 2)


def test_two_do_not_ask_at_once(debugger: Debugger) -> None:
    debugger._turns._wait_seconds = 0.0
    with debugger._turns.turn(), pytest.raises(BusyError, match="another question is being answered"):
        debugger.compare_cache()


def at_no_time(gang: GangDump) -> GangDump:
    """Without what is another millisecond later."""
    slots = tuple(msgspec.structs.replace(slot, expires_in=0) for slot in gang.slots)
    return msgspec.structs.replace(gang, slots=slots)


def test_the_state_of_gangs_is_shown_as_it_is(bench: Bench) -> None:
    pages = bench.scheduler.debug()
    bench.node("n1", cpu="4")
    bench.pod_group("train", 2)
    first, _ = bench.pod("train-0", "train"), bench.pod("train-1", "train")
    bench.filter(first, "n1")
    one = pages[DEBUG_GANG]("default/train")
    assert isinstance(one, GangDump)
    gangs = pages[DEBUG_GANGS]()
    assert isinstance(gangs, list)
    assert [at_no_time(each) for each in gangs] == [at_no_time(one)]
    assert [each.name for each in one.members] == ["train-0", "train-1"]
    assert one.members[0].state == "Admitted"
    assert {slot.node for slot in one.slots} == {"n1"}
    assert pages[DEBUG_GANG]("default/other") is None
