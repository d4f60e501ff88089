"""How far each member of a group has come, as events and assumptions tell it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api import corev1
from extender.backend.cache.pod_group_state import GroupCounts, MemberState, PodGroupStates
from tests.unit.backend.objects import a_pod

GANG = {"gang": "g"}


def key_of(pod: corev1.Pod) -> str | None:
    name = pod.labels.get("gang")
    return None if name is None else f"{pod.namespace}/{name}"


def member(node: str = "", *, gated: bool = False, deleting: bool = False, phase: str = "Pending") -> corev1.Pod:
    return a_pod("p", node, labels=GANG, gates=["x"] if gated else [], deleting=deleting, phase=phase)


Step = Callable[[PodGroupStates], object]


@pytest.mark.parametrize(
    ("steps", "state", "node"),
    [
        pytest.param([lambda s: s.update(member())], MemberState.PENDING, "", id="seen"),
        pytest.param([lambda s: s.update(member(gated=True))], MemberState.GATED, "", id="gated"),
        pytest.param(
            [lambda s: s.update(member(gated=True)), lambda s: s.update(member())],
            MemberState.PENDING,
            "",
            id="ungated",
        ),
        pytest.param(
            [lambda s: s.update(member()), lambda s: s.assume(member(), "n1")], MemberState.ASSUMED, "n1", id="assumed"
        ),
        pytest.param(
            [lambda s: s.update(member()), lambda s: s.assume(member(), "n1"), lambda s: s.update(member())],
            MemberState.ASSUMED,
            "n1",
            id="an update without news leaves it assumed",
        ),
        pytest.param(
            [lambda s: s.update(member()), lambda s: s.assume(member(), "n1"), lambda s: s.forget(member())],
            MemberState.PENDING,
            "",
            id="forgotten",
        ),
        pytest.param(
            [lambda s: s.update(member()), lambda s: s.assume(member(), "n1"), lambda s: s.update(member("n2"))],
            MemberState.ASSIGNED,
            "n2",
            id="assigned where the event says",
        ),
        pytest.param(
            [lambda s: s.update(member("n1")), lambda s: s.assume(member(), "n2")],
            MemberState.ASSIGNED,
            "n1",
            id="an assigned member is not assumed again",
        ),
        pytest.param(
            [lambda s: s.update(member("n1")), lambda s: s.forget(member())],
            MemberState.ASSIGNED,
            "n1",
            id="an assigned member is not forgotten",
        ),
        pytest.param(
            [lambda s: s.update(member("n1")), lambda s: s.update(member("n1", deleting=True))],
            MemberState.DELETING,
            "n1",
            id="deleting, still on its node",
        ),
        pytest.param(
            [
                lambda s: s.update(member()),
                lambda s: s.assume(member(), "n1"),
                lambda s: s.update(member(deleting=True)),
            ],
            MemberState.DELETING,
            "n1",
            id="deleted while assumed",
        ),
    ],
)
def test_member_state(steps: list[Step], state: MemberState, node: str) -> None:
    states = PodGroupStates(key_of)
    for step in steps:
        step(states)
    found = states.member("uid-p")
    assert found is not None
    assert (found.state, found.node_name) == (state, node)
    assert states.counts("default/g") == GroupCounts(**{state.value: 1})
    assert states.key_of("uid-p") == "default/g"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda s: s.remove(member()), id="removed"),
        pytest.param(lambda s: s.update(member("n1", phase="Succeeded")), id="it has succeeded"),
        pytest.param(lambda s: s.update(a_pod("p")), id="it lost its label"),
    ],
)
def test_a_group_without_members_is_gone(end: Step) -> None:
    states = PodGroupStates(key_of)
    states.update(member())
    end(states)
    assert states.groups() == {}
    assert states.member("uid-p") is None
    assert states.counts("default/g") == GroupCounts()


def test_a_member_that_changes_its_label_moves_with_its_place() -> None:
    states = PodGroupStates(key_of)
    states.update(member())
    states.assume(member(), "n1")
    assert states.update(a_pod("p", labels={"gang": "other"})) == "default/other"
    assert states.counts("default/g").total == 0
    assert states.counts("default/other").assumed == 1


def test_counts_add_up() -> None:
    states = PodGroupStates(key_of)
    for number, pod in enumerate(["", "", "n1"]):
        states.update(a_pod(f"p{number}", pod, labels=GANG))
    states.update(a_pod("gated", labels=GANG, gates=["x"]))
    states.update(a_pod("going", "n1", labels=GANG, deleting=True))
    states.assume(a_pod("p0"), "n2")
    counts = states.counts("default/g")
    assert (counts.alive, counts.placed, counts.total) == (4, 2, 5)
    assert [each.pod.name for each in states.members("default/g")] == ["p0", "p1", "p2", "gated", "going"]
    assert states.members("default/none") == ()


def test_pods_without_a_group_are_nobodys() -> None:
    states = PodGroupStates(key_of)
    assert states.update(a_pod("p")) is None
    assert states.remove(a_pod("p")) is None
    states.assume(a_pod("p"), "n1")
    states.forget(a_pod("p"))
    assert states.groups() == {}
