"""With only-waiting: a batch that was cut short by a restart is completed, and no other is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.spec.keys import BATCH
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

NOW = datetime(2026, 3, 2, 10, 0, 0, tzinfo=UTC)
LAST, BEFORE, LONG_AGO = (
    (NOW - ago).isoformat() for ago in (timedelta(seconds=3), timedelta(seconds=40), timedelta(hours=1))
)


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    """Room for eight. A group of batches of two: one of them waits alone."""
    made = KubeScheduler(world([node("n1", "4"), node("n2", "4")]))
    made.plugin.manager.wall = lambda: NOW
    made.apply(group(minimum=2, match_policy="only-waiting"))
    return made


def runs(name: str, batch: str) -> corev1.Pod:
    """Since before we began to lead."""
    pod = on_node(member(name), "n1")
    annotations = {BATCH: batch} if batch else {}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=annotations))


@pytest.mark.parametrize(
    ("running", "starts"),
    [
        pytest.param([BEFORE, BEFORE, LAST], [{"a"}], id="the last batch was cut short: it is completed"),
        pytest.param(["", "", LAST], [{"a"}], id="the batch before is of a time when none had a name"),
        pytest.param([LONG_AGO, LONG_AGO, LAST], [{"a"}], id="the batch before is old"),
        pytest.param([BEFORE, BEFORE], [], id="the last batch is whole"),
        pytest.param([LONG_AGO, BEFORE, BEFORE], [], id="a batch before lost a member: that is no fraction of a start"),
        pytest.param(["", "", LONG_AGO], [], id="the last began so long ago that it has lost a member since"),
        pytest.param(["", "", "yesterday"], [], id="somebody has written nonsense there"),
        pytest.param(["", "", "2026-03-02T10:00:00"], [], id="a time of no zone is nonsense too"),
        pytest.param([LAST], [{"a"}], id="the first batch was cut short"),
    ],
)
def test_after_a_restart_one_member_waits(running: list[str], starts: list[set[str]], kube: KubeScheduler) -> None:
    kube.create(*(runs(f"r{number}", batch) for number, batch in enumerate(running)), member("a"))
    kube.run()
    assert kube.starts == starts


def test_a_batch_that_was_completed_is_past_and_the_next_is_whole_again(kube: KubeScheduler) -> None:
    kube.create(runs("r0", BEFORE), runs("r1", BEFORE), runs("r2", LAST), member("a"))
    kube.run()
    assert kube.starts == [{"a"}]
    assert not kube.plugin.manager.groups["default/g"].earlier
    kube.delete(member("a"))
    kube.create(member("b"))
    kube.run()
    assert kube.starts == [{"a"}], "it is replaced by a batch, as ever"
    kube.create(member("c"))
    kube.run()
    assert kube.starts[1:] == [{"b", "c"}]


def test_a_batch_whose_last_member_goes_is_no_fraction_any_more(kube: KubeScheduler) -> None:
    kube.create(runs("r0", BEFORE), runs("r1", BEFORE), runs("r2", LAST))
    kube.plugin.rounds.finish_begun()
    kube.delete(member("r2"))
    kube.create(member("a"))
    kube.run()
    assert kube.starts == []


def last_batch(kube: KubeScheduler) -> str:
    return kube.plugin.manager.groups["default/g"].batch


def test_each_start_has_a_name_of_its_own(kube: KubeScheduler) -> None:
    kube.create(*members(2))
    kube.run()
    assert last_batch(kube) == "2026-03-02T10:00:00Z"
    kube.plugin.manager.wall = lambda: NOW + timedelta(seconds=1)
    kube.create(*members(2, prefix="h"))
    kube.run()
    assert last_batch(kube) == "2026-03-02T10:00:01Z"


def test_the_rest_of_a_batch_that_was_cut_short_has_its_name(kube: KubeScheduler) -> None:
    kube.create(runs("r0", BEFORE), runs("r1", BEFORE), runs("r2", LAST), member("a"))
    kube.run()
    assert last_batch(kube) == LAST


def test_other_policies_name_no_batches(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(*members(2))
    kube.run()
    assert (kube.starts, last_batch(kube)) == ([frozenset({"g0", "g1"})], "")
