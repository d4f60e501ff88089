"""The four verbs through Flask's client: recorded requests, what is malformed, what is our own fault."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import IO, Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from extender import metrics
from extender.api.extenderv1 import ExtenderFilterResult
from extender.server import verbs as verbs_module
from extender.server.app import create_app
from extender.server.options import ServeOptions
from extender.server.state import state_of
from tests.fakes.verbs import FakeVerbs
from tests.server.service import bind_body, payload, pod_body

NODES = ["node-0", "node-1", "node-2"]
VERBS = ["filter", "prioritize", "preempt", "bind"]


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        pytest.param(
            "filter",
            {"Nodes": None, "NodeNames": NODES, "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": ""},
            id="filter: maps are never null, names are those asked about",
        ),
        pytest.param(
            "prioritize", [{"Host": name, "Score": 5} for name in NODES], id="prioritize: a bare list of integers"
        ),
        pytest.param(
            "preempt",
            {"NodeNameToMetaVictims": json.loads(payload("preempt"))["NodeNameToMetaVictims"]},
            id="preempt: meta victims only",
        ),
        pytest.param("bind", {"Error": ""}, id="bind: an empty Error is success"),
    ],
)
def test_a_recorded_request_is_answered(client: FlaskClient, verb: str, answer: Any) -> None:
    response = client.post(f"/{verb}", data=payload(verb), content_type="application/json")
    assert (response.status_code, response.get_json()) == (200, answer)
    assert response.content_type == "application/json"


@pytest.mark.parametrize("verb", VERBS)
def test_a_trailing_slash_is_no_redirect(client: FlaskClient, verb: str) -> None:
    assert client.post(f"/{verb}/", data=payload(verb)).status_code == 200


NO_JSON = r"JSON is malformed|Input data was truncated|invalid|trailing"

MALFORMED = [
    pytest.param("filter", b"", NO_JSON, id="an empty body"),
    pytest.param("filter", b"{", NO_JSON, id="truncated JSON"),
    pytest.param("filter", b"nonsense", NO_JSON, id="no JSON"),
    pytest.param("filter", b"null", r"Expected `object`, got `null`", id="null"),
    pytest.param("filter", b"[]", r"Expected `object`, got `array`", id="a list"),
    pytest.param("filter", b"{}", r"`Pod`", id="no Pod"),
    pytest.param("filter", b'{"pod": {}}', r"`Pod`", id="lower-case keys are other keys"),
    pytest.param("filter", b'{"Pod": null}', r"\$\.Pod", id="a null Pod"),
    pytest.param(
        "filter", b'{"Pod": {"metadata": {"name": 7}}}', r"\$\.Pod\.metadata\.name", id="a name that is a number"
    ),
    pytest.param("filter", b'{"Pod": {"metadata": {"name": "a"}}, "NodeNames": "n"}', r"\$\.NodeNames", id="no list"),
    pytest.param(
        "filter", b'{"Pod": {"metadata": {"name": "a"}}, "NodeNames": [1]}', r"\$\.NodeNames\[", id="no names"
    ),
    pytest.param(
        "filter", b'{"Pod": {"metadata": {"name": "a"}}, "NodeNames": [null]}', r"\$\.NodeNames", id="null name"
    ),
    pytest.param("filter", b"\xef\xbb\xbf{}", NO_JSON, id="a byte order mark"),
    pytest.param("filter", "{}".encode("utf-16"), NO_JSON, id="UTF-16"),
    pytest.param("filter", b'{"Pod": {"metadata": {"name": "\xff"}}}', r".", id="bytes that are not UTF-8"),
    pytest.param("filter", b'{"Pod": {"metadata": {"name": "\\ud800"}}}', r".", id="a lone surrogate"),
    pytest.param("filter", b"[" * 100_000, r".", id="nesting without end"),
    pytest.param("filter", b'{"Pod": ' + b'{"a":' * 100_000, r".", id="nesting without end in an unknown field"),
    pytest.param("filter", b'{"Pod": NaN}', NO_JSON, id="NaN"),
    pytest.param(
        "filter", b'{"Pod": {"spec": {"priority": ' + b"9" * 5000 + b"}}}", r".", id="an integer of 5000 digits"
    ),
    pytest.param(
        "filter",
        b'{"Pod": {"spec": {"containers": [{"resources": {"requests": {"cpu": "NaN"}}}]}}}',
        r"\$\.Pod\.spec\.containers\[",
        id="a quantity that is none",
    ),
    pytest.param("prioritize", b"{}", r"`Pod`", id="prioritize without a Pod"),
    pytest.param(
        "preempt",
        b'{"Pod": {"metadata": {"name": "a"}}, "NodeNameToMetaVictims": {"n": null}}',
        r"\$\.NodeNameToMetaVictims",
        id="a null victim",
    ),
    pytest.param("bind", b"{}", r"`PodName`", id="bind without names"),
    pytest.param("bind", bind_body(""), r"\$\.PodName", id="an empty pod name"),
    pytest.param("bind", bind_body("a\nb"), r"\$\.PodName", id="a name with a line break"),
    pytest.param("bind", bind_body("a" * 254), r"\$\.PodName", id="a name beyond 253 characters"),
]


@pytest.mark.parametrize(("verb", "body", "text"), MALFORMED)
def test_what_is_malformed_is_a_400_that_names_the_field(
    client: FlaskClient, verb: str, body: bytes, text: str
) -> None:
    response = send(client, verb, io.BytesIO(body), len(body))
    assert response.status_code == 400
    assert re.search(text, response.get_json()["Error"])


@pytest.mark.parametrize(
    ("body", "nodes"),
    [
        pytest.param(
            b'{"NodeNames": ["a"], "Pod": {"metadata": {"name": "p"}}, "NodeNames": ["b"]}', ["b"], id="a field"
        ),
        pytest.param(
            b'{"NodeNames": null, "Pod": {"metadata": {"name": "p"}}, "NodeNames": ["b"]}', ["b"], id="a null first"
        ),
        pytest.param(
            b'{"Pod": {"metadata": {"name": "fault"}}, "NodeNames": ["b"], "Pod": {"metadata": {"name": "p"}}}',
            ["b"],
            id="an object: the first is not looked at",
        ),
        pytest.param(
            b'{"Pod": {"metadata": {"name": "fault", "name": "p"}}, "NodeNames": ["b"]}',
            ["b"],
            id="a field further down",
        ),
    ],
)
def test_of_a_key_that_is_there_twice_the_last_counts(client: FlaskClient, body: bytes, nodes: list[str]) -> None:
    """As in the decoders of Go; kube-scheduler never sends one twice."""
    answer = client.post("/filter", data=body)
    assert (answer.status_code, answer.get_json()["NodeNames"]) == (200, nodes)


def test_a_bind_call_that_names_two_pods_binds_the_last(client: FlaskClient, verbs: FakeVerbs) -> None:
    body = b'{"PodName": "fault", "PodNamespace": "default", "PodUID": "u", "Node": "n", "PodName": "p"}'
    assert client.post("/bind", data=body).get_json() == {"Error": ""}
    assert verbs.report()["bind"] == 1


@pytest.mark.parametrize("new", [{"a": [1.5]}, {"a": None}], ids=["no null", "a null: it is read a second time"])
def test_unknown_fields_are_ignored(new: object, client: FlaskClient) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"newField": {"deep": [new]}}}
    body = {"Pod": pod, "NodeNames": ["n1"], "New": new}
    assert client.post("/filter", data=json.dumps(body)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("POST", "/nonsense", 404, id="an unknown path"),
        pytest.param("POST", "/scheduler/filter", 404, id="a prefix that is not ours"),
        pytest.param("GET", "/../etc/passwd", 404, id="a path upwards"),
        pytest.param("GET", "/filter", 405, id="GET of a verb"),
        pytest.param("PUT", "/bind", 405, id="PUT of a verb"),
        pytest.param("OPTIONS", "/bind", 405, id="OPTIONS of a verb"),
        pytest.param("POST", "/livez", 405, id="POST of a probe"),
        pytest.param("BREW", "/bind", 405, id="a method that no verb has"),
    ],
)
def test_a_wrong_path_or_method_is_told_what_there_is(client: FlaskClient, method: str, path: str, status: int) -> None:
    response = client.open(path, method=method)
    assert response.status_code == status
    assert "/filter /prioritize /preempt /bind" in response.get_json()["Error"]


def test_the_root_lists_the_verbs(client: FlaskClient) -> None:
    assert client.get("/").get_json()["verbs"] == [f"POST /{verb}" for verb in VERBS]


def send(client: FlaskClient, verb: str, body: IO[bytes], length: int | None) -> TestResponse:
    """With a length that need not be the body's; None for none."""
    environ = {"wsgi.input": body, "wsgi.input_terminated": True}
    if length is not None:
        environ["CONTENT_LENGTH"] = str(length)
    return client.post(f"/{verb}", environ_overrides=environ)


def test_no_length_is_a_411_and_the_body_is_not_read(client: FlaskClient) -> None:
    response = send(client, "filter", _Unreadable(), None)
    assert (response.status_code, response.get_json()) == (411, {"Error": "Content-Length is wanted"})


def test_a_body_over_the_limit_is_a_413_and_is_not_read(verbs: FakeVerbs) -> None:
    client = create_app(verbs, ServeOptions(max_body_bytes=1000)).test_client()
    response = send(client, "filter", _Unreadable(), 1001)
    assert response.status_code == 413
    assert "larger than 1000 bytes" in response.get_json()["Error"]
    assert "nodeCacheCapable: true" in response.get_json()["Error"]
    assert client.post("/bind", data=payload("bind")).status_code == 200


@pytest.mark.parametrize("verb", VERBS)
def test_a_body_that_ends_early_is_a_408(client: FlaskClient, verb: str) -> None:
    whole = payload(verb)
    response = send(client, verb, io.BytesIO(whole[:-10]), len(whole))
    assert response.status_code == 408
    assert str(len(whole)) in response.get_json()["Error"]


class _Unreadable(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise AssertionError("the body was read")


FAULT = "internal error: see the extender's log"


@pytest.mark.faults
@pytest.mark.parametrize(
    ("verb", "body", "answer"),
    [
        pytest.param(
            "filter",
            pod_body("fault"),
            {"Nodes": None, "NodeNames": [], "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": FAULT},
            id="filter says Error",
        ),
        pytest.param("bind", bind_body("fault"), {"Error": FAULT}, id="bind says Error"),
        pytest.param("prioritize", pod_body("fault"), [], id="prioritize has none: no scores"),
        pytest.param("preempt", pod_body("fault"), {"NodeNameToMetaVictims": {}}, id="preempt has none: a veto"),
    ],
)
def test_our_own_fault_is_a_200_with_the_reason_in_the_log(
    client: FlaskClient, caplog: pytest.LogCaptureFixture, verb: str, body: bytes, answer: Any
) -> None:
    response = client.post(f"/{verb}", data=body)
    assert (response.status_code, response.get_json()) == (200, answer)
    assert f"unexpected error where=verb path=/{verb}\n" in caplog.text
    assert "a fault of ours" in caplog.text


def test_an_answer_that_says_error_is_counted_as_one(app: Flask, verbs: FakeVerbs) -> None:
    client = app.test_client()
    verbs.filter = lambda args: ExtenderFilterResult(error="cache not synced")  # type: ignore[method-assign]
    series = 'gang_extender_requests_total{code="200",result="error",verb="filter"}'
    before = _value(client, series)
    client.post("/filter", data=payload("filter"))
    assert _value(client, series) == before + 1


def _value(client: FlaskClient, series: str) -> float:
    for line in client.get("/metrics").get_data(as_text=True).splitlines():
        if line.startswith(series):
            return float(line.rpartition(" ")[2])
    return 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
KNOWN = st.sampled_from(["Pod", "Nodes", "NodeNames", "NodeNameToMetaVictims", "PodName", "PodUID", "Node", "metadata"])
HALF_RIGHT = st.dictionaries(KNOWN, JSON, max_size=5)


@pytest.mark.parametrize("verb", VERBS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200) | (JSON | HALF_RIGHT).map(json.dumps).map(str.encode))
def test_whatever_comes_is_answered_in_json(client: FlaskClient, verb: str, body: bytes) -> None:
    response = send(client, verb, io.BytesIO(body), len(body))
    assert response.status_code in (200, 400)
    assert "Traceback" not in response.get_data(as_text=True)
    json.loads(response.get_data())


class Leaving:
    """A caller for which no watch is worth while; gone by the end, or not. Fulfils PeerWatch."""

    def __init__(self, *, gone: bool) -> None:
        self.gone, self.asked = gone, 0

    def watch(self, fd: int, callback: Callable[[], None]) -> Callable[[], None]:
        callback()
        return lambda: None

    def is_gone(self, fd: int) -> bool:
        self.asked += 1
        return self.gone


class Descriptor:
    def fileno(self) -> int:
        return 7


def hang_ups(verb: str) -> float:
    return metrics.REGISTRY.get_sample_value("gang_extender_hang_ups_total", {"verb": verb}) or 0.0


@pytest.mark.parametrize(
    ("verb", "seconds", "gone", "counted"),
    [
        pytest.param("filter", 0.0, True, 1, id="a long question whose caller has gone"),
        pytest.param("prioritize", 0.0, True, 1, id="prioritize too"),
        pytest.param("filter", 0.0, False, 0, id="its caller waits"),
        pytest.param("filter", 60.0, True, 0, id="a quick one, of which nothing is looked at"),
        pytest.param("bind", 60.0, False, 1, id="a held bind, whose caller is watched"),
    ],
)
def test_callers_that_hang_up_are_counted(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, verb: str, seconds: float, gone: bool, counted: int
) -> None:
    monkeypatch.setattr(verbs_module, "LONG_SECONDS", seconds)
    watch = Leaving(gone=gone)
    state_of(client.application).peer_watch = watch
    before = hang_ups(verb)
    body = bind_body("held-a") if verb == "bind" else payload(verb)
    client.post(f"/{verb}", data=body, environ_overrides={"gunicorn.socket": Descriptor()})
    assert hang_ups(verb) == before + counted
    assert watch.asked == (0 if seconds else 1)
