"""Probes, metrics and pages through Flask's client, and which port serves what."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from extender.config.findings import Finding, Severity
from extender.scheduler.interface import (
    CONFIGURATION,
    DRAIN,
    GANG,
    GANGS,
    POD,
    WHAT_IF,
    BusyError,
    NotSyncedError,
    QuestionError,
)
from extender.scheduler.running_configuration import ConfigurationPage
from extender.server.app import create_app
from extender.server.options import QUESTION_BYTES
from extender.server.state import state_of
from tests.fakes.verbs import FakeVerbs
from tests.server.service import SOON, Service, payload


@pytest.mark.parametrize(
    ("path", "ready", "status", "text"),
    [
        pytest.param("/livez", False, 200, "ok", id="livez depends on nothing else"),
        pytest.param("/healthz", False, 200, "ok", id="healthz is livez"),
        pytest.param("/readyz", True, 200, "ok", id="ready says no more than ok"),
        pytest.param(
            "/readyz?verbose",
            True,
            200,
            "[+]informer-pods ok\n[+]informer-nodes ok\nreadyz check passed\n",
            id="verbose names every check",
        ),
        pytest.param(
            "/readyz",
            False,
            503,
            "[+]informer-pods ok\n[-]informer-nodes failed: not synced\nreadyz check failed\n",
            id="not ready says what is missing",
        ),
    ],
)
def test_probes(client: FlaskClient, verbs: FakeVerbs, path: str, ready: bool, status: int, text: str) -> None:
    verbs.ready = ready
    response = client.get(path)
    assert (response.status_code, response.get_data(as_text=True)) == (status, text)


@pytest.mark.parametrize("path", ["/livez", "/healthz"])
def test_livez_fails_where_only_a_restart_helps(client: FlaskClient, verbs: FakeVerbs, path: str) -> None:
    assert client.get(f"{path}?verbose").get_data(as_text=True) == "[+]background ok\nlivez check passed\n"
    verbs.alive = False
    response = client.get(path)
    text = "[-]background failed: it has ended\nlivez check failed\n"
    assert (response.status_code, response.get_data(as_text=True)) == (503, text)


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        pytest.param("?exclude=background", 200, "ok", id="the one that fails"),
        pytest.param("?exclude=other&exclude=background", 200, "ok", id="several"),
        pytest.param(
            "?exclude=backgroun", 503, "[-]background failed: it has ended\nlivez check failed\n", id="another"
        ),
        pytest.param(
            "?exclude=background&verbose",
            200,
            "[+]background excluded: ok\nlivez check passed\n",
            id="and verbose says so",
        ),
    ],
)
def test_a_check_can_be_left_out(client: FlaskClient, verbs: FakeVerbs, query: str, status: int, text: str) -> None:
    """As of the API server's own: the extender's probes leave out what is for kube-scheduler's alone."""
    verbs.alive = False
    response = client.get(f"/livez{query}")
    assert (response.status_code, response.get_data(as_text=True)) == (status, text)


METRICS = [
    "gang_extender_requests_total",
    "gang_extender_request_duration_seconds",
    "gang_extender_held_binds",
    "gang_extender_held_binds_limit",
    "gang_extender_permit_wait_duration_seconds",
    "gang_extender_podgroup_schedule_attempts_total",
    "gang_extender_bind_conflicts_total",
    "gang_extender_partial_commits_total",
    "gang_extender_plan_refuted_total",
    "gang_extender_watch_restarts_total",
    "gang_extender_api_requests_total",
    "gang_extender_build_info",
    "gang_extender_ready",
    "process_resident_memory_bytes",
    "python_gc_collections_total",
    "gang_extender_rejected_clients_total",
    "gang_extender_log_records_dropped_total",
    "gang_extender_unexpected_errors_total",
    "scheduler_schedule_attempts_total",
    "scheduler_scheduling_attempt_duration_seconds",
    "scheduler_framework_extension_point_duration_seconds",
    "scheduler_permit_wait_duration_seconds",
    "scheduler_pod_scheduling_attempts",
    "scheduler_preemption_attempts_total",
    "scheduler_preemption_victims",
    "scheduler_goroutines",
    "scheduler_queue_incoming_pods_total",
]


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_exposed_under_their_names(client: FlaskClient, name: str) -> None:
    text = client.get("/metrics").get_data(as_text=True)
    assert f"# HELP {name} " in text


@pytest.mark.parametrize("ready", [True, False])
def test_a_scrape_says_what_readyz_says(client: FlaskClient, verbs: FakeVerbs, ready: bool) -> None:
    verbs.ready = ready
    assert f"\ngang_extender_ready {float(ready)}\n" in client.get("/metrics").get_data(as_text=True)


def test_nothing_is_said_of_when_a_series_began(client: FlaskClient) -> None:
    client.post("/bind", data=payload("bind"))
    assert "_created" not in client.get("/metrics").get_data(as_text=True)


PAGE = ConfigurationPage({"wakeBy": "auto"}, (Finding(Severity.ERROR, "Wrong", "", 0, "a.b", "m", "f"),))


@pytest.fixture
def two_ports(verbs: FakeVerbs) -> Flask:
    app = create_app(verbs, ops_port=8889)
    known = {"default/web": {"name": "web", "phase": "Bound"}}
    pages = {GANGS: lambda: list(known.values()), GANG: known.get, CONFIGURATION: lambda: PAGE}
    asked = {POD: known.get, DRAIN: {"n0": {"node": "n0"}}.get, WHAT_IF: answer_question}
    app.extensions["gang-extender"].pages.update({**pages, **asked})
    return app


def answer_question(body: bytes, namespace: str) -> object:
    match body:
        case b"busy":
            raise BusyError("another question is being answered")
        case b"{}":
            return {"gangs": []}
    raise QuestionError("wanted: JSON - at `$.pods`")


def ask(app: Flask, path: str, port: int, *, method: str = "GET", caller: str = "127.0.0.1") -> int:
    data = payload(path.strip("/")) if method == "POST" else None
    environ = {"SERVER_PORT": str(port), "REMOTE_ADDR": caller, "HTTP_HOST": "127.0.0.1:1234"}
    return app.test_client().open(path, method=method, data=data, environ_overrides=environ).status_code


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/metrics", "/gangs"])
def test_probes_are_not_on_the_verbs_port(two_ports: Flask, path: str) -> None:
    assert (ask(two_ports, path, 8889), ask(two_ports, path, 8888)) == (200, 404)


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/preempt", "/bind"])
def test_verbs_are_not_on_the_ops_port(two_ports: Flask, path: str) -> None:
    assert (ask(two_ports, path, 8888, method="POST"), ask(two_ports, path, 8889, method="POST")) == (200, 404)


@pytest.mark.parametrize(
    ("path", "caller", "status"),
    [
        pytest.param("/livez", "10.0.0.7", 200, id="the kubelet probes"),
        pytest.param("/readyz", "10.0.0.7", 200, id="readiness too"),
        pytest.param("/metrics", "10.0.0.7", 200, id="Prometheus scrapes"),
        pytest.param("/gangs", "127.0.0.1", 200, id="a port-forward sees the pages"),
        pytest.param("/gangs", "::1", 200, id="by IPv6 as well"),
        pytest.param("/gangs", "::ffff:127.0.0.1", 200, id="and by IPv4 where the listener is on IPv6"),
        pytest.param("/gangs", "::ffff:10.0.0.7", 404, id="a pod by IPv4 is no loopback there either"),
        pytest.param("/gangs", "10.0.0.7", 404, id="no other address does: they show every tenant's pods"),
        pytest.param("/gangs/default/web", "10.0.0.7", 404, id="not even one group"),
        pytest.param("/gangs/default/web", "127.0.0.1", 200, id="one group"),
        pytest.param("/gangs/default/other", "127.0.0.1", 404, id="a group that is not there"),
        pytest.param("/configuration", "127.0.0.1", 200, id="the configuration"),
        pytest.param("/configuration", "10.0.0.7", 404, id="the configuration is for loopback too"),
        pytest.param("/pods/default/web", "127.0.0.1", 200, id="a pod"),
        pytest.param("/pods/default/web", "10.0.0.7", 404, id="a pod, from elsewhere"),
        pytest.param("/pods/default/other", "127.0.0.1", 404, id="a pod that is not there"),
        pytest.param("/drain/n0", "127.0.0.1", 200, id="a node"),
        pytest.param("/drain/n0", "10.0.0.7", 404, id="a node, from elsewhere"),
        pytest.param("/drain/n1", "127.0.0.1", 404, id="a node that is not there"),
    ],
)
def test_which_callers_see_what_on_the_ops_port(two_ports: Flask, path: str, caller: str, status: int) -> None:
    assert ask(two_ports, path, 8889, caller=caller) == status


JSON = "application/json"


@pytest.mark.parametrize(
    ("body", "kind", "caller", "status"),
    [
        pytest.param(b"{}", JSON, "127.0.0.1", 200, id="a question"),
        pytest.param(b"[]", JSON, "127.0.0.1", 400, id="one that makes no sense"),
        pytest.param(b"busy", JSON, "127.0.0.1", 503, id="one beside another"),
        pytest.param(b"{}", "text/plain", "127.0.0.1", 415, id="what a form on a web page could send"),
        pytest.param(b"{}", "", "127.0.0.1", 415, id="no type"),
        pytest.param(b" " * (QUESTION_BYTES + 1), JSON, "127.0.0.1", 413, id="too large a one"),
        pytest.param(b"{}", JSON, "10.0.0.7", 404, id="from elsewhere"),
    ],
)
def test_which_questions_are_answered(two_ports: Flask, body: bytes, kind: str, caller: str, status: int) -> None:
    environ = {"SERVER_PORT": "8889", "REMOTE_ADDR": caller}
    asked = two_ports.test_client().post("/whatif", data=body, content_type=kind, environ_overrides=environ)
    assert asked.status_code == status, asked.data
    assert status == 200 or list(asked.get_json()) == ["Error"]
    assert status != 413 or f"larger than {QUESTION_BYTES} bytes" in asked.get_json()["Error"]


def test_a_question_as_large_as_may_be_is_taken_in_by_the_ops_port(start: Callable[..., Service]) -> None:
    client = http.client.HTTPConnection("127.0.0.1", start().ops_port, timeout=SOON)
    try:
        client.request("POST", "/whatif", b" " * QUESTION_BYTES, {"Content-Type": JSON})
        assert json.loads(client.getresponse().read()) == {"bytes": QUESTION_BYTES}
    finally:
        client.close()


@pytest.mark.parametrize(
    ("path", "status", "value"),
    [
        pytest.param("/gangs", 200, [{"name": "web", "phase": "Bound"}], id="all of them are a list"),
        pytest.param("/gangs/default/web", 200, {"name": "web", "phase": "Bound"}, id="one is itself"),
        pytest.param(
            "/gangs/default/other",
            404,
            {"Error": "/gangs/default/other: no such group"},
            id="a stranger is named in JSON",
        ),
        pytest.param(
            "/configuration",
            200,
            {
                "configuration": {"wakeBy": "auto"},
                "findings": [
                    {
                        "severity": "error",
                        "code": "Wrong",
                        "file": "",
                        "line": 0,
                        "field": "a.b",
                        "message": "m",
                        "fix": "f",
                    }
                ],
            },
            id="the configuration, and what is wrong with it",
        ),
    ],
)
def test_gangs_are_json_that_people_can_read(two_ports: Flask, path: str, status: int, value: object) -> None:
    answer = two_ports.test_client().get(path, environ_overrides={"SERVER_PORT": "8889", "REMOTE_ADDR": "127.0.0.1"})
    assert (answer.status_code, answer.get_json(), answer.mimetype) == (status, value, "application/json")
    assert status != 200 or answer.get_data(as_text=True).count("\n") > 3, "on lines of their own"


def test_before_the_cluster_was_seen_pages_say_so(two_ports: Flask) -> None:
    def not_yet() -> object:
        raise NotSyncedError(["pods not synced", "nodes not synced"])

    state_of(two_ports).pages[GANGS] = not_yet
    answer = two_ports.test_client().get(GANGS, environ_overrides={"SERVER_PORT": "8889", "REMOTE_ADDR": "127.0.0.1"})
    text = "the extender has not seen the whole cluster yet: pods not synced; nodes not synced"
    assert (answer.status_code, answer.get_json()) == (503, {"Error": text})


@pytest.mark.parametrize(
    ("port", "caller", "keys", "gangs"),
    [
        pytest.param(8888, "127.0.0.1", ["verbs"], False, id="the verbs"),
        pytest.param(8889, "127.0.0.1", ["ops"], True, id="the probes and the pages"),
        pytest.param(8889, "10.0.0.7", ["ops"], False, id="beyond loopback the probes"),
    ],
)
def test_the_root_lists_what_is_there(two_ports: Flask, port: int, caller: str, keys: list[str], gangs: bool) -> None:
    environ = {"SERVER_PORT": str(port), "REMOTE_ADDR": caller}
    answer = two_ports.test_client().get("/", environ_overrides=environ).get_json()
    assert list(answer) == keys
    assert ("GET /gangs" in str(answer)) is gangs


def test_a_listener_on_ipv6_shows_the_pages_to_ipv4_s_loopback(start: Callable[..., Service]) -> None:
    """As on `::`: there 127.0.0.1 arrives as ::ffff:127.0.0.1, and `explain` was told 404."""
    assert start(ops_bind_address="::ffff:127.0.0.1").ops("/gangs")[0] == 200
