"""PodGroups tell what becomes of their gangs: written by the leader alone, seldom, and beside no other controller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from extender.api import codec, corev1
from extender.api.schedulingv1alpha1 import ManagedFieldsEntry, OwnedFields, OwnedStatus, PodGroup
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError, NotFoundError
from extender.client.interface import POD_GROUPS
from extender.client.short_steps import ShortSteps
from extender.client.store import Store
from extender.plugins.coscheduling.dependencies import SCHEDULED, WAITING, Verdict
from extender.scheduler.actions.verdicts import START_SECONDS, GroupVerdicts
from extender.scheduler.pod_groups.controller import (
    AGAIN_SECONDS,
    BETWEEN_SECONDS,
    LINE_SECONDS,
    MANAGERS_NAMED,
    MOST_SAID,
    QUIET_SECONDS,
    PodGroupController,
)
from extender.scheduler.pod_groups.records import Records
from extender.scheduler.pod_groups.status import InLine
from tests.unit.scheduler.pod_groups.test_records import LABEL, OURS, pod

TOO_FEW = Verdict(False, WAITING, "fewer pods exist than minMember of 3", "QuorumMissing")
STARTS = Verdict(True, SCHEDULED, "minMember of 3 is complete: the gang starts")


def key_of(each: corev1.Pod) -> str:
    name = each.metadata.labels.get(LABEL, "")
    return f"default/{name}" if name else ""


class Cluster:
    """PodGroups g and so on of three members; what is written of them is counted."""

    def __init__(self) -> None:
        self.api = EmbeddedAPI()
        self.now = 100.0
        self.leading = True
        self.line: Mapping[str, InLine] = {}
        self.ended: list[corev1.Pod] = []
        self.lists = 0
        self.answers = True
        self.patches: list[Any] = []
        self.events: list[tuple[str, str]] = []
        self.store: Store[PodGroup] = Store()
        self.pods: dict[str, corev1.Pod] = {}
        self.by_us = True
        self.refusal: Exception | None = None
        self.at_pause: Callable[[], object] = lambda: None
        patch = self.api.patch

        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.refusal is not None:
                raise self.refusal
            self.patches.append(args[2]["status"])
            return patch(*args, **kwargs)

        self.api.patch = counted  # type: ignore[method-assign]
        self.verdicts = GroupVerdicts(self.api, self, lambda: self.leading, lambda: self.now)
        self.controller = PodGroupController(
            self.verdicts.writer,
            self.store,
            Records(
                key_of,
                lambda name: name == OURS,
                lambda key: self.store.get(key) is not None,
                lambda _: self.by_us,
                lambda _: self.by_us,
            ),
            key_of,
            lambda: self.line,
            self._hand_over,
            self,
            self.verdicts.forget,
            lambda: self.leading,
            lambda: self.now,
            lambda: EachPauses(self),
        )

    def event(self, regarding: corev1.ObjectReference, event_type: str, reason: str, *_: object, **__: object) -> None:
        self.events.append((regarding.name, reason))

    def _hand_over(self, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
        self.lists += 1
        if self.answers:
            found(self.ended)

    def group(self, name: str = "g", minimum: int = 3) -> None:
        self.api.create(POD_GROUPS, {"metadata": {"name": name}, "spec": {"minMember": minimum}})
        self.show(name)

    def show(self, name: str = "g", manager: str = "") -> None:
        """As the watch does. manager: of the status's phase."""
        new = self.api.get(POD_GROUPS, name, "default")
        if manager:
            entry = ManagedFieldsEntry(manager, "status", OwnedFields(OwnedStatus({})))
            new = replace(new, metadata=replace(new.metadata, managed_fields=(entry,)))
        old = self.store.put(new)
        self.controller.on_pod_group(old, new)

    def drop(self, name: str = "g") -> None:
        """The PodGroup is deleted, and the watch shows it."""
        self.api.delete(POD_GROUPS, name, "default")
        gone = self.store.remove(f"default/{name}")
        self.controller.on_pod_group(gone, None)
        self.verdicts.on_pod_group(gone, None)

    def put(self, *names: str, node: str = "", phase: str = "Pending", scheduler: str = OURS, group: str = "g") -> None:
        for name in names:
            new = pod(name, node and f"{node}-{name}", phase, scheduler, group)
            self.controller.on_pod(self.pods.get(name), new)
            self.pods[name] = new

    def take(self, *names: str) -> None:
        for name in names:
            self.controller.on_pod(self.pods.pop(name), None)

    def end(self, *names: str, phase: str = "Succeeded") -> None:
        for name in names:
            self.ended.append(replace(self.pods[name], status=corev1.PodStatus(phase=phase)))
        self.take(*names)

    def decided(self, verdict: Verdict) -> None:
        self.verdicts.decided(self.store.get("default/g"), "default/g", verdict)

    def starts(self) -> None:
        self.verdicts.decided(self.store.get("default/g"), "default/g", STARTS)
        self.verdicts.flush()
        self.show()

    def passes(self, seconds: float = BETWEEN_SECONDS + 1) -> None:
        for _ in range(int(seconds)):
            self.now += 1.0
            self.verdicts.tick()
            self.controller.tick()
            self.controller.flush()
            for name in [each.metadata.name for each in self.store.list()]:
                self.show(name)

    def status(self, name: str = "g") -> dict[str, Any]:
        found: dict[str, Any] = codec.to_builtins(self.api.get(POD_GROUPS, name, "default").status)
        return found

    def conditions(self, name: str = "g") -> dict[str, str]:
        return {each["type"]: f"{each['status']} {each['reason']}" for each in self.status(name).get("conditions", ())}

    def stop(self) -> None:
        self.controller.stop()
        self.verdicts.stop()


class EachPauses(ShortSteps):
    """Pauses wherever it may, and does then what `at_pause` has of other threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def pause_if_due(self) -> None:
        assert not self._cluster.controller._lock.locked()
        self._cluster.at_pause()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    made.controller.tick()
    yield made
    made.stop()


def test_a_gang_from_its_first_pod_to_its_end(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b")
    cluster.passes(QUIET_SECONDS + 1)
    assert (cluster.status()["phase"], cluster.status()["bound"]) == ("Pending", "0/3")
    cluster.put("c")
    cluster.passes(QUIET_SECONDS + 1)
    assert (cluster.status()["phase"], cluster.status()["occupiedBy"]) == ("Scheduling", "default/train")
    cluster.starts()
    cluster.put("a", "b", "c", node="n")
    cluster.passes()
    assert (cluster.status()["phase"], cluster.status()["bound"]) == ("Scheduled", "3/3")
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes()
    assert (cluster.status()["phase"], cluster.status()["running"]) == ("Running", 3)
    cluster.end("a", "b", "c")
    cluster.passes()
    found = cluster.status()
    assert (found["phase"], found["succeeded"], found["bound"]) == ("Finished", 3, "3/3")
    assert cluster.conditions() == {"Scheduled": "True GangScheduled", "Finished": "True Succeeded"}


def test_nothing_is_kept_of_a_pod_group_that_is_deleted(cluster: Cluster) -> None:
    """Ten thousand of them were, each as the API server had answered last."""
    writer = cluster.verdicts.writer
    cluster.group()
    cluster.put("a", "b", "c", node="n")
    cluster.decided(STARTS)
    cluster.passes()
    assert len(writer._newest) == len(writer._written) == 1
    cluster.drop()
    assert len(writer._newest) == len(writer._written) == 0
    assert len(cluster.verdicts._last) == len(cluster.verdicts._started) == 0


def test_a_gang_that_comes_and_starts_costs_one_patch(cluster: Cluster) -> None:
    """As when 64 of them are made at once: they wait for members, start some seconds later, and are bound within a moment."""
    cluster.group()
    cluster.put("a")
    cluster.decided(TOO_FEW)
    cluster.passes(3)
    cluster.put("b", "c")
    cluster.passes(2)
    cluster.decided(STARTS)
    cluster.put("a", node="n")
    cluster.passes(3)
    assert cluster.patches == []
    cluster.put("b", "c", node="n")
    cluster.passes(1)
    assert cluster.conditions() == {"Scheduled": "True GangScheduled"}
    cluster.passes(30)
    [patch] = cluster.patches
    assert (patch["phase"], patch["bound"], patch["scheduled"]) == ("Scheduled", "3/3", 3)
    assert cluster.conditions() == {"Scheduled": "True GangScheduled"}


def test_a_start_of_which_members_are_not_bound_is_said_all_the_same(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.decided(STARTS)
    cluster.put("a", node="n")
    cluster.passes(START_SECONDS)
    assert cluster.conditions() == {"Scheduled": "True GangScheduled"}
    assert cluster.status()["bound"] == "1/3"


def test_a_gang_that_waits_for_members_says_so_within_ten_seconds_in_one_patch(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a")
    cluster.decided(TOO_FEW)
    cluster.passes(10)
    [patch] = cluster.patches
    assert patch["phase"] == "Pending"
    assert cluster.conditions() == {"Scheduled": "False QuorumMissing"}


def test_a_gang_whose_members_take_long_to_be_made_costs_one_patch_if_it_starts_then(cluster: Cluster) -> None:
    """As those of a large job: its controller makes some twenty pods a second."""
    cluster.group()
    for name in "abcdef":
        cluster.put(name)
        cluster.decided(TOO_FEW)
        cluster.passes(4)
    assert cluster.patches == []
    cluster.decided(STARTS)
    cluster.put("a", "b", "c", node="n")
    cluster.passes(1)
    assert [patch["bound"] for patch in cluster.patches] == ["3/3"]


def test_a_gang_whose_members_come_one_by_one_for_ever_says_within_half_a_minute_that_it_waits(
    cluster: Cluster,
) -> None:
    cluster.group()
    for number in range(8):
        cluster.put(f"member-{number}")
        cluster.decided(TOO_FEW)
        cluster.passes(4)
    assert cluster.conditions() == {"Scheduled": "False QuorumMissing"}
    assert len(cluster.patches) == 1


def test_what_has_a_node_is_written_though_nothing_had_one_a_moment_before(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.passes(4)
    cluster.put("a", "b", "c", node="n")
    cluster.passes(2)
    assert [patch["bound"] for patch in cluster.patches] == ["3/3"]


def test_a_gang_that_is_deleted_after_its_start_is_scheduled_no_more(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.starts()
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes()
    cluster.take("a")
    cluster.passes()
    assert cluster.conditions() == {"Scheduled": "True GangScheduled", "Degraded": "True BelowMinMember"}
    cluster.take("b", "c")
    cluster.passes()
    assert cluster.conditions() == {"Scheduled": "False QuorumMissing", "Degraded": "False MinMember"}
    assert cluster.status()["phase"] == "Pending"


def test_a_gang_that_was_preempted_says_so_until_it_starts_again(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.starts()
    cluster.put("a", "b", "c", node="n", phase="Running")
    disrupted = Verdict(False, "GangPreempted", "preempted by default/big", disrupted=True)
    cluster.verdicts.decided(cluster.store.get("default/g"), "default/g", disrupted)
    cluster.verdicts.flush()
    cluster.show()
    cluster.take("a", "b")
    cluster.passes()
    assert cluster.conditions() == {"Scheduled": "True GangScheduled", "DisruptionTarget": "True PreemptionByScheduler"}
    cluster.take("c")
    cluster.passes()
    assert cluster.conditions()["Scheduled"] == "False GangPreempted"
    cluster.put("d", "e", "f")
    cluster.starts()
    assert cluster.conditions() == {"Scheduled": "True GangScheduled", "DisruptionTarget": "False Scheduled"}


def test_pods_that_have_ended_are_not_taken_for_deleted_while_that_is_being_asked(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.starts()
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes()
    cluster.answers = False
    cluster.end("a", "b", "c")
    cluster.passes(12)
    assert (cluster.status()["phase"], cluster.lists) == ("Running", 5)  # three, then one in five seconds
    cluster.answers = True
    cluster.passes(12)
    assert cluster.conditions() == {"Scheduled": "True GangScheduled", "Finished": "True Succeeded"}


def test_pods_that_end_one_after_the_other_are_listed_once_in_five_seconds(cluster: Cluster) -> None:
    """But for the first three. A list is of all that have ended in the namespace, and each of a hundred gangs asked for one of its own."""
    names = [f"g{number}" for number in range(30)]
    for name in names:
        cluster.group(name, 1)
        cluster.put(f"{name}-0", node="n", phase="Running", group=name)
    cluster.passes()
    before = cluster.lists
    for name in names:
        cluster.end(f"{name}-0")
        cluster.passes(1)
    assert cluster.lists - before <= 2 + 30 / 5
    cluster.passes(12)
    assert [cluster.status(name)["succeeded"] for name in names] == [1] * 30


def test_a_gang_that_ends_right_after_another_is_finished_within_three_seconds(cluster: Cluster) -> None:
    for name in ("one", "other"):
        cluster.group(name, 1)
        cluster.put(f"{name}-0", node="n", phase="Running", group=name)
    cluster.passes()
    cluster.end("one-0")
    cluster.passes(1)
    cluster.end("other-0")
    cluster.passes(3)
    assert cluster.status("other")["phase"] == "Finished"


def test_another_phase_is_written_within_two_seconds_whatever_was_written_before(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.starts()
    cluster.put("a", "b", "c", node="n")
    cluster.passes(2)
    assert cluster.status()["phase"] == "Scheduled"
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes(2)
    assert (cluster.status()["phase"], cluster.status()["running"]) == ("Running", 3)
    cluster.put("a", node="n", phase="Pending")
    cluster.passes(1)
    cluster.put("a", node="n", phase="Running")
    before = len(cluster.patches)
    cluster.passes()
    assert len(cluster.patches) == before  # what passes within a second is not said


def test_counts_alone_are_written_at_most_once_in_five_seconds(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.passes()
    before = len(cluster.patches)
    for name in ("a", "b", "c"):
        cluster.put(name, node="n")
        cluster.passes(1)
    assert len(cluster.patches) <= before + 1
    cluster.passes()
    assert cluster.status()["bound"] == "3/3"
    assert len(cluster.patches) <= before + 2


def test_a_verdict_brings_the_counts_along(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.starts()
    (patch,) = cluster.patches
    assert (patch["phase"], patch["conditions"][0]["reason"]) == ("Scheduling", "GangScheduled")


def test_while_nothing_changes_nothing_is_written_nor_listed(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes()
    before = len(cluster.patches)
    cluster.passes(60)
    assert (len(cluster.patches), cluster.lists) == (before, 0)


def test_conditions_of_both_writers_stand_side_by_side(cluster: Cluster) -> None:
    """The verdict is decided on an object that is older than the last patch."""
    cluster.group()
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes()
    old = cluster.store.get("default/g")
    assert old is not None
    cluster.end("a", "b", "c")
    cluster.passes()
    cluster.verdicts.decided(old, "default/g", STARTS)
    cluster.verdicts.flush()
    assert cluster.conditions() == {"Finished": "True Succeeded", "Scheduled": "True GangScheduled"}


def test_a_replica_that_does_not_lead_writes_nothing_and_says_all_once_it_does(cluster: Cluster) -> None:
    cluster.leading = False
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.passes()
    assert cluster.patches == []
    cluster.leading = True
    cluster.passes(QUIET_SECONDS + 1)
    assert cluster.status()["phase"] == "Scheduling"


def test_a_status_that_waits_when_another_leads_is_not_written(cluster: Cluster) -> None:
    wait, began = threading.Event(), threading.Event()

    def blocks() -> None:
        began.set()
        wait.wait(5)

    cluster.group()
    cluster.put("a", "b", "c", node="n")
    cluster.verdicts.writer.pool.submit(blocks, "other")
    assert began.wait(5)
    for _ in range(int(BETWEEN_SECONDS) + 1):
        cluster.now += 1.0
        cluster.controller.tick()
    cluster.leading = False
    wait.set()
    cluster.controller.flush()
    assert cluster.patches == []


def test_after_a_restart_it_is_asked_which_pods_have_ended(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes()
    again = Cluster()
    again.api, again.ended = (
        cluster.api,
        [replace(each, status=corev1.PodStatus(phase="Succeeded")) for each in cluster.pods.values()],
    )
    again.verdicts.writer._api = cluster.api
    again.show()
    again.passes()
    assert (again.status()["phase"], again.status()["succeeded"]) == ("Finished", 3)
    again.stop()


def test_the_phase_is_left_to_another_controller_that_writes_it(cluster: Cluster) -> None:
    cluster.group()
    cluster.show(manager="controller")
    cluster.put("a", "b", "c", node="n", phase="Running")
    for _ in range(4):
        cluster.now += 1.0
        cluster.controller.tick()
        cluster.controller.flush()
    assert cluster.controller.other_managers == {"controller"}
    assert set(cluster.patches[-1]) == {"scheduled", "bound", "position", "missing", "wouldFit", "nodes"}


def test_so_many_other_controllers_are_named_and_so_much_of_each_name(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n")
    for number in range(MANAGERS_NAMED + 5):
        cluster.show(manager=f"{number:04}-{'x' * 100}")
        cluster.passes(1)
        cluster.show(manager=f"{number:04}-{'x' * 120}")
        cluster.passes(1)
    named = cluster.controller.other_managers
    assert (len(named), {len(each) for each in named}) == (MANAGERS_NAMED, {MOST_SAID})
    assert len([each for each in caplog.messages if "another controller" in each]) == MANAGERS_NAMED


def test_our_own_phase_is_none_of_another_controller(cluster: Cluster) -> None:
    cluster.group()
    cluster.show(manager="gang-extender")
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.passes()
    assert cluster.controller.other_managers == frozenset()
    assert cluster.status()["phase"] == "Running"


def test_the_line_is_shown_to_a_few_groups_at_a_time(cluster: Cluster) -> None:
    names = [f"g{number}" for number in range(20)]
    for name in names:
        cluster.group(name)
        cluster.put(*(f"{name}-{member}" for member in "abc"), group=name)
    cluster.passes(QUIET_SECONDS + 1)
    before = len(cluster.patches)
    cluster.line = {f"default/{name}": InLine(place, {"cpu": "2"}) for place, name in enumerate(names, 1)}
    cluster.passes(LINE_SECONDS)
    assert len(cluster.patches) == before + 20
    cluster.passes(LINE_SECONDS)
    assert len(cluster.patches) == before + 20
    assert [cluster.status(name)["position"] for name in names] == list(range(1, 21))
    assert cluster.status("g7")["missing"] == {"cpu": "2"}


def test_a_group_of_another_scheduler_is_not_written(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", scheduler="other")
    cluster.passes(60)
    assert cluster.patches == []


def test_a_fraction_that_another_scheduler_has_started_is_told_once_it_lasts(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", node="n", phase="Running", scheduler="default")
    cluster.passes(20)
    assert cluster.events == []
    cluster.passes(20)
    assert cluster.conditions() == {"Degraded": "True ForeignScheduler"}
    assert cluster.events == [("g", "ForeignScheduler")]
    assert cluster.controller.foreign() == 1


def test_a_member_that_something_else_has_bound_is_told_at_once(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.passes()
    cluster.by_us = False
    cluster.put("a", node="n")
    cluster.passes(3)
    assert cluster.conditions() == {"Degraded": "True ForeignScheduler"}
    assert cluster.events == [("g", "ForeignScheduler")]


def test_a_fraction_that_was_started_while_no_extender_led_is_told_at_once(cluster: Cluster) -> None:
    cluster.group()
    cluster.by_us = False
    cluster.put("a", "b", node="n")
    cluster.passes(3)
    assert cluster.conditions() == {"Degraded": "True ForeignScheduler"}
    assert cluster.events == [("g", "ForeignScheduler")]
    assert cluster.controller.foreign_text("default/g").startswith("2 of minMember 3 run, and this scheduler")


def test_a_gang_that_has_started_and_shrunk_is_none_of_another_scheduler(cluster: Cluster) -> None:
    """Members that came later bear no record, and the object says that the gang has started."""
    cluster.group()
    cluster.put("a", "b", "c", node="n")
    cluster.starts()
    cluster.by_us = False
    cluster.put("d", node="n")
    cluster.take("a", "b", "c")
    cluster.passes()
    assert cluster.conditions()["Degraded"] == "True BelowMinMember"
    assert cluster.controller.foreign() == 0


def test_what_a_leader_before_us_has_said_of_other_schedulers_counts_on(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", node="n", phase="Running", scheduler="default")
    cluster.passes(40)
    cluster.leading = False
    cluster.passes(2)
    assert cluster.controller.foreign() == 0
    cluster.leading = True
    cluster.passes(3)
    assert cluster.controller.foreign() == 1


def test_a_group_without_an_object_counts_too_where_some_pods_are_ours(cluster: Cluster) -> None:
    cluster.put("a")
    cluster.put("b", node="n", scheduler="default")
    cluster.passes(3)
    assert cluster.controller.foreign() == 1
    cluster.take("b")
    cluster.passes(3)
    assert cluster.controller.foreign() == 0


def test_the_reason_is_that_of_the_condition_that_tells_most(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n", phase="Running")
    cluster.starts()
    cluster.passes()
    assert cluster.status()["reason"] == "GangScheduled"
    cluster.take("c")
    cluster.passes(3)
    assert cluster.status()["reason"] == "BelowMinMember"
    cluster.put("d", node="n", phase="Running")
    cluster.passes()
    assert cluster.status()["reason"] == "GangScheduled"
    cluster.end("a", "b", "d")
    cluster.passes()
    assert (cluster.status()["phase"], cluster.status()["reason"]) == ("Finished", "Succeeded")


def test_a_refused_write_is_left_alone_for_a_while(cluster: Cluster) -> None:
    cluster.refusal = ForbiddenError("podgroups/status is forbidden")
    cluster.group()
    cluster.put("a", "b", "c")
    cluster.passes(QUIET_SECONDS + 1)
    cluster.refusal = None
    cluster.passes(AGAIN_SECONDS - 10)
    assert cluster.patches == []
    cluster.passes(12)
    assert cluster.status()["phase"] == "Scheduling"


def test_a_group_that_is_gone_leaves_nothing_behind(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n")
    cluster.passes()
    cluster.take("a", "b", "c")
    gone = cluster.store.remove("default/g")
    cluster.controller.on_pod_group(gone, None)
    cluster.passes(3)
    controller = cluster.controller
    kept = (
        controller._dirty,
        controller._due,
        controller._quiet_until,
        controller._wanted,
        controller._came,
    )
    assert [dict(each) for each in kept] == [{}] * 5
    assert cluster.controller._records._records == {}


def test_a_group_that_goes_before_its_pods_leaves_nothing_behind(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n")
    cluster.passes()
    cluster.drop()
    cluster.passes(3)
    cluster.take("a", "b", "c")
    cluster.passes(3)
    assert cluster.controller._records._records == {}


def test_a_write_that_fails_as_the_group_goes_leaves_nothing_behind(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n")
    cluster.passes(1)

    def refused(*args: Any, **kwargs: Any) -> Any:
        cluster.drop()
        raise NotFoundError("podgroups g not found")

    cluster.api.patch = refused  # type: ignore[method-assign]
    cluster.passes(6)
    assert cluster.store.get("default/g") is None
    assert (cluster.controller._due, cluster.controller._refused) == ({}, {})


def test_gangs_without_a_pod_group_leave_nothing_behind_where_we_do_not_lead_either(cluster: Cluster) -> None:
    for leading in (True, False):
        cluster.leading = leading
        for number in range(20):
            cluster.put("a", node="n", group=f"g{number}")
            cluster.passes(1)
            cluster.take("a")
        cluster.passes(10)
        controller = cluster.controller
        assert (controller._records._records, controller._came, controller._dirty) == ({}, {}, {}), leading


def test_the_next_group_of_that_name_is_another_schedulers_where_its_pods_are(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a", "b", "c", node="n")
    cluster.passes()
    cluster.drop()
    cluster.take("a", "b", "c")
    cluster.passes(3)
    cluster.patches.clear()
    cluster.group()
    cluster.by_us = False
    cluster.put("x", "y", "z", scheduler="volcano")
    cluster.put("x", "y", "z", scheduler="volcano", node="n")
    cluster.passes(20)
    assert (cluster.patches, cluster.events) == ([], [])


def test_what_other_schedulers_do_is_told_on_where_the_group_goes_and_its_pods_stay(cluster: Cluster) -> None:
    cluster.group()
    cluster.put("a")
    cluster.put("b", node="n", scheduler="volcano")
    cluster.passes()
    assert cluster.controller.foreign() == 1
    cluster.drop()
    cluster.passes(2)
    assert cluster.controller.foreign() == 1
    cluster.take("a", "b")
    cluster.passes(2)
    assert cluster.controller.foreign() == 0


def test_between_two_gangs_of_a_tick_others_have_their_turn(cluster: Cluster) -> None:
    for name in ("one", "other", "third"):
        cluster.group(name, 1)
        cluster.put(f"{name}-0", node="n", group=name)
    turns: list[int] = []
    cluster.at_pause = lambda: turns.append(1)
    cluster.controller.tick()
    assert len(turns) == 2 * 3, "as each is asked about, and as each is looked at"


def test_what_changes_while_a_tick_pauses_is_seen(cluster: Cluster) -> None:
    """A group gains a member before it is looked at, and another one goes before its turn; then we lead no more for a moment."""
    for name in ("gains", "goes"):
        cluster.group(name, 2)
        cluster.put(f"{name}-0", node="n", phase="Running", group=name)
    changes: list[Callable[[], object]] = [
        lambda: cluster.put("gains-1", node="n", phase="Running", group="gains"),
        lambda: None,
        lambda: cluster.controller.on_pod_group(cluster.store.remove("default/goes"), None),
        lambda: setattr(cluster, "leading", False),
    ]
    cluster.at_pause = lambda: changes.pop(0)() if changes else None
    cluster.passes(2)
    assert not changes
    cluster.leading = True
    cluster.passes()
    assert (cluster.status("gains")["phase"], cluster.status("gains")["running"]) == ("Running", 2)
    assert "default/goes" not in cluster.controller._due
