"""What the pods of each gang show, as their events come."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from extender.api import codec, corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.scheduler.pod_groups.records import ELSEWHERE, Counts, Ended, Member, Records
from extender.scheduler.pod_groups.status import foreign_said

LABEL = "scheduling.x-k8s.io/pod-group"
OURS = "default-scheduler"


def pod(name: str, node: str = "", phase: str = "Pending", scheduler: str = OURS, group: str = "g") -> corev1.Pod:
    owner = {"kind": "Job", "name": "train", "uid": "j", "controller": True}
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {LABEL: group},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "schedulerName": scheduler},
        "status": {"phase": phase},
    }
    return codec.convert(body, corev1.Pod)


def is_there(key: str) -> bool:
    """Each gang has a PodGroup."""
    return True


def records(*by_us: str, there: Callable[[str], bool] = is_there) -> Records:
    def key_of(each: corev1.Pod) -> str:
        name = each.metadata.labels.get(LABEL, "")
        return f"default/{name}" if name else ""

    def is_by_us(each: corev1.Pod) -> bool:
        return each.name in by_us

    return Records(key_of, lambda name: name == OURS, there, is_by_us, is_by_us)


def test_a_pod_counts_from_its_creation_to_its_end() -> None:
    kept = records("a")
    waits, bound, runs = pod("a"), pod("a", "n1"), pod("a", "n1", "Running")
    assert set(kept.on_pod(None, waits)) == {"default/g"}
    assert (kept.counts("default/g").alive, kept.counts("default/g").scheduled) == (1, 0)
    kept.on_pod(waits, bound)
    kept.on_pod(bound, runs)
    found = kept.counts("default/g")
    assert (found.scheduled, found.running, found.nodes, found.owners) == (
        1,
        1,
        frozenset(["n1"]),
        frozenset(["default/train"]),
    )
    assert set(kept.on_pod(runs, None)) == {"default/g"}
    assert kept.counts("default/g").alive == 0


def test_an_event_that_changes_nothing_of_it_names_no_gang() -> None:
    kept = records()
    waits = pod("a")
    kept.on_pod(None, waits)
    told = replace(waits, status=replace(waits.status, nominated_node_name="n1"))
    assert set(kept.on_pod(waits, told)) == set()
    assert set(kept.on_pod(None, pod("single", group=""))) == set()


def test_a_pod_that_is_being_deleted_counts_no_longer() -> None:
    kept = records()
    runs = pod("a", "n1", "Running")
    kept.on_pod(None, runs)
    going = codec.convert(
        {
            **codec.to_builtins(runs),
            "metadata": {**codec.to_builtins(runs.metadata), "deletionTimestamp": "2026-03-02T12:00:00Z"},
        },
        corev1.Pod,
    )
    kept.on_pod(runs, going)
    assert kept.counts("default/g").alive == 0


def test_only_where_a_pod_has_left_its_node_it_is_asked_what_has_ended() -> None:
    kept = records()
    kept.on_pod(None, pod("a"))
    kept.on_pod(pod("a"), None)
    assert kept.counts("default/g").sure
    kept.on_pod(None, pod("b", "n1"))
    kept.on_pod(pod("b", "n1"), None)
    before = kept.counts("default/g")
    assert not before.sure
    kept.on_pod(None, pod("c", "n1"))
    kept.on_pod(pod("c", "n1"), None)
    kept.have_ended("default/g", Ended(succeeded=1), before.leavings)
    assert not kept.counts("default/g").sure, "one more has left since it was asked"
    kept.have_ended("default/g", Ended(succeeded=2), kept.counts("default/g").leavings)
    assert kept.counts("default/g").sure


def test_a_gang_that_was_over_and_is_made_once_more_is_asked_about_anew() -> None:
    kept = records()
    kept.have_ended("default/g", Ended(succeeded=3), 0)
    assert kept.counts("default/g").bound == 3
    kept.on_pod(None, pod("a"))
    assert not kept.counts("default/g").sure


def test_a_pod_that_changes_its_group_counts_in_the_other_one() -> None:
    kept = records()
    kept.on_pod(None, pod("a"))
    assert set(kept.on_pod(pod("a"), pod("a", group="h"))) == {"default/g", "default/h"}
    assert (kept.counts("default/g").alive, kept.counts("default/h").alive) == (0, 1)


def test_pods_of_other_schedulers_are_strangers_with_and_without_a_node() -> None:
    kept = records()
    kept.on_pod(None, pod("a", scheduler="other"))
    kept.on_pod(None, pod("b", "n1", scheduler="other"))
    assert dict(kept.counts("default/g").strangers) == {"other": 1}
    assert not kept.counts("default/g").ours


def test_a_binding_that_was_seen_and_is_not_ours_makes_a_stranger_for_good() -> None:
    kept = records("ours")
    for name in ("ours", "theirs"):
        kept.on_pod(None, pod(name))
        kept.on_pod(pod(name), pod(name, "n1"))
        kept.on_pod(pod(name, "n1"), pod(name, "n1", "Running"))
    assert dict(kept.counts("default/g").strangers) == {ELSEWHERE: 1}


def test_of_a_binding_that_was_not_seen_nothing_is_said() -> None:
    kept = records()
    kept.on_pod(None, pod("a", "n1"))
    assert dict(kept.counts("default/g").strangers) == {}


def test_a_member_on_a_node_shows_a_start_of_ours_or_none_and_then_for_good() -> None:
    kept = records("ours")
    for name in ("ours", "theirs"):
        kept.on_pod(None, pod(name, "n1"))
    kept.on_pod(None, pod("waits"))
    assert (kept.counts("default/g").scheduled, kept.counts("default/g").unstarted) == (2, 1)


def test_a_group_that_is_gone_leaves_its_pods() -> None:
    kept = records()
    kept.on_pod(None, pod("a"))
    kept.have_ended("default/g", Ended(succeeded=1), 0)
    kept.forget("default/g")
    assert (kept.counts("default/g").alive, kept.counts("default/g").ended) == (1, Ended())


def test_a_gang_without_a_pod_group_is_forgotten_with_its_last_member() -> None:
    there = {"default/with"}
    kept = records(there=there.__contains__)
    for group in ("with", "without"):
        a, b = pod(f"{group}-a", "n1", group=group), pod(f"{group}-b", "n2", group=group)
        kept.on_pod(None, a)
        kept.on_pod(None, b)
        kept.on_pod(a, None)
        assert kept.counts(f"default/{group}").leavings == 1
        kept.on_pod(b, None)
    assert kept.counts("default/without") == Counts()
    kept.have_ended("default/without", Ended(succeeded=2), 2)
    assert list(kept._records) == ["default/with"], "an answer that comes too late is not kept either"
    kept.have_ended("default/with", Ended(succeeded=2), 2)
    assert (kept.counts("default/with").bound, kept.counts("default/with").sure) == (2, True)
    there.clear()
    kept.forget("default/with")
    assert not kept._records


def test_a_group_that_is_made_anew_is_ours_where_members_that_stayed_are() -> None:
    for stays, ours in (("ours", True), ("theirs", False)):
        kept = records()
        pods = {"ours": pod("ours", "n1"), "theirs": pod("theirs", "n2", scheduler="other")}
        for each in pods.values():
            kept.on_pod(None, each)
        kept.on_pod(pods.pop("theirs" if ours else "ours"), None)
        kept.forget("default/g")
        assert (kept.counts("default/g").alive, kept.counts("default/g").ours) == (1, ours), stays


class NotWalked(dict[str, Member]):
    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all members are looked at")

    keys = values = items = __iter__  # type: ignore[assignment]


def test_an_event_of_one_member_looks_at_no_other() -> None:
    kept = records()
    for name in "abc":
        kept.on_pod(None, pod(name, f"n-{name}"))
    record = kept._records["default/g"]
    record.members = NotWalked(record.members)
    kept.on_pod(pod("a", "n-a"), pod("a", "n-a", "Running"))
    kept.on_pod(pod("b", "n-b"), None)
    found = kept.counts("default/g")
    assert (found.alive, found.running, found.nodes) == (2, 1, frozenset(["n-a", "n-c"]))


def test_counts_are_found_once_for_each_change() -> None:
    kept = records()
    kept.on_pod(None, pod("a", "n1"))
    before = kept.counts("default/g")
    assert kept.counts("default/g") is before
    kept.on_pod(pod("a", "n1"), pod("a", "n1", "Running"))
    assert kept.counts("default/g").running == 1
    assert kept.counts("default/g").nodes is before.nodes, "the nodes are the same, and so is what is said of them"
    kept.ask("default/g")
    assert not kept.counts("default/g").sure
    kept.have_ended("default/g", Ended(failed=1), 1)
    assert (kept.counts("default/g").sure, kept.counts("default/g").ended.failed) == (True, 1)


def test_what_is_counted_by_events_is_what_the_members_are() -> None:
    chance = random.Random(7)
    kept, there = records("m1", "m2", "m3"), dict[str, corev1.Pod]()
    for _ in range(2000):
        name = f"m{chance.randrange(8)}"
        old, new = there.pop(name, None), None
        if chance.random() < 0.8:
            node, phase = chance.choice(("", "n1", "n2", "n3")), chance.choice(("Pending", "Running"))
            new = there[name] = pod(name, node, phase, chance.choice((OURS, "other")), chance.choice("gh"))
        kept.on_pod(old, new)
        for key, record in kept._records.items():
            assert counted_anew(list(record.members.values())) == counted(kept.counts(key))


def counted(counts: Counts) -> tuple[object, ...]:
    return (
        counts.alive, counts.scheduled, counts.running, counts.unstarted, counts.nodes, counts.owners,
        dict(counts.strangers),
    )  # fmt: skip


def counted_anew(members: list[Member]) -> tuple[object, ...]:
    placed = [each for each in members if each.node]
    names = {each.stranger for each in members if each.stranger}
    return (
        len(members),
        len(placed),
        sum(each.running for each in members),
        sum(not each.started for each in placed),
        frozenset(each.node for each in placed),
        frozenset(each.owner for each in members if each.owner),
        {name: sum(each.stranger == name for each in placed) for name in names},
    )


def test_a_fraction_that_was_bound_as_the_leaders_changed_is_told_by_the_records_of_starts() -> None:
    """For the first seconds of a leader each binding may be its predecessor's; with one record of a start it may be, later too."""
    for started, told in (((), True), (("a",), False)):
        kept = records_of_a_new_leader(*started)
        for name in ("a", "b"):
            kept.on_pod(None, pod(name))
            kept.on_pod(pod(name), pod(name, "n1"))
        counts = kept.counts("default/g")
        assert dict(counts.strangers) == {}
        assert bool(foreign_said(GROUP, counts)) is told


GROUP = codec.convert({"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}, PodGroup)


def records_of_a_new_leader(*started: str) -> Records:
    return Records(
        lambda each: "default/g",
        lambda name: name == OURS,
        is_there,
        lambda each: True,
        lambda each: each.name in started,
    )
