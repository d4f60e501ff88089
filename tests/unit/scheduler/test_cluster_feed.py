"""The feed of the page: one computation for all viewers, none without one, and each viewer ends up with all that happened."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from extender.api import codec
from extender.plugins.coscheduling.report.gang_status import GangSummary
from extender.plugins.coscheduling.report.page.picture import Change
from extender.plugins.coscheduling.report.page.stopwatch import Stopwatch
from extender.scheduler import cluster_feed
from extender.scheduler.cluster_feed import ClusterFeed, ClusterViewer
from extender.scheduler.interface import FeedClosedError, NotSyncedError, TooManyViewersError
from tests.e2e.processes import eventually
from tests.unit.scheduler.conftest import SECONDS, Bench

SOON = 0.001


def summary(namespace: str, name: str) -> GangSummary:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return GangSummary(namespace, name, "Denied", at, "InsufficientResources", "no room", 2, {"bound": 0})


class Cluster:
    """Fulfils Picture. The world is `gangs`; each change of it is what was put there since the last update."""

    def __init__(self) -> None:
        self.watch = Stopwatch()
        self.gangs: list[GangSummary] = []
        self.told = 0
        self.updated = 0
        self.closed = False
        self.fails = False

    def update(self) -> Change:
        self.updated += 1
        if self.fails:
            self.fails = False
            raise ValueError("a fault of ours")
        new, self.told = self.gangs[self.told :], len(self.gangs)
        return Change(gangs=new)

    def whole(self) -> Change:
        return Change(whole=True, gangs=self.gangs[: self.told])

    def close(self) -> None:
        self.closed = True


class Made:
    """The feed, and the pictures that it has had made."""

    def __init__(self) -> None:
        self.gangs: list[GangSummary] = []
        self.pictures: list[Cluster] = []
        self.feed = ClusterFeed(self._new, self.check)  # type: ignore[arg-type]
        self.synced = True

    def _new(self) -> Cluster:
        picture = Cluster()
        picture.gangs = self.gangs
        self.pictures.append(picture)
        return picture

    def check(self) -> None:
        if not self.synced:
            raise NotSyncedError(["pods not synced"])

    def add(self, *names: str, namespace: str = "a") -> None:
        self.gangs.extend(summary(namespace=namespace, name=name) for name in names)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    monkeypatch.setattr(cluster_feed, "LEAST_SECONDS", SOON)
    made = Made()
    yield made
    made.feed.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "page"]


class Reader:
    """What a page knows after its messages."""

    def __init__(self, viewer: ClusterViewer) -> None:
        self.viewer = viewer
        self.known: list[str] = []
        self.wholes = 0

    def read(self) -> None:
        text = self.viewer.next(SECONDS)
        assert text, "no message came"
        message: dict[str, Any] = json.loads(text)
        if message.get("whole"):
            self.known, self.wholes = [], self.wholes + 1
        self.known += [gang["name"] for gang in message.get("gangs", ())]

    def read_until(self, names: Sequence[str]) -> None:
        while self.known != list(names):
            self.read()


def test_a_viewer_has_the_whole_first_and_then_what_changes(made: Made) -> None:
    made.add("g1", "g2")
    reader = Reader(made.feed.open())
    reader.read()
    assert (reader.known, reader.wholes) == (["g1", "g2"], 1)
    made.add("g3")
    reader.read_until(["g1", "g2", "g3"])
    assert reader.wholes == 1
    assert reader.viewer.next(SOON) == b""


def test_all_viewers_share_one_picture_and_each_text(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []
    encode = codec.encode

    def noted(value: object) -> bytes:
        encoded.append(value)
        return encode(value)

    monkeypatch.setattr(codec, "encode", noted)
    readers = [Reader(made.feed.open()) for _ in range(5)]
    made.add("g1")
    for reader in readers:
        reader.read_until(["g1"])
    made.add("g2")
    for reader in readers:
        reader.read_until(["g1", "g2"])
    assert len(made.pictures) == 1
    assert len(encoded) <= 4, "once for the whole before and after g1, and once for each change"


def test_without_a_viewer_nothing_is_computed_and_the_next_one_has_a_new_picture(made: Made) -> None:
    assert made.pictures == []
    viewer = made.feed.open()
    viewer.next(SECONDS)
    viewer.close()
    eventually(lambda: made.pictures[0].closed, within=SECONDS, what="the picture is closed")
    eventually(lambda: made.feed._thread is None, within=SECONDS, what="the thread ends")
    updated = made.pictures[0].updated
    made.add("g1")
    reader = Reader(made.feed.open())
    reader.read_until(["g1"])
    assert (len(made.pictures), made.pictures[0].updated) == (2, updated)


def test_a_viewer_that_is_too_slow_for_the_changes_gets_the_whole_once_more(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = Reader(made.feed.open()), Reader(made.feed.open())
    slow.read()
    names = [f"g{number}" for number in range(cluster_feed.MAX_CHANGES + 3)]
    for number, name in enumerate(names):
        made.add(name)
        quick.read_until(names[: number + 1])
    slow.read_until(names)
    assert (slow.wholes, quick.wholes) == (2, 1)


def test_a_viewer_of_one_namespace_hears_of_no_other(made: Made) -> None:
    made.add("mine", namespace="a")
    made.add("theirs", namespace="b")
    reader, everything = Reader(made.feed.open("a")), Reader(made.feed.open())
    reader.read_until(["mine"])
    made.add("theirs-2", namespace="b")
    everything.read_until(["mine", "theirs", "theirs-2"])
    made.add("mine-2", namespace="a")
    reader.read_until(["mine", "mine-2"])


@pytest.mark.faults
def test_after_a_fault_viewers_have_the_whole_of_a_new_picture(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_feed, "AFTER_A_FAULT_SECONDS", SOON)
    reader = Reader(made.feed.open())
    reader.read()
    made.pictures[0].fails = True
    made.add("g1")
    eventually(lambda: len(made.pictures) == 2, within=SECONDS, what="there is a new picture")
    reader.read_until(["g1"])
    assert reader.wholes == 2
    assert made.pictures[0].closed


def test_there_are_so_many_viewers_at_most(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_feed, "MAX_VIEWERS", 2)
    first, _ = made.feed.open(), made.feed.open()
    with pytest.raises(TooManyViewersError, match="2 look at the page"):
        made.feed.open()
    first.close()
    made.feed.open()


def test_a_viewer_that_is_closed_meanwhile_is_told_at_once(made: Made) -> None:
    viewer = made.feed.open()
    viewer.next(SECONDS)
    closing = threading.Timer(SOON, viewer.close)
    closing.start()
    with pytest.raises(FeedClosedError):
        viewer.next(SECONDS)
    closing.join()
    viewer.close()


def test_before_the_cluster_has_been_seen_there_is_nothing_to_show(made: Made) -> None:
    made.synced = False
    with pytest.raises(NotSyncedError):
        made.feed.open()
    assert made.pictures == []


def test_at_the_end_every_viewer_is_told(made: Made) -> None:
    viewer = made.feed.open()
    viewer.next(SECONDS)
    made.feed.stop()
    with pytest.raises(FeedClosedError):
        viewer.next(SECONDS)
    with pytest.raises(FeedClosedError):
        made.feed.open()
    viewer.close()


@pytest.mark.parametrize(
    ("worked", "rests"),
    [
        pytest.param(0.0001, 0.1, id="little work, the least rest"),
        pytest.param(0.004, 0.4, id="a rest of a hundred times the work"),
        pytest.param(3.0, cluster_feed.MOST_SECONDS, id="the longest rest"),
    ],
)
def test_a_rest_is_in_proportion_to_the_work(worked: float, rests: float) -> None:
    assert cluster_feed.rest_after(worked) == pytest.approx(rests)


def test_the_scheduler_s_page_shows_a_pod_group_as_it_is_made(bench: Bench) -> None:
    bench.node("n1")
    viewer = bench.scheduler.feed().open()
    try:
        first = json.loads(viewer.next(SECONDS))
        assert [row[0] for row in first["nodes"]] == ["n1"]
        assert first["gangs"] == []
        bench.pod_group("g", 2)
        told: list[str] = []
        while not told:
            told = [gang["name"] for gang in json.loads(viewer.next(SECONDS)).get("gangs", ())]
        assert told == ["g"]
    finally:
        viewer.close()
