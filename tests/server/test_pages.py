"""Pages: which callers see what by which port, what a refusal says, and the events of /ui through the real worker."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
from flask import Flask
from werkzeug.test import TestResponse

from extender.plugins.coscheduling.report.gang_status import (
    OF_OTHERS,
    GangStatus,
    GangSummary,
    PreemptionView,
    Victim,
)
from extender.plugins.coscheduling.report.outlook import PodStatus
from extender.scheduler.interface import CONFIGURATION, DRAIN, GANG, GANGS, POD, WHAT_IF
from extender.server import pages
from extender.server.app import create_app
from extender.server.options import ServeOptions
from extender.server.state import state_of
from tests.e2e.processes import eventually, free_port
from tests.fakes.verbs import FakeVerbs
from tests.server.service import LONG, SOON, Service

OPS, PAGES, VERBS = 8889, 8890, 8888
OPTIONS = ServeOptions(pages_bind_address="10.0.0.1", pages_tls_cert_file="c", pages_tls_private_key_file="k")
FAR = "10.0.0.7"


def summary(namespace: str, name: str) -> GangSummary:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return GangSummary(namespace, name, "Denied", at, "InsufficientResources", "no room", 2, {"bound": 0})


KNOWN = {gang.key: gang for gang in (summary("team-a", "train"), summary("team-b", "secret"))}


def status(key: str) -> GangStatus | None:
    if key not in KNOWN:
        return None
    victims = (Victim("team-a/low", "n1"), Victim("team-b/hidden", "n2", 7, "team-b/secret"))
    reserved_for = ("team-a/other", "team-b/secret", "team-c/third")
    return GangStatus(KNOWN[key], 0, 2, preemption=PreemptionView(victims), reserved_for=reserved_for)


@pytest.fixture
def app(verbs: FakeVerbs) -> Flask:
    app = create_app(verbs, OPTIONS, ops_port=OPS)
    state_of(app).pages.update(
        {
            GANGS: lambda: list(KNOWN.values()),
            GANG: status,
            POD: lambda key: PodStatus(key, "gang-scheduler", group="team-a/train", gang=status("team-a/train")),
            DRAIN: lambda node: {"node": node},
            CONFIGURATION: dict,
            WHAT_IF: lambda body, namespace: {"confined to": namespace},
        }
    )
    return app


def ask(app: Flask, path: str, port: int, token: str = "", caller: str = FAR, host: str = "x") -> TestResponse:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    environ = {"SERVER_PORT": str(port), "REMOTE_ADDR": caller, "HTTP_HOST": host}
    return app.test_client().get(path, headers=headers, environ_overrides=environ)


def near(app: Flask, path: str, headers: dict[str, str] | None = None) -> TestResponse:
    environ = {"SERVER_PORT": str(OPS), "HTTP_HOST": "localhost"}
    return app.test_client().get(path, headers=headers, environ_overrides=environ)


PATHS = ["/ui", "/ui/page.js", "/ui/page.css", "/ui/events", "/gangs", "/gangs/team-a/train"]


@pytest.mark.parametrize("path", PATHS)
def test_on_the_ops_port_pages_are_for_loopback_alone(app: Flask, path: str) -> None:
    near = ask(app, path, OPS, caller="127.0.0.1", host="localhost:8889")
    far = ask(app, path, OPS)
    assert (near.status_code, far.status_code) == (200, 404)
    near.close()


@pytest.mark.parametrize("path", PATHS)
def test_a_token_opens_no_page_on_the_other_ports(app: Flask, path: str) -> None:
    assert [ask(app, path, port, "operator").status_code for port in (OPS, VERBS)] == [404, 404]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("localhost:8889", 200, id="a port-forward"),
        pytest.param("127.0.0.1:8889", 200, id="by address"),
        pytest.param("[::1]:8889", 200, id="by IPv6"),
        pytest.param("localhost", 200, id="without a port"),
        pytest.param("gangs.example.com:8889", 403, id="a name of another site's that leads here"),
        pytest.param("localhost.example.com", 403, id="one that begins like ours"),
        pytest.param("127.0.0.1.example.com:8889", 403, id="or like an address"),
    ],
)
def test_on_loopback_the_browser_of_another_site_is_refused(app: Flask, host: str, status: int) -> None:
    assert ask(app, "/gangs", OPS, caller="127.0.0.1", host=host).status_code == status


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        pytest.param("/ui", "", 200, id="the empty frame asks for the token"),
        pytest.param("/ui/page.js", "", 200, id="with its script"),
        pytest.param("/ui/../page.js", "", 404, id="no other file"),
        pytest.param("/gangs", "", 401, id="without a token"),
        pytest.param("/gangs", "stolen", 401, id="a token of no user"),
        pytest.param("/gangs", "operator", 200, id="an operator sees all"),
        pytest.param("/gangs", "tenant", 403, id="a tenant not all"),
        pytest.param("/gangs?namespace=team-a", "tenant", 200, id="but its own namespace"),
        pytest.param("/gangs?namespace=team-b", "tenant", 403, id="and no other"),
        pytest.param("/gangs/team-a/train", "tenant", 200, id="one of its gangs"),
        pytest.param("/gangs/team-b/secret", "tenant", 403, id="none of another's"),
        pytest.param("/gangs/team-b/nothing", "tenant", 403, id="nor whether it is there"),
        pytest.param("/gangs/team-a/nothing", "tenant", 404, id="of its own it hears that"),
        pytest.param("/ui/events", "", 401, id="events without a token"),
        pytest.param("/ui/events", "tenant", 403, id="all events"),
        pytest.param("/ui/events?namespace=team-a", "tenant", 200, id="its own events"),
        pytest.param("/ui/events?namespace=team-b", "tenant", 403, id="another's events"),
        pytest.param("/pods/team-a/train-0", "tenant", 200, id="its pods"),
        pytest.param("/pods/team-b/train-0", "tenant", 403, id="no pod of another's"),
        pytest.param("/drain/n1", "tenant", 403, id="no node"),
        pytest.param("/drain/n1", "operator", 200, id="which an operator may ask about"),
        pytest.param("/configuration", "tenant", 403, id="nor the configuration"),
        pytest.param("/configuration", "operator", 200, id="but an operator"),
        pytest.param("/metrics", "operator", 404, id="no metrics there"),
        pytest.param("/livez", "operator", 404, id="no probes either"),
    ],
)
def test_what_a_token_opens_on_the_pages_port(app: Flask, path: str, token: str, status: int) -> None:
    response = ask(app, path, PAGES, token)
    assert response.status_code == status
    response.close()


@pytest.mark.parametrize(
    ("path", "token", "status", "confined"),
    [
        pytest.param("/whatif", "", 401, None, id="without a token"),
        pytest.param("/whatif", "tenant", 403, None, id="a tenant about the whole cluster"),
        pytest.param(
            "/whatif?namespace=team-a", "tenant", 200, "team-a", id="about its own namespace, and told no other"
        ),
        pytest.param("/whatif?namespace=team-b", "tenant", 403, None, id="about another's"),
        pytest.param("/whatif?namespace=", "tenant", 403, None, id="about no namespace"),
        pytest.param("/whatif", "operator", 200, "", id="an operator is told all"),
        pytest.param("/whatif?namespace=team-a", "operator", 200, "", id="about one namespace as well"),
    ],
)
def test_to_which_users_it_is_answered_what_would_be(
    app: Flask, path: str, token: str, status: int, confined: str | None
) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    environ = {"SERVER_PORT": str(PAGES)}
    response = app.test_client().post(path, json={}, headers=headers, environ_overrides=environ)
    assert (response.status_code, (response.get_json() or {}).get("confined to")) == (status, confined)


@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_no_verb_is_on_the_pages_port(app: Flask, verb: str) -> None:
    environ = {"SERVER_PORT": str(PAGES)}
    headers = {"Authorization": "Bearer operator"}
    assert app.test_client().post(f"/{verb}", headers=headers, environ_overrides=environ).status_code == 404


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param("Bearer operator", 200, id="as it should be"),
        pytest.param("bearer  operator ", 200, id="the scheme in any case"),
        pytest.param("Basic operator", 401, id="another scheme"),
        pytest.param("Bearer", 401, id="no token"),
        pytest.param("operator", 401, id="no scheme"),
    ],
)
def test_the_header_of_a_token(app: Flask, header: str, status: int) -> None:
    environ = {"SERVER_PORT": str(PAGES), "HTTP_AUTHORIZATION": header}
    assert app.test_client().get("/gangs", environ_overrides=environ).status_code == status


def test_a_refusal_is_a_status_of_the_api_server_s(app: Flask, verbs: FakeVerbs) -> None:
    refused = ask(app, "/gangs", PAGES)
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert refused.get_json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    forbidden = ask(app, "/gangs?namespace=team-b", PAGES, "tenant").get_json()
    assert (forbidden["reason"], forbidden["code"]) == ("Forbidden", 403)
    assert forbidden["message"] == 'User "tenant" cannot see namespace "team-b"'


def test_where_the_api_server_cannot_be_asked_nothing_is_shown(app: Flask, verbs: FakeVerbs) -> None:
    verbs.rights.answers = False
    response = ask(app, "/gangs", PAGES, "operator")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert "train" not in response.get_data(as_text=True)


def test_a_tenant_s_list_has_its_namespace_alone(app: Flask) -> None:
    own = ask(app, "/gangs?namespace=team-a", PAGES, "tenant").get_json()
    assert [gang["name"] for gang in own] == ["train"]
    everything = ask(app, "/gangs", PAGES, "operator").get_json()
    assert [gang["name"] for gang in everything] == ["train", "secret"]


def test_a_tenant_s_gang_names_no_gang_and_no_pod_of_others(app: Flask) -> None:
    for path in ("/pods/team-a/train-0", "/gangs/team-a/train"):
        page = ask(app, path, PAGES, "tenant")
        assert not re.search("secret|hidden|team-b|team-c|n2", page.get_data(as_text=True))
    shown = page.get_json()
    assert shown["reservedFor"] == ["team-a/other", OF_OTHERS]
    assert [each["pod"] for each in shown["preemption"]["victims"]] == ["team-a/low", OF_OTHERS]
    full = ask(app, "/gangs/team-a/train", PAGES, "operator").get_data(as_text=True)
    assert "team-b/hidden" in full


# The page itself


@pytest.mark.parametrize("path", ["/ui", "/ui/page.js", "/ui/page.css", "/ui/events", "/gangs"])
def test_a_browser_is_told_to_load_nothing_from_elsewhere_and_to_run_no_text(app: Flask, path: str) -> None:
    response = near(app, path)
    assert response.status_code == 200
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    response.close()


def test_what_is_shown_of_the_cluster_is_stored_nowhere(app: Flask) -> None:
    for path in ("/gangs", "/ui/events"):
        response = near(app, path)
        assert response.headers["Cache-Control"] == "no-store"
        response.close()


def test_an_unchanged_file_is_not_sent_again(app: Flask) -> None:
    first = near(app, "/ui/page.js")
    again = near(app, "/ui/page.js", {"If-None-Match": first.headers["ETag"]})
    assert (first.status_code, again.status_code, again.data) == (200, 304, b"")


def test_a_slash_at_the_end_leads_to_the_page(app: Flask) -> None:
    response = near(app, "/ui/")
    assert (response.status_code, response.headers["Location"]) == (308, "../ui")


def test_every_file_that_the_page_names_is_served_and_none_is_of_elsewhere(app: Flask) -> None:
    folder = Path(pages.__file__).with_name("ui")
    texts = {file.name: file.read_text() for file in folder.iterdir()}
    assert set(texts) == {name for name, _ in pages.FILES.values()}
    everything = "\n".join(texts.values())
    assert not re.search(r"https?://|//[a-z]", everything)
    for name in re.findall(r'(?:href|src)="ui/([\w.]+)"|from "\./([\w.]+)"', everything):
        assert near(app, f"/ui/{''.join(name)}").status_code == 200


@pytest.mark.parametrize(
    "word",
    [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "localStorage",
        "sessionStorage",
        "cookie =",
    ],
)
def test_no_script_makes_markup_of_text_or_keeps_a_token(word: str) -> None:
    folder = Path(pages.__file__).with_name("ui")
    assert not [file.name for file in folder.glob("*.js") if word in file.read_text()]


# Events


def test_events_are_the_feed_s_messages_with_a_sign_of_life_where_there_is_none(app: Flask, verbs: FakeVerbs) -> None:
    response = ask(app, "/ui/events?namespace=team-a", PAGES, "tenant")
    text = response.get_data(as_text=True)
    assert text == ': welcome\n\ndata: {"whole":true}\n\n: nothing new\n\ndata: {"gangs":[]}\n\n'
    assert response.mimetype == "text/event-stream"
    response.close()
    assert [(each.namespace, each.closed) for each in verbs.page.viewers] == [("team-a", True)]


def test_a_viewer_that_loses_its_right_is_shown_no_more(app: Flask, verbs: FakeVerbs) -> None:
    """Not one message more than the decision is kept for, however many there are."""
    response = ask(app, "/ui/events?namespace=team-a", PAGES, "tenant")
    messages: Any = response.response
    seen = [next(iter(messages)), next(iter(messages))]
    assert b"whole" in seen[1]
    verbs.rights.rights.clear()
    assert b"gangs" not in b"".join(messages)
    response.close()


def test_one_viewer_too_many_hears_so(app: Flask, verbs: FakeVerbs) -> None:
    verbs.page.most = 0
    response = ask(app, "/ui/events", PAGES, "operator")
    assert (response.status_code, response.get_json()) == (503, {"Error": "0 look at the page already"})


@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param("x" * 254, 400, id="too long for a name"),
        pytest.param("a%00b", 400, id="not printable"),
        pytest.param("team-a", 200, id="a name"),
    ],
)
def test_the_name_of_a_namespace(app: Flask, query: str, status: int) -> None:
    response = near(app, f"/ui/events?namespace={query}")
    assert response.status_code == status
    response.close()


# Through the real worker


@pytest.fixture
def pair(tmp_path: Path) -> dict[str, Any]:
    """A certificate of 127.0.0.1 for the pages' port, and the options that name it."""
    ca = trustme.CA()
    issued = ca.issue_cert("127.0.0.1")
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "pages.crt")
    issued.private_key_pem.write_to_path(tmp_path / "pages.key")
    return {
        "pages_bind_address": "127.0.0.1",
        "pages_port": free_port(),
        "pages_tls_cert_file": str(tmp_path / "pages.crt"),
        "pages_tls_private_key_file": str(tmp_path / "pages.key"),
    }


def connect(options: dict[str, Any], folder: Path) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    return http.client.HTTPSConnection("127.0.0.1", options["pages_port"], timeout=SOON, context=context)


def test_the_pages_port_has_tls_and_asks_for_a_token(
    start: Callable[..., Service], pair: dict[str, Any], tmp_path: Path
) -> None:
    service = start(**pair)
    answers = []
    for path, token in (("/ui", ""), ("/gangs", ""), ("/gangs", "operator"), ("/metrics", "operator")):
        connection = connect(pair, tmp_path)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        answer.read()
        answers.append(answer.status)
        connection.close()
    assert answers == [200, 401, 200, 404]
    assert service.ops("/livez")[0] == 200
    plain = http.client.HTTPConnection("127.0.0.1", pair["pages_port"], timeout=SOON)
    plain.request("GET", "/ui")
    with pytest.raises((http.client.HTTPException, OSError)):
        plain.getresponse()
    plain.close()


def test_a_viewer_that_hangs_up_is_gone_at_once(
    start: Callable[..., Service], pair: dict[str, Any], tmp_path: Path
) -> None:
    service = start({"FEED": "endless"}, **pair)
    connection = connect(pair, tmp_path)
    connection.request("GET", "/ui/events", headers={"Authorization": "Bearer operator"})
    answer = connection.getresponse()
    while b"whole" not in answer.readline():
        pass
    assert service.report()["viewers"] == 1
    answer.close()
    connection.close()
    eventually(lambda: service.report()["viewers"] == 0, within=SOON, what="the viewer is closed")


def test_each_event_leaves_as_it_comes_and_a_drain_waits_for_no_viewer(
    start: Callable[..., Service], pair: dict[str, Any], tmp_path: Path
) -> None:
    service = start({"FEED": "endless"}, **pair, drain_seconds=LONG)
    connection = connect(pair, tmp_path)
    connection.request("GET", "/ui/events", headers={"Authorization": "Bearer operator"})
    answer = connection.getresponse()
    lines = [answer.readline() for _ in range(4)]
    assert lines == [b": welcome\n", b"\n", b'data: {"whole":true}\n', b"\n"]
    assert service.ops("/livez")[0] == 200, "others are answered meanwhile"
    service.terminate(within=SOON)
    connection.close()
