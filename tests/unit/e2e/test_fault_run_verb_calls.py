"""What is read along between kube-scheduler and the extender: each call with its pod, its answer and its times."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.fault_run.verb_calls import VerbCalls

FILTER = {"Pod": {"metadata": {"namespace": "default", "name": "a", "uid": "1"}}, "NodeNames": ["n"]}
BIND = {"PodNamespace": "default", "PodName": "a", "PodUID": "1", "Node": "n"}


def request(verb: str, body: Any) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (verb.encode(), len(text), text)


def answer(body: Any, status: int = 200) -> bytes:
    text = json.dumps(body).encode()
    return b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text)


class Line:
    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[dict[str, Any]] = []
        self.tap = VerbCalls(self.calls.append, lambda: self.now)


@pytest.fixture
def line() -> Line:
    return Line()


def test_two_calls_on_one_connection_in_pieces_of_any_size(line: Line) -> None:
    for body, said in ((FILTER, {"NodeNames": ["n"]}), (FILTER, {"Error": "cache not synced"})):
        for byte in request("scheduler/filter", body):
            line.tap.sent(bytes([byte]))
        line.now += 1
        for byte in answer(said):
            line.tap.answered(bytes([byte]))
    shared = {"verb": "filter", "pod": "default/a", "uid": "1", "node": "", "status": 200}
    assert line.calls == [
        {**shared, "began": 0.0, "ended": 1.0, "error": ""},
        {**shared, "began": 1.0, "ended": 2.0, "error": "cache not synced"},
    ]


def test_a_bind_call_tells_its_node(line: Line) -> None:
    line.tap.sent(request("bind", BIND))
    line.tap.answered(answer({}))
    (call,) = line.calls
    assert (call["verb"], call["pod"], call["node"]) == ("bind", "default/a", "n")


def test_a_call_whose_caller_hung_up_has_no_status(line: Line) -> None:
    line.tap.sent(request("bind", BIND))
    line.now = 5.0
    line.tap.closed()
    (call,) = line.calls
    assert (call["status"], call["ended"]) == (0, 5.0)


def test_what_is_no_http_is_not_read_and_does_no_harm(line: Line) -> None:
    line.tap.sent(b"\x16\x03\x01 no HTTP\r\n\r\n")
    line.tap.sent(request("filter", FILTER))
    line.tap.closed()
    assert line.calls == []


def test_a_body_that_is_no_json_is_a_call_of_no_pod(line: Line) -> None:
    line.tap.sent(request("filter", b"{"))
    line.tap.answered(answer({}, 400))
    (call,) = line.calls
    assert call["status"] == 400
    assert "pod" not in call
