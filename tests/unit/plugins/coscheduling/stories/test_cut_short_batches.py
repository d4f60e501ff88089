"""With only-waiting: a batch that was cut short by a restart is completed, and no other is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state.member import Start
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, on_node
from tests.unit.plugins.coscheduling.managing import set_wall

NOW = datetime(2026, 3, 2, 10, 0, 0, tzinfo=UTC)
LAST, BEFORE, LONG_AGO = (
    (NOW - ago).isoformat() for ago in (timedelta(seconds=3), timedelta(seconds=40), timedelta(hours=1))
)


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    """Room for eight. A group of batches of two: one of them waits alone."""
    made = KubeScheduler(world([node("n1", "4"), node("n2", "4")]))
    set_wall(made.plugin.manager, lambda: NOW)
    made.apply(group(minimum=2, match_policy="only-waiting"))
    return made


def runs(name: str, batch: str) -> corev1.Pod:
    """Since before we began to lead."""
    pod = on_node(member(name), "n1")
    annotations = {START: f"{batch} 2"} if batch else {}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=annotations))


@pytest.mark.parametrize(
    ("running", "starts"),
    [
        pytest.param([BEFORE, BEFORE, LAST], [{"a"}], id="the last batch was cut short: it is completed"),
        pytest.param(["", "", LAST], [{"a"}], id="the batch before is of a time when none had a record"),
        pytest.param([LONG_AGO, LONG_AGO, LAST], [{"a"}], id="the batch before is old"),
        pytest.param([BEFORE, BEFORE], [], id="the last batch is whole"),
        pytest.param([LONG_AGO, BEFORE, BEFORE], [], id="a batch before lost a member: that is no fraction of a start"),
        pytest.param(["", "", LONG_AGO], [], id="the last began so long ago that it has lost a member since"),
        pytest.param(["", "", "yesterday"], [], id="nonsense was written there"),
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
    assert last_start(kube) is None
    kube.delete(member("a"))
    kube.create(member("b"))
    kube.run()
    assert kube.starts == [{"a"}], "it is replaced by a batch, as ever"
    kube.create(member("c"))
    kube.run()
    assert kube.starts[1:] == [{"b", "c"}]


def test_a_batch_whose_last_member_goes_is_no_fraction_any_more(kube: KubeScheduler) -> None:
    kube.create(runs("r0", BEFORE), runs("r1", BEFORE), runs("r2", LAST))
    kube.plugin.rounds.begun.finish()
    kube.delete(member("r2"))
    kube.create(member("a"))
    kube.run()
    assert kube.starts == []


def last_start(kube: KubeScheduler) -> Start | None:
    return kube.plugin.manager.groups["default/g"].start


def test_the_rest_of_a_batch_that_was_cut_short_has_its_record(kube: KubeScheduler) -> None:
    """A restart in the middle of that one finds the same start."""
    kube.create(runs("r0", BEFORE), runs("r1", BEFORE), runs("r2", LAST), member("a"))
    kube.plugin.rounds.begun.finish()
    assert kube.world.bind(member("a"), "n1") == "starts"
    start = last_start(kube)
    assert start is not None
    assert start.record.began == datetime.fromisoformat(LAST)
    assert start.members == {"default/r2", "default/a"}


def test_members_that_the_start_did_not_have_complete_no_batch(kube: KubeScheduler) -> None:
    """A record that names its members says so."""
    record = start_record(NOW, 2, ["default/r2", "default/gone"]).text()
    last = on_node(member("r2"), "n1")
    last = structs.replace(last, metadata=structs.replace(last.metadata, annotations={START: record}))
    kube.create(runs("r0", BEFORE), runs("r1", BEFORE), last, member("a"))
    kube.run()
    assert (kube.starts, last_start(kube)) == ([], None)
    kube.create(member("b"))
    kube.run()
    assert kube.starts == [{"a", "b"}], "they are a batch of their own"
