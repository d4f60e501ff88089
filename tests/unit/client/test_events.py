"""Events: written in the background, counted when they repeat, cut when they are long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.events import NOTE_LIMIT, Recorder, cut

POD = corev1.ObjectReference("Pod", "v1", "default", "p", "uid")


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


def test_a_long_note_is_cut_and_says_so() -> None:
    assert cut("short") == "short"
    text = cut("ä" * NOTE_LIMIT)
    assert len(text.encode()) <= NOTE_LIMIT
    assert text.endswith("ä ...")


@pytest.mark.faults
def test_the_writer_outlives_what_nobody_expected(
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
