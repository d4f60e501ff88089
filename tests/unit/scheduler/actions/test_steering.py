"""What goes to the API server to move a pod: in which order, how often, and what is left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from extender import metrics
from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError, ConflictError, ConnectionFailedError, ForbiddenError, NotFoundError
from extender.client.interface import PODS
from extender.retry import Retry
from extender.scheduler.actions import steering as module
from extender.scheduler.actions.steering import WAKE_ANNOTATION, StatusSteering
from extender.scheduler.actions.wake_by import WakeBy

GATE = {"name": "scheduling.x-k8s.io/gang"}
OTHER = {"name": "example.com/quota"}
Make = Callable[..., "Story"]


class ScriptedAPI(EmbeddedAPI):
    """Notes the patches; raises what the script says, a patch each; a patch may be told to wait."""

    def __init__(self, script: Sequence[ApiError]) -> None:
        super().__init__()
        self.patches: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun = threading.Event()
        self.forbid_annotations = False
        self._script = list(script)

    def raises(self, *errors: ApiError) -> None:
        self._script += errors

    def patch(self, resource: Any, name: str, body: Any, **options: Any) -> Any:
        self.begun.set()
        self.go_on.wait(5)
        kind = options.get("subresource") or ("gates" if "spec" in body else "annotations")
        self.patches.append(f"{name} {kind}")
        if self._script:
            raise self._script.pop(0)
        if kind == "annotations" and self.forbid_annotations:
            raise ForbiddenError("no")
        return super().patch(resource, name, body, **options)


class Story:
    def __init__(self, *script: ApiError, leading: bool = True, by_annotation: bool = False) -> None:
        self.api = ScriptedAPI(script)
        self.leading = leading
        wake_by = WakeBy(self.api, "annotation" if by_annotation else "auto")
        self.clock = 100.0
        self.steering = StatusSteering(self.api, lambda: self.leading, wake_by=wake_by, clock=lambda: self.clock)

    def pod(self, name: str, *gates: dict[str, str]) -> corev1.Pod:
        spec = {"containers": [{"name": "c"}], "schedulingGates": list(gates)}
        return self.api.create(PODS, {"metadata": {"name": name}, "spec": spec})

    def now(self, pod: corev1.Pod) -> corev1.Pod:
        return self.api.get(PODS, pod.name, pod.namespace)

    def gates(self, pod: corev1.Pod) -> list[str]:
        return [gate.name for gate in self.now(pod).spec.scheduling_gates]

    def done(self) -> list[str]:
        self.steering._pool.flush()
        deadline = threading.Event()
        for _ in range(1000):
            with self.steering._lock:
                if not self.steering._busy:
                    return self.api.patches
            deadline.wait(0.005)
        raise AssertionError("still at work")


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr(module, "AT_ONCE", Retry(0.001, 0.001, steps=2))
    made: list[Story] = []

    def make(*script: ApiError, **options: bool) -> Story:
        made.append(Story(*script, **options))
        return made[-1]

    yield make
    for each in made:
        each.steering.stop()


def test_a_gated_pod_is_nominated_and_then_freed(story: Make) -> None:
    s = story()
    pod = s.pod("p", GATE)
    s.steering.nominate([(pod, "n1")])
    assert s.done() == ["p status", "p gates"]
    assert (s.now(pod).status.nominated_node_name, s.gates(pod)) == ("n1", [])
    assert s.steering.has_ungated(pod)


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATCHES_AT_A_TIME", 1)


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.parametrize(
    ("gates", "first"), [pytest.param((), "p0 status", id="nominations"), pytest.param((GATE,), "p0 gates", id="gates")]
)
def test_what_waits_when_another_leads_is_not_written(
    story: Make, gates: tuple[dict[str, str], ...], first: str
) -> None:
    s = story()
    pods = [s.pod(f"p{number}", *gates) for number in range(4)]
    s.api.go_on.clear()
    if gates:
        s.steering.ungate(pods)
    else:
        s.steering.nominate([(pod, "n1") for pod in pods])
    assert s.api.begun.wait(5)
    s.leading = False
    s.api.go_on.set()
    assert s.done() == [first]
    s.leading = True
    s.steering.ungate(pods[1:2])
    s.steering.tick()
    assert s.done()[:1] == [first]
    assert all(patch.startswith("p1 ") for patch in s.done()[1:]), "what was wished for before is forgotten"


@pytest.mark.usefixtures("one_at_a_time")
def test_gates_go_when_all_siblings_are_nominated(story: Make) -> None:
    s = story()
    pods = [s.pod(name, GATE) for name in ("a", "b", "c")]
    s.api.go_on.clear()
    s.steering.nominate([(pod, "n1") for pod in pods])
    s.api.go_on.set()
    assert s.done() == ["a status", "b status", "c status", "a gates", "b gates", "c gates"]


@pytest.mark.usefixtures("one_at_a_time")
def test_a_pod_that_is_released_between_nomination_and_freeing_keeps_its_gate(story: Make) -> None:
    s = story()
    first, second = s.pod("first", GATE), s.pod("second", GATE)
    s.api.go_on.clear()
    s.steering.nominate([(first, "n1"), (second, "n1")])
    assert s.api.begun.wait(5)
    s.steering.clear_nominations([first])
    s.api.go_on.set()
    assert s.done() == ["first status", "second status", "first status", "second gates"]
    assert (s.now(first).status.nominated_node_name, s.gates(first)) == ("", [GATE["name"]])


@pytest.mark.usefixtures("one_at_a_time")
def test_a_new_leader_finds_the_gates_of_those_that_were_only_nominated(story: Make) -> None:
    s = story()
    pod = s.pod("p", GATE)
    s.api.go_on.clear()
    s.steering.nominate([(pod, "n1")])
    assert s.api.begun.wait(5)
    s.leading = False
    s.api.go_on.set()
    assert s.done() == ["p status"]


def test_gates_of_others_are_left_alone(story: Make) -> None:
    s = story()
    pod = s.pod("p", OTHER, GATE)
    s.steering.nominate([(pod, "n1")])
    s.done()
    assert s.gates(pod) == [OTHER["name"]]
    assert not s.steering.has_ungated(pod)


def test_a_plain_pod_is_nominated_and_that_wakes_it(story: Make) -> None:
    s = story()
    pod = s.pod("p")
    s.steering.nominate([(pod, "n1")])
    assert s.done() == ["p status"]


def test_before_1_33_a_plain_pod_is_woken_by_its_annotation_each_time_anew(story: Make) -> None:
    s = story(by_annotation=True)
    plain, gated = s.pod("plain"), s.pod("gated", GATE)
    s.steering.nominate([(plain, "n1"), (gated, "n1")])
    assert sorted(s.done()) == ["gated gates", "gated status", "plain annotations", "plain status"]
    first = s.now(plain).metadata.annotations[WAKE_ANNOTATION]
    s.steering.activate([plain])
    s.done()
    assert s.now(plain).metadata.annotations[WAKE_ANNOTATION] != first


@pytest.mark.parametrize(
    ("by_annotation", "failures"),
    [
        pytest.param(False, 0, id="the status has perhaps woken it"),
        pytest.param(True, 1, id="nothing else wakes it"),
    ],
)
def test_where_it_only_looks_as_if_an_annotation_were_needed_one_that_is_forbidden_is_no_failure(
    by_annotation: bool, failures: int, story: Make
) -> None:
    s = story(by_annotation=by_annotation)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = s.api.create(PODS, {"metadata": {"name": "p", "generation": 1}, "status": {"conditions": [condition]}})
    s.api.forbid_annotations = True
    before = metrics.steering_failures._value.get()
    for _ in range(2):
        s.steering.nominate([(pod, "n1")])
        s.done()
    assert s.api.patches.count("p annotations") == 1 + failures
    assert metrics.steering_failures._value.get() - before == 2 * failures


def test_a_pod_that_is_woken_twice_within_a_second_sees_two_different_patches(story: Make) -> None:
    """The API server makes no event of a patch that changes nothing, and writes a condition's time in whole seconds."""
    s = story()
    pod = s.pod("p")
    said = []
    for _ in range(3):
        s.steering.activate([pod])
        s.done()
        said += [condition.message for condition in s.now(pod).status.conditions]
    s.clock += 60
    s.steering.activate([pod])
    s.done()
    said += [condition.message for condition in s.now(pod).status.conditions]
    once = "the gang has changed"
    assert said == [once, f"{once}, once more", once, once]


def test_a_nomination_that_is_good_for_nothing_is_taken_back_and_nothing_is_said(story: Make) -> None:
    s = story()
    pod = s.pod("p")
    s.api.patch(PODS, "p", {"status": {"nominatedNodeName": "n1"}}, namespace=pod.namespace, subresource="status")
    s.steering.clear_foreign_nominations([s.now(pod)])
    s.done()
    assert (s.now(pod).status.nominated_node_name, s.now(pod).status.conditions) == ("", ())


def test_a_pod_that_is_activated_is_nominated_for_a_moment_and_nothing_is_said(story: Make) -> None:
    s = story()
    pod = s.pod("p")
    s.steering.activate_by_nomination([(pod, "n1")])
    assert s.done() == ["p status", "p status"]
    assert (s.now(pod).status.nominated_node_name, s.now(pod).status.conditions) == ("", ())


def test_a_nomination_for_a_moment_is_taken_back_though_something_newer_is_wished_meanwhile(story: Make) -> None:
    s = story()
    pod = s.pod("p")
    s.api.go_on.clear()
    s.steering.activate_by_nomination([(pod, "n1")])
    assert s.api.begun.wait(5)
    s.steering.ungate([pod])
    s.api.go_on.set()
    s.done()
    assert s.now(pod).status.nominated_node_name == ""


def test_a_replica_that_does_not_lead_is_silent(story: Make) -> None:
    s = story(leading=False)
    pod = s.pod("p", GATE)
    s.steering.nominate([(pod, "n1")])
    s.steering.clear_nominations([pod])
    s.steering.activate([pod])
    s.steering.ungate([pod])
    assert s.done() == []


def test_for_an_autoscaler_the_gate_goes_without_a_nomination(story: Make) -> None:
    s = story()
    pod = s.pod("p", GATE)
    s.steering.ungate([pod])
    assert s.done() == ["p gates"]
    assert s.gates(pod) == []


def test_a_plan_that_is_dropped_in_time_leaves_the_pod_gated(story: Make) -> None:
    s = story()
    pod = s.pod("p", GATE)
    s.steering.nominate([(pod, "n1")])
    s.done()
    s.steering.clear_nominations([pod])
    s.done()
    assert s.now(pod).status.nominated_node_name == ""
    ready = {c.type: c.status for c in s.now(pod).status.conditions}
    assert ready["scheduling.x-k8s.io/GangReady"] == "False"


def test_of_wishes_that_have_not_begun_the_newest_counts(story: Make) -> None:
    s = story()
    first, pod = s.pod("first"), s.pod("p", GATE)
    s.api.go_on.clear()
    s.steering.nominate([(pod, "n1")])
    assert s.api.begun.wait(5)
    s.steering.nominate([(pod, "n2")])
    s.steering.clear_nominations([pod])
    s.steering.nominate([(pod, "n3")])
    s.steering.activate([pod])
    s.api.go_on.set()
    assert s.done() == ["p status", "p status", "p gates"]  # freed with the newest nomination, not with the first
    assert s.now(pod).status.nominated_node_name == "n3"
    assert s.now(first).status.nominated_node_name == ""


@pytest.mark.parametrize(
    ("errors", "patches", "given_up"),
    [
        pytest.param([ConnectionFailedError("cut")], 3, False, id="no answer: again"),
        pytest.param([ApiError("no leader", code=503)] * 2, 4, False, id="a server in trouble: again"),
        pytest.param([ApiError("no leader", code=503)] * 3, 3, True, id="a server that stays in trouble"),
        pytest.param([ConflictError("UID")], 1, True, id="another pod has the name by now"),
        pytest.param([NotFoundError("gone")], 1, True, id="the pod is gone"),
        pytest.param([ForbiddenError("no")], 1, True, id="not allowed"),
    ],
)
def test_what_is_tried_again(errors: list[ApiError], patches: int, given_up: bool, story: Make) -> None:
    s = story(*errors)
    pod = s.pod("p", GATE)
    before = metrics.steering_failures._value.get()
    s.steering.nominate([(pod, "n1")])
    assert len(s.done()) == patches
    assert s.gates(pod) == ([GATE["name"]] if given_up else [])
    assert metrics.steering_failures._value.get() - before == int(given_up)


@pytest.mark.faults
def test_a_pod_whose_patch_failed_unexpectedly_can_be_patched_again(
    story: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted as being patched for ever: the gang's next plan never reached it."""
    s = story()
    pod = s.pod("p", GATE)
    before = metrics.steering_failures._value.get()
    with monkeypatch.context() as patched:

        def fails(*args: object, **options: object) -> None:
            raise KeyError("a fault of ours")

        patched.setattr(module, "patch_pod_status", fails)
        s.steering.nominate([(pod, "n1")])
        s.done()
    s.steering.nominate([(pod, "n1")])
    s.done()
    assert s.gates(pod) == []
    assert metrics.steering_failures._value.get() - before == 1


TROUBLE = [ApiError("no leader", code=503)] * 3  # as often as one wish is tried


def test_a_nomination_that_could_not_be_taken_back_is_taken_back_later(story: Make) -> None:
    """It kept room from others for as long as the pod waited."""
    s = story()
    pod = s.pod("p")
    s.steering.nominate([(pod, "n1")])
    s.done()
    s.api.raises(*TROUBLE, *TROUBLE)
    s.steering.clear_nominations([pod])
    for seconds in (0.0, 2.0, 2.0, 1.9):
        s.clock += seconds
        s.steering.tick()
        s.done()
        assert s.now(pod).status.nominated_node_name == "n1"
    s.clock += 0.1
    s.steering.tick()
    s.done()
    assert s.now(pod).status.nominated_node_name == ""
    assert not s.steering._unfulfilled


def test_a_newer_wish_takes_the_place_of_one_that_has_failed(story: Make) -> None:
    s = story(*TROUBLE)
    pod = s.pod("p", GATE)
    s.steering.nominate([(pod, "n1")])
    s.done()
    s.steering.nominate([(pod, "n2")])
    s.done()
    s.clock += 60.0
    s.steering.tick()
    s.done()
    assert (s.now(pod).status.nominated_node_name, s.gates(pod)) == ("n2", [])


def test_a_pod_that_is_to_be_woken_is_steered_where_that_has_failed(story: Make) -> None:
    s = story(*TROUBLE)
    pod = s.pod("p")
    s.steering.nominate([(pod, "n1")])
    s.done()
    s.steering.activate([pod])
    s.done()
    assert s.now(pod).status.nominated_node_name == "n1"


def test_what_has_failed_is_no_matter_of_one_that_leads_no_more(story: Make) -> None:
    s = story(*TROUBLE)
    pod = s.pod("p")
    s.steering.nominate([(pod, "n1")])
    s.done()
    s.leading = False
    s.clock += 60.0
    s.steering.tick()
    s.leading = True
    s.steering.tick()
    assert len(s.done()) == 3


def test_what_has_failed_does_not_come_after_what_was_decided_meanwhile(story: Make) -> None:
    """The nomination was made a second time after it had been taken back."""
    s = story(*TROUBLE)
    pod = s.pod("p", GATE)
    s.api.go_on.clear()
    s.steering.nominate([(pod, "n1")])
    assert s.api.begun.wait(5)
    s.steering.clear_nominations([pod])
    s.api.go_on.set()
    s.done()
    s.clock += 60.0
    s.steering.tick()
    s.done()
    assert (s.now(pod).status.nominated_node_name, s.gates(pod)) == ("", [GATE["name"]])


@pytest.mark.parametrize(
    ("gates", "errors"),
    [
        pytest.param([], TROUBLE, id="a nomination that fails: at once again"),
        pytest.param([GATE], [], id="one that is to be freed after it"),
    ],
)
def test_a_pod_that_is_woken_while_it_is_sent_is_sent_all_the_same(
    gates: list[dict[str, str]], errors: list[ApiError], story: Make
) -> None:
    """The wake took the place of what was left to do."""
    s = story(*errors)
    pod = s.pod("p", *gates)
    s.api.go_on.clear()
    s.steering.nominate([(pod, "n1")])
    assert s.api.begun.wait(5)
    s.steering.activate([pod])
    s.api.go_on.set()
    s.done()
    assert (s.now(pod).status.nominated_node_name, s.gates(pod)) == ("n1", [])


def test_a_gate_that_could_not_be_taken_off_stays_once_the_plan_is_dropped(story: Make) -> None:
    """It came off at the second try, and no gate ever comes back."""
    s = story()
    pod = s.pod("p", GATE)
    s.api.raises(TROUBLE[0])
    s.api.go_on.clear()
    s.steering.ungate([pod])
    assert s.api.begun.wait(5)
    s.steering.clear_nominations([pod])
    s.api.go_on.set()
    s.done()
    assert s.gates(pod) == [GATE["name"]]


@pytest.mark.parametrize("gated", [pytest.param(True, id="gated"), pytest.param(False, id="plain")])
def test_a_nomination_for_a_moment_gives_way_to_one_that_is_on_its_way(
    story: Callable[..., Story], gated: bool
) -> None:
    """It took back the place that had just been nominated, and the gate stayed on."""
    told = story()
    pod = told.pod("p", *([GATE] if gated else []))
    told.api.go_on.clear()
    told.api.begun.clear()
    told.steering.nominate([(pod, "n1")])
    assert told.api.begun.wait(5)
    told.steering.activate_by_nomination([(pod, "n2")])
    told.api.go_on.set()
    told.done()
    assert (told.now(pod).status.nominated_node_name, told.gates(pod)) == ("n1", [])
