"""What fault runs hold against the history: what passes, and that each broken promise is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.e2e.fault_run.promises import Story, broken_promises
from tests.e2e.fault_run.wishes import Wish, wish
from tests.e2e.history import Change, Seen

A1, A2, B1 = ({"topology.kubernetes.io/zone": zone, "example.com/rack": rack} for zone, rack in ("a1", "a2", "b1"))
LABELS = {"a1": A1, "a1'": A1, "a2": A2, "b1": B1, "none": {}}


def change(
    at: float, name: str, node: str = "", *, gone: bool = False, leaving: bool = False, finished: bool = False
) -> Change:
    """A pod is named group/role-number."""
    group, _, rest = name.partition("/")
    role = rest.partition("-")[0]
    pod = Seen(name, f"default/{rest}", node, f"default/{group}", role=role, leaving=leaving, finished=finished)
    return Change(at, pod, gone)


def judged(history: Sequence[Change], *known: Wish, excused: Sequence[str] = ()) -> list[str]:
    names = frozenset(f"default/{name}" for name in excused)
    return broken_promises(Story(history, LABELS, names, 5, 100), {each.key: each for each in known})


def asking(name: str, least: int, **asked: str) -> Wish:
    return wish(
        f"default/{name}", least, {f"gang-extender.dev/{key.replace('_', '-')}": text for key, text in asked.items()}
    )


@pytest.mark.parametrize(
    ("level", "nodes", "broken"),
    [
        pytest.param("rack", ["a1", "a1'"], False, id="one rack"),
        pytest.param("rack", ["a1", "b1"], True, id="two racks of one name"),
        pytest.param("rack", ["a1", "a2"], True, id="two racks"),
        pytest.param("zone", ["a1", "a2"], False, id="one zone"),
        pytest.param("zone", ["none", "none"], True, id="no zone"),
        pytest.param("", ["a1", "none"], False, id="nothing is required"),
    ],
)
def test_topology(level: str, nodes: list[str], broken: bool) -> None:
    history = [change(number, f"g/w-{number}", node) for number, node in enumerate(nodes)]
    assert bool(judged(history, asking("g", 2, topology_required=level))) is broken


def test_a_gang_may_move_once_no_member_is_left() -> None:
    history = [change(0, "g/w-0", "a1"), change(9, "g/w-1", "b1"), change(9.1, "g/w-0", "a1", gone=True)]
    assert judged(history, asking("g", 1, topology_required="rack")) == []


@pytest.mark.parametrize("state", ["leaving", "finished"])
def test_a_gang_may_move_once_those_that_are_left_of_it_do_not_run_on(state: str) -> None:
    history = [change(0, "g/w-0", "a1"), change(9, "g/w-0", "a1", **{state: True}), change(9.1, "g/w-1", "b1")]
    assert judged(history, asking("g", 1, topology_required="rack")) == []


@pytest.mark.parametrize(
    ("history", "excused", "broken"),
    [
        pytest.param([change(0, "g/m-0", "a1"), change(1, "g/w-0", "a1")], [], False, id="a master and a worker"),
        pytest.param([change(0, "g/w-0", "a1"), change(1, "g/w-1", "a1")], [], True, id="workers alone"),
        pytest.param([change(0, "g/w-0", "a1"), change(1, "g/m-0", "a1")], [], False, id="the master a moment later"),
        pytest.param(
            [change(0, "g/m-0", "a1"), change(0, "g/w-0", "a1"), change(9, "g/m-0", "a1", gone=True)],
            [],
            True,
            id="the master was preempted, and the worker runs on",
        ),
        pytest.param(
            [change(0, "g/m-0", "a1"), change(0, "g/w-0", "a1"), change(9, "g/m-0", "a1", gone=True)],
            ["m-0"],
            False,
            id="the fault run took the master",
        ),
    ],
)
def test_roles(history: list[Change], excused: list[str], broken: bool) -> None:
    assert bool(judged(history, asking("g", 2, roles="m=1,w=1"), excused=excused)) is broken


@pytest.mark.parametrize(("blind_since", "broken"), [(0, False), (2, True)])
def test_a_member_that_no_watch_told_of_counts_for_its_role(blind_since: float, broken: bool) -> None:
    history = [change(0, "g/m-0"), change(1, "g/m-0", gone=True), change(9, "g/w-0", "a1")]
    story = Story(history, LABELS, frozenset({"default/m-0"}), 0.5, 100, known_since=lambda moment: blind_since)
    assert bool(broken_promises(story, {"default/g": asking("g", 2, roles="m=1,w=1")})) is broken


WHOLE = [change(0, "a/w-a", "a1"), change(0, "b/w-b", "a1")]


@pytest.mark.parametrize(
    ("history", "level", "broken"),
    [
        pytest.param(WHOLE, "", False, id="both"),
        pytest.param(WHOLE[:1], "", True, id="one without the other"),
        pytest.param([WHOLE[0], change(9, "b/w-b", "a1")], "", True, id="one long before the other"),
        pytest.param([*WHOLE, change(9, "b/w-b", gone=True)], "", False, id="one that is preempted later"),
        pytest.param(
            [*WHOLE, *[change(9, each, gone=True) for each in ("a/w-a", "b/w-b")], change(20, "a/w-2", "a1")],
            "",
            True,
            id="one that starts anew without the other",
        ),
        pytest.param([WHOLE[0], change(0, "b/w-b", "b1")], "rack", True, id="in two racks where one asks for one"),
        pytest.param([change(0, "b/w-2", "b1"), *WHOLE], "rack", False, id="one beyond the minima goes where it likes"),
        pytest.param(
            [*WHOLE, change(9, "b/w-2", "b1")], "rack", False, id="a member that comes later goes where its group may"
        ),
    ],
)
def test_groups_that_start_together(history: list[Change], level: str, broken: bool) -> None:
    a, b = asking("a", 1, groups="b", topology_required=level), asking("b", 1, groups="a")
    assert bool(judged(history, a, b)) is broken


def test_a_group_that_names_the_other_no_longer_starts_without_it() -> None:
    """Its object was made anew; what the other asks for, of a rack, is not for it."""
    a, b = asking("a", 1, groups="b", topology_required="rack"), asking("b", 1)
    assert judged([change(0, "b/w-0", "a1"), change(0, "b/w-1", "b1")], a, b) == []


RUNNING = [change(0, "g/w-0", "a1"), change(0, "g/w-1", "a1")]


@pytest.mark.parametrize(
    ("history", "broken"),
    [
        pytest.param(RUNNING, False, id="the first batch"),
        pytest.param([*RUNNING, change(5, "g/w-2"), change(6, "g/w-2", "a1")], True, id="one more alone"),
        pytest.param(
            [*RUNNING, *[change(at, f"g/w-{n}", node) for at, node in ((5, ""), (6, "a1")) for n in (2, 3)]],
            False,
            id="a second batch",
        ),
        pytest.param([RUNNING[0], change(5, "g/w-2"), change(6, "g/w-2", "a1")], False, id="what completes a fraction"),
        pytest.param(
            [*RUNNING, change(5, "g/w-2"), change(5, "g/w-3"), change(6, "g/w-2", "a1"), change(6, "g/w-3", gone=True)],
            False,
            id="half of a batch was deleted on its way",
        ),
        pytest.param([*RUNNING, change(5, "g/w-2")], False, id="one more that waits"),
        pytest.param(
            [*RUNNING, change(4, "g/w-1", "a1", leaving=True), change(5, "g/w-2"), change(6, "g/w-2", "a1")],
            False,
            id="what completes a gang of which one is about to go",
        ),
        pytest.param(
            [*RUNNING, change(4, "g/w-1", "a1", finished=True), change(5, "g/w-2"), change(6, "g/w-2", "a1")],
            False,
            id="what completes a gang of which one has finished",
        ),
    ],
)
def test_batches(history: list[Change], broken: bool) -> None:
    assert bool(judged(history, asking("g", 2, match_policy="only-waiting"))) is broken


@pytest.mark.parametrize(("most", "broken"), [(2, True), (3, False)])
def test_a_member_that_completed_a_gang_that_needed_more_then_was_not_added(most: int, broken: bool) -> None:
    history = [*RUNNING, change(5, "g/w-2"), change(6, "g/w-2", "a1")]
    asked = replace(asking("g", 2, match_policy="only-waiting"), most=most)
    assert bool(judged(history, asked)) is broken
