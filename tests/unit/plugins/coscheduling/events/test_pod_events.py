"""Of what happens to pods: held members start once they are enough; a slot that goes with its member is room for others; what is known
already changes nothing of a gang."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.state.member import MemberState
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

Make = Callable[..., World]


@pytest.mark.parametrize("early_start", [True, False], ids=["started early", "once complete"])
def test_a_member_too_many_that_is_deleted_before_its_gang_starts_leaves_its_room(
    early_start: bool, world: Make
) -> None:
    """Two of its three members are enough, and the plan stays: nothing else would tell the gang that the third one's room suffices for."""
    kube = KubeScheduler(world([node("n1", "5")], early_start=early_start))
    kube.plugin.tick()
    kube.apply(group("larger", 2), group("waits", 3))
    too_many, *_ = larger = members(3, "larger", gated=True)
    kube.create(*larger)
    waiting = members(3, "waits")
    kube.create(*waiting)
    kube.attempt(waiting[0].uid)
    assert kube.plugin.manager.groups["default/larger"].planned
    kube.delete(too_many)
    kube.run()
    assert all(kube.pods[pod.uid].node_name for pod in waiting)


def with_labels(pod: corev1.Pod, **labels: str) -> corev1.Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels={**pod.metadata.labels, **labels}))


@pytest.mark.parametrize(
    ("noted", "shown", "known"),
    [
        pytest.param("n1", on_node(member("g0"), "n1"), True, id="on the node that PostBind has noted"),
        pytest.param("n1", on_node(member("g0"), "n1", {START: "2"}), True, id="with our record of its start"),
        pytest.param("n1", on_node(member("g0"), "n2"), False, id="on another node"),
        pytest.param("", on_node(member("g0"), "n1"), False, id="before PostBind"),
        pytest.param("n1", with_labels(on_node(member("g0"), "n1"), a="b"), False, id="with another label"),
    ],
)
def test_a_binding_that_is_known_is_no_change_of_its_gang_when_the_watch_shows_it(
    noted: str, shown: corev1.Pod, known: bool, world: Make
) -> None:
    """What was found out of the gang since stands; the slot ends and the member is on its node all the same."""
    kube = KubeScheduler(world([node("n1"), node("n2")]))
    manager, first = kube.plugin.manager, member("g0")
    kube.apply(group("g", 2))
    kube.create(first, member("g1"))
    kube.attempt(first.uid)
    if noted:
        kube.plugin.gang_permit.bound(first, noted)
    manager.denied["default/g"] = "no room for the others"
    kube.plugin.on_pod(first, shown)
    assert ("default/g" in manager.denied) is known
    gang = manager.groups["default/g"]
    assert (gang.members[first.uid].state, gang.unconfirmed) == (MemberState.BOUND, set())
    assert manager.slots.get(first.uid) is None


LIGHTWEIGHT = "pod-group.scheduling.sigs.k8s.io"


def lightweight(pod: corev1.Pod, minimum: int) -> corev1.Pod:
    """Of a gang that its pods' labels alone make."""
    labels = {f"{LIGHTWEIGHT}/name": "g", f"{LIGHTWEIGHT}/min-available": str(minimum)}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


def all_but_the_last_are_held(kube: KubeScheduler, *pods: corev1.Pod) -> None:
    kube.create(*pods)
    kube.world.run_tasks()
    for pod in pods[:-1]:
        kube.bind_call(pod, kube.filter_call(pod))
    assert kube.held() == {pod.name for pod in pods[:-1]}


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node(f"n{number}", "2") for number in range(3)]))


def test_held_members_start_once_the_last_one_is_bound_by_another(kube: KubeScheduler) -> None:
    """Otherwise they waited until their holds timed out, for a bind call that never comes."""
    pods = members(3)
    kube.apply(group("g", 3))
    all_but_the_last_are_held(kube, *pods)
    kube.active.clear()
    kube.create(on_node(pods[2], "n2"))
    kube.run()
    assert kube.starts == [{"g0", "g1"}]


def test_held_members_start_once_the_last_one_is_waited_for_no_longer(kube: KubeScheduler) -> None:
    """The gang was whole, and has been scaled down since: what there is of it is enough."""
    first, *others = members(3)
    kube.apply(group("g", 3))
    kube.create(first, *others)
    kube.run()
    kube.delete(*others)
    replaced = members(2, prefix="new")
    all_but_the_last_are_held(kube, *replaced)
    kube.delete(replaced[1])
    kube.run()
    assert kube.starts == [{"g0", "g1", "g2"}, {"new0"}]


def test_held_members_start_once_their_own_labels_ask_for_no_more(kube: KubeScheduler) -> None:
    pods = [lightweight(member(f"g{number}", ""), 3) for number in range(3)]
    all_but_the_last_are_held(kube, *pods)
    kube.active.clear()
    for pod in pods:
        kube.pods[pod.uid] = lightweight(pod, 2)
        kube.plugin.on_pod(pod, kube.pods[pod.uid])
    kube.run()
    assert kube.starts == [{"g0", "g1"}]


@pytest.mark.parametrize("deleted", [True, False])
def test_the_room_of_a_held_member_that_is_deleted_is_found_once_its_bind_call_has_ended(
    deleted: bool, world: Make
) -> None:
    """The gang that waits is planned when the watch tells of the deletion, and the bind call has the room still. Of a member that is
    there yet nothing is told: its own gang would take the room at once."""
    kube = KubeScheduler(world([node("n0", "2"), node("n1", "1")]))
    kube.plugin.tick()
    kube.apply(group("g", 2), group("waits", 1))
    held, waits = member("g0", cpu=2), member("waits", "waits", cpu=2, gated=True)
    kube.create(held, member("g1"))
    kube.world.run_tasks()
    kube.bind_call(held, kube.filter_call(held))
    kube.create(waits)
    kube.world.run_tasks()
    assert "default/waits" in kube.plugin.manager.denied
    if deleted:
        kube.plugin.on_pod(kube.pods.pop(held.uid), None)
    kube.world.waiting.pop(held.uid)
    kube.plugin.unreserve(CycleState(), held, "n0")
    kube.world.run_tasks()
    kube.world.on_nodes.pop(held.uid)  # the cache forgets it
    kube.plugin.events.on_forgotten(on_node(held, "n0"))
    kube.world.run_tasks()
    assert (kube.plugin.manager.slots.get(waits.uid) is not None) is deleted
