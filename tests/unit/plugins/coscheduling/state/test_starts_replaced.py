"""A gang that another scheduler has started, and whose controller makes a member anew: by what its pods show it has been whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.starts import note_replaced
from tests.unit.plugins.coscheduling.starting import bound_by
from tests.unit.plugins.coscheduling.state.test_group_members import put

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
SPEC = GroupSpec("default/g", 3)


def stamp(ago: float) -> str:
    return (NOW - timedelta(seconds=ago)).isoformat()


def member(name: str, job: str = "job", created: float | None = None, **status: str) -> corev1.Pod:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner] if job else []}
    if created is not None:
        metadata["creationTimestamp"] = stamp(created)
    spec = {"nodeName": "n1"} if status else {}
    return convert({"metadata": metadata, "spec": spec, "status": status}, corev1.Pod)


def runs(name: str, since: float | None = 100, job: str = "job", phase: str = "Running") -> corev1.Pod:
    """Its containers have started so many seconds ago."""
    return member(name, job, created=900, phase=phase, **({"startTime": stamp(since)} if since is not None else {}))


def waits(name: str, made: float | None = 40, job: str = "job") -> corev1.Pod:
    return member(name, job, created=made)


def gang(*pods: corev1.Pod) -> Group:
    group = Group("default/g")
    for each in pods:
        put(group, each)
    return group


RUN = (runs("a"), runs("b"))


@pytest.mark.parametrize(
    ("pods", "replaced"),
    [
        pytest.param([*RUN, waits("c")], True, id="made a minute after its siblings have started"),
        pytest.param([*RUN, waits("c", 41)], False, id="sooner"),
        pytest.param([*RUN, waits("c", 30)], True, id="none has been made for half a minute"),
        pytest.param([*RUN, waits("c", 29)], False, id="it was made just now: others may follow"),
        pytest.param([*RUN, waits("c"), waits("d", 29)], False, id="another was made just now"),
        pytest.param([*RUN, waits("c"), waits("d", 35)], True, id="two"),
        pytest.param([*RUN, waits("c", 35), waits("d", 90)], False, id="another has waited from the beginning"),
        pytest.param([*RUN, waits("c", None)], False, id="of unknown age"),
        pytest.param([*RUN, waits("c"), waits("d", None)], False, id="another is of unknown age"),
        pytest.param([*RUN, waits("c", job="")], False, id="of no controller"),
        pytest.param([*RUN, waits("c", job="next")], False, id="of another controller"),
        pytest.param([*RUN, waits("c"), waits("d", job="next")], False, id="of two controllers"),
        pytest.param([runs("a", job=""), waits("c", job="")], False, id="none is of a controller"),
        pytest.param([*RUN], False, id="none waits"),
        pytest.param([waits("c")], False, id="none runs"),
        pytest.param([runs("a", None), waits("c")], False, id="its sibling's containers have not started"),
        pytest.param([runs("a", phase="Pending"), waits("c")], False, id="its sibling does not run yet"),
        pytest.param([runs("a", 60), runs("b"), waits("c")], True, id="one of its siblings has run for long"),
        pytest.param([bound_by(runs("a"), 3, ["a", "b", "c"]), waits("c")], False, id="a start of ours is on record"),
        pytest.param([bound_by(runs("a"), 3, ["a", "b", "c"]), runs("b"), waits("c")], True, id="not of each sibling"),
    ],
)
def test_which_members_replace_others_of_a_gang_that_was_whole(pods: Sequence[corev1.Pod], replaced: bool) -> None:
    group = gang(*pods)
    assert note_replaced(group, SPEC, NOW) is replaced
    assert group.whole_of == (3 if replaced else 0)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(replace(SPEC, invalid="nonsense"), id="it asks for nonsense"),
        pytest.param(replace(SPEC, match_policy=MatchPolicy.ONLY_WAITING), id="each batch is a gang of its own"),
    ],
)
def test_of_which_gangs_no_member_replaces_another(spec: GroupSpec) -> None:
    group = gang(*RUN, waits("c"))
    assert not note_replaced(group, spec, NOW)
    assert group.whole_of == 0


@pytest.mark.parametrize(
    ("whole_of", "replaced"),
    [
        pytest.param(2, True, id="of fewer than it asks for now"),
        pytest.param(3, False, id="of as many"),
        pytest.param(4, False, id="of more"),
    ],
)
def test_what_is_known_already_is_not_noted_again(whole_of: int, replaced: bool) -> None:
    group = gang(*RUN, waits("c"))
    group.whole_of = whole_of
    assert note_replaced(group, SPEC, NOW) is replaced
    assert group.whole_of == max(3, whole_of)
