"""What is read off kube-scheduler's refusals, and how long places are kept for members that it has not asked us about."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.scheduling.rejected_in_tree import (
    LEASE_SECONDS,
    exclude_members_that_will_not_return,
    in_tree_reasons,
    lease_of,
    mark_rejections_current,
    note_refused,
    quote,
    refused_unasked,
)
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.refutations import QUOTED_AFTER, How
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

NAME = member("x").spec.scheduler_name
CPU = "0/3 nodes are available: 3 Insufficient cpu."


def refused(
    pod: corev1.Pod, text: str, *, type_: str = "PodScheduled", status: str = "False", reason: str = "Unschedulable"
) -> corev1.Pod:
    condition = corev1.PodCondition(type=type_, status=status, reason=reason, message=text)
    return structs.replace(pod, status=structs.replace(pod.status, conditions=(condition,)))


@pytest.mark.parametrize(
    ("text", "said", "reasons"),
    [
        pytest.param(CPU, "", "Insufficient cpu", id="one reason"),
        pytest.param(
            "0/3 nodes are available: 2 Insufficient memory, 1 Insufficient cpu.",
            "",
            "Insufficient cpu, Insufficient memory",
            id="two, in an order of their own",
        ),
        pytest.param(
            "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient cpu.", "", "Insufficient cpu", id="one twice"
        ),
        pytest.param(
            "0/3 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 2 Insufficient cpu.",
            "",
            "Insufficient cpu, node(s) had untolerated taint {a: b, c}",
            id="a reason with a comma in it",
        ),
        pytest.param(
            f"{CPU} preemption: 0/3 nodes are available: 3 No preemption victims found.",
            "",
            "Insufficient cpu",
            id="what preemption says is left out",
        ),
        pytest.param(
            "0/3 nodes are available: 1 Insufficient example.com/gpu, 2 Insufficient cpu.",
            "",
            "Insufficient cpu, Insufficient example.com/gpu",
            id="a name with a point in it",
        ),
        pytest.param(
            "0/3 nodes are available: 3 our own words.", "our own words", "", id="our filter has said it, and no other"
        ),
        pytest.param(
            "0/3 nodes are available: 1 our own words, 2 Insufficient cpu.",
            "our own words",
            "Insufficient cpu",
            id="our filter has said a part of it",
        ),
        pytest.param("running PreFilter plugin: no", "", "", id="another error"),
        pytest.param("", "", "", id="nothing"),
    ],
)
def test_the_reasons_of_a_refusal(text: str, said: str, reasons: str) -> None:
    assert in_tree_reasons(refused(member("g0"), text), said) == reasons


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(refused(member("g0"), CPU, type_="Ready"), id="another condition"),
        pytest.param(refused(member("g0"), CPU, status="True"), id="it has been scheduled"),
        pytest.param(refused(member("g0"), CPU, reason="SchedulerError"), id="an error"),
        pytest.param(member("g0"), id="no condition"),
    ],
)
def test_what_is_no_refusal_has_no_reasons(pod: corev1.Pod) -> None:
    assert in_tree_reasons(pod, "") == ""
    assert not refused_unasked(pod)


def nominated(pod: corev1.Pod) -> corev1.Pod:
    return structs.replace(pod, status=structs.replace(pod.status, nominated_node_name="n1"))


@pytest.mark.parametrize(
    ("pod", "unasked"),
    [
        pytest.param(refused(member("g0"), CPU), True, id="its own filters refused it"),
        pytest.param(nominated(refused(member("g0"), CPU)), False, id="it is nominated"),
        pytest.param(
            refused(member("g0"), f"0/3 nodes are available: 3 {messages.PLAN_PENDING}."), False, id="we refused it"
        ),
    ],
)
def test_whether_kube_scheduler_refused_a_member_before_it_asked(pod: corev1.Pod, unasked: bool) -> None:
    assert refused_unasked(pod) is unasked


# A gang of which members were refused


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    made = KubeScheduler(world([node("n1", "4"), node("n2", "4")]))
    made.apply(group())
    made.create(refused(member("g0"), CPU), refused(member("g1"), CPU.replace("cpu", "memory")), member("g2", cpu=2))
    return made


def gang(kube: KubeScheduler) -> Group:
    return kube.plugin.manager.groups["default/g"]


def rejects(kube: KubeScheduler, *names: str, epochs_ago: int = 0) -> None:
    for name in names:
        gang(kube).members[f"default/{name}"].rejected_in_tree = kube.plugin.manager.notes.cluster_epoch - epochs_ago


def forget(kube: KubeScheduler) -> None:
    for each in gang(kube).members.values():
        each.rejected_in_tree = None


def test_it_is_quoted_once_it_has_refused_several_places(kube: KubeScheduler) -> None:
    forget(kube)
    for number in range(QUOTED_AFTER):
        assert quote(gang(kube)) == ""
        gang(kube).refuted.add("default/g1", f"n{number}", How.REFUSED, 0.0)
    assert quote(gang(kube)) == "Insufficient memory"


def test_it_is_quoted_at_once_for_a_member_that_it_did_not_ask_about(kube: KubeScheduler) -> None:
    forget(kube)
    rejects(kube, "g0")
    assert quote(gang(kube)) == "Insufficient cpu"
    gang(kube).refuted.add("default/g1", "n1", How.REFUSED, 0.0)
    assert quote(gang(kube)) == "Insufficient memory", "the member whose place was refused last comes first"
    gang(kube).refuted.add("default/g2", "n1", How.REFUSED, 0.0)
    assert quote(gang(kube)) == "Insufficient memory", "the last says nothing"
    gang(kube).refuted.add("default/gone", "n1", How.REFUSED, 0.0)
    assert quote(gang(kube)) == "Insufficient memory", "the last is gone"
    gang(kube).refuted.forget("default/gone")


def test_when_we_begin_to_lead_what_was_refused_before_counts_as_now(kube: KubeScheduler) -> None:
    forget(kube)
    rejects(kube, "g0", epochs_ago=5)
    manager = kube.plugin.manager
    with manager.lock:
        mark_rejections_current(manager)
    assert gang(kube).rejected_in_tree() == {"default/g0": manager.notes.cluster_epoch}


@pytest.mark.parametrize(
    ("rejected", "nodes", "seconds", "lease"),
    [
        pytest.param(("g0", "g1"), ("g0", "g1"), 60.0, LEASE_SECONDS, id="none of them has come"),
        pytest.param(("g0",), ("g0", "g1"), 60.0, 60.0, id="one of them has"),
        pytest.param(("g0", "g1"), ("g0", "g1"), 10.0, 10.0, id="the usual time is shorter"),
        pytest.param(("g0", "g1"), (), 60.0, 60.0, id="none has a place"),
    ],
)
def test_how_long_places_are_kept_where(
    rejected: Collection[str], nodes: Collection[str], seconds: float, lease: float, kube: KubeScheduler
) -> None:
    forget(kube)
    rejects(kube, *rejected)
    assert lease_of((gang(kube),), [f"default/{name}" for name in nodes], seconds) == lease


@pytest.mark.parametrize(
    ("text", "expires", "kept"),
    [
        pytest.param(CPU, 1000.0, 100.0 + LEASE_SECONDS, id="by its own filters: for a shorter time"),
        pytest.param(CPU, 110.0, 110.0, id="and no longer than it was to be kept"),
        pytest.param(
            f"0/3 nodes are available: 3 {messages.PLAN_PENDING}.", 1000.0, None, id="for us: as long as before"
        ),
    ],
)
def test_the_place_of_a_member_that_kube_scheduler_refuses_is_kept(
    text: str, expires: float, kept: float | None, kube: KubeScheduler
) -> None:
    forget(kube)
    manager = kube.plugin.manager
    kube.plugin.on_pod(kube.pods["default/g0"], refused(kube.pods["default/g0"], text))
    forget(kube)
    with manager.lock:
        place = Slot(gang(kube).members["default/g0"].info, "default/g", "n1", expires)
        manager.slots.reserve(place)
        note_refused(manager, gang(kube), place)
        found = manager.slots.get("default/g0")
    assert found is not None
    assert found.expires == (kept or expires)
    assert gang(kube).rejected_in_tree() == ({"default/g0": manager.notes.cluster_epoch} if kept else {})


# Members that will not return


class Plan:
    """A plan that gave nodes to members of the gang. fits: whether we find a node for one alone."""

    def __init__(self, kube: KubeScheduler, *names: str, fits: bool = True) -> None:
        self.asked: list[planner.Request] = []
        self.fits = fits
        manager = kube.plugin.manager
        with manager.lock:
            request = kube.plugin.rounds.requests.question((gang(kube),), NAME, kube.world.snapshot()).request
        nodes = {f"default/{name}": "n1" for name in names}
        self.void = exclude_members_that_will_not_return(manager, (gang(kube),), request, nodes, self._fits)
        with manager.lock:
            self.nowhere = gang(kube).refuted.nowhere(manager.clock(), manager.notes.cluster_epoch)

    def _fits(self, request: planner.Request) -> bool:
        self.asked.append(request)
        return self.fits


def test_a_member_for_which_there_is_a_node_and_that_was_refused_will_not_come(kube: KubeScheduler) -> None:
    forget(kube)
    rejects(kube, "g0")
    found = Plan(kube, "g0", "g1")
    assert (found.void, found.nowhere) == (True, {"default/g0"})
    request = found.asked[0]
    assert [info.pod.name for info in request.members] == ["g0"]
    assert (request.needed, request.minima, request.foreseen) == (1, (), None)


def test_members_that_are_alike_are_asked_about_once(kube: KubeScheduler) -> None:
    forget(kube)
    kube.create(*members(2, prefix="h"))
    rejects(kube, "h0", "h1", "g2")
    found = Plan(kube, "h0", "h1", "g2")
    assert found.nowhere == {"default/h0", "default/h1", "default/g2"}
    assert [info.pod.name for request in found.asked for info in request.members] in (["h0", "g2"], ["g2", "h0"])


@pytest.mark.parametrize(
    ("names", "epochs_ago", "fits", "asked"),
    [
        pytest.param(("g0",), 1, True, 0, id="something has changed since"),
        pytest.param(("g1",), 0, True, 0, id="the plan has no node for it"),
        pytest.param(("g0",), 0, False, 1, id="there is no node for it alone: it is refused for what we know"),
    ],
)
def test_a_member_may_come_where(
    names: Collection[str], epochs_ago: int, fits: bool, asked: int, kube: KubeScheduler
) -> None:
    forget(kube)
    rejects(kube, "g0", epochs_ago=epochs_ago)
    found = Plan(kube, *names, fits=fits)
    assert (found.void, found.nowhere, len(found.asked)) == (False, set(), asked)
