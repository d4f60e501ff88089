"""An object that cannot be read is told of by an event on it: once for each fault, fairly, and never one that is invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extender.api import codec
from extender.client.decoding import UnreadableObjects, read_object
from extender.client.embedded import EmbeddedAPI
from extender.client.events import NOTE_LIMIT, Recorder
from extender.client.interface import PODS, Unreadable
from extender.scheduler.actions.unreadable_events import MOST_AT_A_TIME, UnreadableEvents
from tests.unit.client.test_events import SUBDOMAIN

pytestmark = pytest.mark.faults  # each is counted as an unexpected error, too
WRONG_PORT = {"containers": [{"name": "a", "ports": [{"containerPort": "http"}]}]}
WRONG_PRIORITY = {"priority": "high"}


class Pods:
    """Fulfils what is asked of an informer: pods that cannot be read, and no others."""

    resource = PODS

    def __init__(self) -> None:
        self.objects = UnreadableObjects("Pod")

    def put(self, name: str, spec: Any = WRONG_PORT, namespace: str = "default", uid: str = "") -> None:
        metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": "1"}
        found = read_object(codec.encode({"metadata": metadata, "spec": spec}), PODS.type)
        assert isinstance(found, Unreadable)
        self.objects.put(found)

    @property
    def unreadable(self) -> Any:
        return self.objects.all()


class Events:
    """Fulfils interface.EventRecorder."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def event(self, regarding: Any, event_type: str, reason: str, action: str, note: str, related: Any = None) -> None:
        assert (event_type, reason) == ("Warning", "CannotBeRead")
        self.told.append((f"{regarding.namespace}/{regarding.name}", note))

    def names(self) -> list[str]:
        names, self.told = [name for name, _ in self.told], []
        return names


class Reports(UnreadableEvents):
    def __init__(self) -> None:
        self.pods, self.events, self.leading = Pods(), Events(), True
        super().__init__(lambda: [self.pods], self.events, lambda: self.leading)  # type: ignore[list-item]


@pytest.fixture
def reports() -> Reports:
    return Reports()


def test_the_field_is_named(reports: Reports) -> None:
    reports.pods.put("p")
    reports.tick()
    [(name, note)] = reports.events.told
    assert name == "default/p"
    assert "cannot read this Pod" in note
    assert "$.spec.containers[0].ports[0].containerPort" in note


def test_each_fault_is_told_once(reports: Reports) -> None:
    reports.pods.put("p")
    reports.tick()
    assert reports.events.names() == ["default/p"]
    reports.pods.put("p")
    reports.tick()
    assert reports.events.names() == [], "the same once more"
    reports.pods.put("p", WRONG_PRIORITY)
    reports.tick()
    assert reports.events.names() == ["default/p"], "another fault"
    reports.pods.put("p", WRONG_PRIORITY, uid="another")
    reports.tick()
    assert reports.events.names() == ["default/p"], "another pod of that name"
    reports.pods.objects.remove("default/p")
    reports.tick()
    assert reports._told == {}, "nothing is kept of what is gone"
    reports.pods.put("p", WRONG_PRIORITY, uid="another")
    reports.tick()
    assert reports.events.names() == ["default/p"], "mended, and wrong again"


def test_a_standby_tells_when_it_leads(reports: Reports) -> None:
    reports.leading = False
    reports.pods.put("p")
    reports.tick()
    assert reports.events.names() == []
    reports.leading = True
    reports.tick()
    assert reports.events.names() == ["default/p"]


def test_a_namespace_with_thousands_keeps_no_other_waiting(reports: Reports) -> None:
    for number in range(3 * MOST_AT_A_TIME):
        reports.pods.put(f"p{number}", namespace="crowd")
    reports.pods.put("alone", namespace="honest")
    reports.tick()
    first = reports.events.names()
    assert len(first) == MOST_AT_A_TIME
    assert "honest/alone" in first
    for _ in range(3):
        reports.tick()
    assert len({*first, *reports.events.names()}) == 3 * MOST_AT_A_TIME + 1


@pytest.mark.parametrize(
    ("metadata", "told"),  # told: whether there is anything to tell it on
    [
        pytest.param({"labels": {"a": 5}}, True, id="a label that is a number"),
        pytest.param({"labels": {"a" * 100_000: 5}, "annotations": 7}, True, id="a key of 100,000 letters"),
        pytest.param({"creationTimestamp": "soon"}, True, id="a time that is none"),
        pytest.param({"resourceVersion": 5, "labels": []}, True, id="a version that cannot be read"),
        pytest.param(
            {"name": "-".join("ab" * 80) + ".x", "labels": 5}, True, id="a name that ends in a mark where it is cut"
        ),
        pytest.param({"name": "a" * 253, "labels": 5}, True, id="a name of the greatest length"),
        pytest.param({"uid": "\ud800x", "labels": 5}, False, id="half of a pair of UTF-16 as the UID"),
        pytest.param({"name": 5}, False, id="a name that cannot be read"),
        pytest.param({"uid": None, "labels": 5}, False, id="no UID: there is no saying which pod it is"),
        pytest.param({"name": "", "labels": 5}, False, id="no name"),
    ],
)
def test_whatever_is_wrong_the_event_is_valid(reports: Reports, metadata: dict[str, Any], told: bool) -> None:
    """By the rules of k8s.io/kubernetes/pkg/apis/core/validation/events.go."""
    wrong = {"metadata": {"name": "p", "namespace": "default", "uid": "u", **metadata}, "spec": {"nodeName": [5]}}
    found = read_object(json.dumps(wrong).encode(), PODS.type)
    assert isinstance(found, Unreadable)
    reports.pods.objects.put(found)
    api = EmbeddedAPI()
    recorder = Recorder(api)
    recorder.start()
    UnreadableEvents(lambda: [reports.pods], recorder, lambda: True).tick()  # type: ignore[list-item]
    recorder.stop()
    assert len(api.events()) == told
    for event in api.events():
        name = event["metadata"]["name"]
        assert SUBDOMAIN.fullmatch(name)
        assert len(name) <= 253
        assert event["metadata"]["namespace"] == event["regarding"]["namespace"] == "default"
        assert event["regarding"]["name"] == wrong["metadata"]["name"]
        assert 0 < len(event["note"].encode()) <= NOTE_LIMIT
        assert event["note"].isprintable()
        assert all(0 < len(event[field]) <= 128 for field in ("reason", "action", "reportingInstance", "type"))
