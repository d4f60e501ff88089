"""Events: written in the background, counted when they repeat, cut when they are long."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extender import metrics
from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.events import MAX_QUEUE, NOTE_LIMIT, Recorder, cut, event_name

POD = corev1.ObjectReference("Pod", "v1", "default", "p", "uid")
# k8s.io/apimachinery/pkg/util/validation (IsDNS1123Subdomain): what the API server takes as the name of a pod, and of an event
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.fixture
def api() -> EmbeddedAPI:
    return EmbeddedAPI()


@pytest.fixture
def recorder(api: EmbeddedAPI) -> Iterator[Recorder]:
    made = Recorder(api)
    made.start()
    yield made
    made.stop()


def test_the_same_event_again_is_a_count_on_the_first(api: EmbeddedAPI, recorder: Recorder) -> None:
    for _ in range(3):
        recorder.event(POD, "Warning", "FailedScheduling", "Scheduling", "no room")
    recorder.event(POD, "Warning", "FailedScheduling", "Scheduling", "another reason")
    assert recorder.flush(5)
    first, second = api.events()
    assert first["series"]["count"] == 3
    assert "series" not in second
    assert first["regarding"]["uid"] == "uid"


def test_one_that_was_removed_meanwhile_is_written_anew(api: EmbeddedAPI, recorder: Recorder) -> None:
    recorder.event(POD, "Normal", "Scheduled", "Binding", "on n1")
    assert recorder.flush(5)
    api._events.clear()
    recorder.event(POD, "Normal", "Scheduled", "Binding", "on n1")
    assert recorder.flush(5)
    assert len(api.events()) == 1


def test_a_silent_recorder_writes_nothing(api: EmbeddedAPI) -> None:
    recorder = Recorder(api, enabled=lambda: False)
    recorder.start()
    recorder.event(POD, "Normal", "Scheduled", "Binding", "on n1")
    recorder.stop()
    assert api.events() == []


def test_what_waits_when_another_leads_is_not_written(api: EmbeddedAPI) -> None:
    leading = True
    recorder = Recorder(api, enabled=lambda: leading)
    recorder.event(POD, "Normal", "A", "B", "said while it led")
    leading = False
    recorder.start()
    assert recorder.flush(5)
    leading = True
    recorder.event(POD, "Normal", "A", "B", "said later")
    recorder.stop()
    assert [event["note"] for event in api.events()] == ["said later"]


def test_a_tenant_with_5000_events_costs_another_none_of_its_10(api: EmbeddedAPI) -> None:
    """In one queue of 1,000 they were all lost."""
    recorder, before = Recorder(api), _dropped()
    for number in range(5000):
        loud = corev1.ObjectReference("PodGroup", "v1", "loud", f"g{number}", f"loud-{number}")
        recorder.event(loud, "Warning", "GangRejected", "Scheduling", "no room")
    for number in range(10):
        quiet = corev1.ObjectReference("PodGroup", "v1", "quiet", f"g{number}", f"quiet-{number}")
        recorder.event(quiet, "Warning", "GangRejected", "Scheduling", "no room")
    recorder.start()
    recorder.stop()
    written = [event["metadata"]["namespace"] for event in api.events()]
    assert written.count("quiet") == 10
    assert written[:20].count("quiet") == 10, "in turn, not behind all of the other's"
    assert written.count("loud") == MAX_QUEUE - 10
    assert _dropped() - before == 5000 - (MAX_QUEUE - 10), "what is lost is counted"


def _dropped() -> float:
    return float(metrics.events_dropped._value.get())


def test_a_long_note_is_cut_and_says_so() -> None:
    assert cut("short") == "short"
    text = cut("ä" * NOTE_LIMIT)
    assert len(text.encode()) <= NOTE_LIMIT
    assert text.endswith("ä ...")


# Marks are drawn as often as letters, so that the place where a long name is cut is often one.
POD_NAMES = st.text("a0-.", min_size=1, max_size=253).filter(SUBDOMAIN.fullmatch) | st.builds(
    lambda before, marks, after: "a" * before + marks + "z" * after,
    st.integers(190, 201),
    st.sampled_from(["", "-", ".", "--", "-----", ".b-", "-b."]),
    st.integers(1, 40),
)


@given(POD_NAMES)
def test_an_event_about_any_pod_has_a_name_that_the_api_server_takes(pod: str) -> None:
    """Cut after 200 characters a name may end in a mark: the API server refused such events, and they were lost."""
    assert SUBDOMAIN.fullmatch(pod)
    name = event_name(pod)
    assert SUBDOMAIN.fullmatch(name), name
    assert len(name) <= 253
    assert name != event_name(pod)


@given(st.text() | st.text("aB_.-/ é\n\0", max_size=400))
@example("")
@example("..")
@example("Train_A")
@example("-" * 300)
@example("a.-b")
def test_an_event_about_anything_has_a_name_that_the_api_server_takes(text: str) -> None:
    """The value of a label that names a group is no subdomain, and what cannot be read may say anything."""
    name = event_name(text)
    assert SUBDOMAIN.fullmatch(name), name
    assert len(name) <= 253


@pytest.mark.parametrize("namespace", ["a/../b", "A", "a b", "-a", "a" * 64, "a.b", "é", "\n"])
def test_an_event_in_a_namespace_that_cannot_be_is_not_written(
    api: EmbeddedAPI, recorder: Recorder, namespace: str
) -> None:
    """It would be part of the call's path."""
    recorder.event(corev1.ObjectReference("Pod", "v1", namespace, "p", "uid"), "Warning", "A", "B", "c")
    recorder.event(POD, "Warning", "A", "B", "c")
    assert recorder.flush(5)
    assert [event["metadata"]["namespace"] for event in api.events()] == ["default"]


@pytest.mark.faults
def test_the_writer_outlives_an_unexpected_error(
    api: EmbeddedAPI, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was gone, and every later event with it."""
    with monkeypatch.context() as patched:

        def fails(namespace: str, body: object) -> None:
            raise KeyError("a fault of ours")

        patched.setattr(api, "create_event", fails)
        recorder.event(POD, "Normal", "Scheduled", "Binding", "on n1")
        assert recorder.flush(5)
    recorder.event(POD, "Normal", "Scheduled", "Binding", "on n2")
    assert recorder.flush(5)
    assert [each["note"] for each in api.events()] == ["on n2"]
