"""/debug: served on the ops port to loopback and nowhere else; stacks of what runs, the log level, and hostile requests for either."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import pytest
from flask import Flask
from flask.testing import FlaskClient

from extender.server import logs
from extender.server.app import create_app
from extender.server.debug import STACKS, VERBOSITY
from extender.server.options import ServeOptions
from extender.server.stacks import MOST_NAMES, MOST_PLACES, Task, describe
from tests.e2e.processes import eventually
from tests.fakes.verbs import FakeVerbs
from tests.server.service import SOON, Service

OPS, VERBS, PAGES = 8889, 8888, 8890
PATHS = ("/debug", STACKS, "/debug/cache", "/debug/gangs", "/debug/gangs/default/train", VERBOSITY)
WITH_PAGES = ServeOptions(pages_bind_address="0.0.0.0", pages_tls_cert_file="c", pages_tls_private_key_file="k")


@pytest.fixture(autouse=True)
def _the_log_level_is_as_before() -> Iterator[None]:
    before = logging.getLogger("extender").level
    yield
    logging.getLogger("extender").setLevel(before)


@pytest.fixture
def three_ports(verbs: FakeVerbs) -> Flask:
    return create_app(verbs, WITH_PAGES, ops_port=OPS)


def ask(
    app: Flask, path: str, port: int = OPS, caller: str = "127.0.0.1", host: str = "localhost", method: str = "GET"
) -> int:
    environ = {"SERVER_PORT": str(port), "REMOTE_ADDR": caller, "HTTP_HOST": host}
    headers = {"Authorization": "Bearer operator", "X-Forwarded-For": "127.0.0.1"}
    return (
        app.test_client().open(path, method=method, headers=headers, data=b"4", environ_overrides=environ).status_code
    )


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("port", "caller", "host", "status"),
    [
        pytest.param(OPS, "127.0.0.1", "localhost:8889", 200, id="loopback"),
        pytest.param(OPS, "::1", "[::1]:8889", 200, id="loopback by IPv6"),
        pytest.param(OPS, "10.0.0.7", "localhost:8889", 404, id="another pod that says it is forwarded from loopback"),
        pytest.param(OPS, "::ffff:10.0.0.7", "localhost:8889", 404, id="another pod by a mapped address"),
        pytest.param(OPS, "127.0.0.1", "evil.example", 403, id="a browser led here by another site's name"),
        pytest.param(VERBS, "127.0.0.1", "localhost:8888", 404, id="the verbs' port"),
        pytest.param(PAGES, "127.0.0.1", "localhost:8890", 404, id="the pages' port, from loopback"),
        pytest.param(PAGES, "10.0.0.7", "pages", 404, id="the pages' port, with an operator's token"),
    ],
)
def test_where_it_is_served(three_ports: Flask, path: str, port: int, caller: str, host: str, status: int) -> None:
    assert ask(three_ports, path, port, caller, host) == status


def test_no_other_caller_changes_the_log_level(three_ports: Flask) -> None:
    for port, caller, host in [
        (VERBS, "127.0.0.1", "x"),
        (PAGES, "127.0.0.1", "x"),
        (OPS, "10.0.0.7", "x"),
        (OPS, "127.0.0.1", "x.y"),
    ]:
        assert ask(three_ports, VERBOSITY, port, caller, host, "PUT") in (403, 404)
    assert ask(three_ports, VERBOSITY, method="PUT") == 200


@pytest.mark.parametrize(
    ("environ", "listed"),
    [
        pytest.param({"SERVER_PORT": str(OPS), "REMOTE_ADDR": "127.0.0.1"}, True, id="loopback"),
        pytest.param({"SERVER_PORT": str(OPS), "REMOTE_ADDR": "10.0.0.7"}, False, id="another pod"),
        pytest.param({"SERVER_PORT": str(VERBS), "REMOTE_ADDR": "127.0.0.1"}, False, id="the verbs' port"),
    ],
)
def test_the_list_of_paths_names_it_where_it_is_served(
    three_ports: Flask, environ: dict[str, str], listed: bool
) -> None:
    text = (
        three_ports.test_client()
        .get("/", environ_overrides={**environ, "HTTP_HOST": "localhost"})
        .get_data(as_text=True)
    )
    assert (f"GET {STACKS}" in text) is listed


def test_its_own_list_has_all_that_there_is(client: FlaskClient, app: Flask) -> None:
    listed = {
        line.partition(" ")[2].partition("?")[0] for line in client.get("/debug").get_data(as_text=True).split("\n")
    }
    rules = {str(rule) for rule in app.url_map.iter_rules() if str(rule).startswith("/debug/")}
    assert {rule.replace("<namespace>", "NAMESPACE").replace("<name>", "NAME") for rule in rules} == listed - {""}


def test_what_the_scheduler_is_asked(client: FlaskClient) -> None:
    assert client.get("/debug/cache").json == {"api": False}
    assert client.get("/debug/cache?against=api").json == {"api": True}
    assert client.get("/debug/cache?against=etcd").status_code == 400
    assert client.get("/debug/gangs").json == [{"group": "default/train"}]
    assert client.get("/debug/gangs/default/train").json == {"group": "default/train"}
    assert client.get("/debug/gangs/default/other").status_code == 404


# The log level


def test_the_log_level_is_set_and_told(client: FlaskClient) -> None:
    assert client.get(VERBOSITY).data == b"2\n"
    answer = client.put(VERBOSITY, data=b"4")
    assert (answer.status_code, answer.data) == (200, b"successfully set the verbosity to 4\n")
    assert client.get(VERBOSITY).data == b"4\n"
    assert logging.getLogger("extender").level == logging.DEBUG
    client.put(VERBOSITY, data=b" 0\n")
    assert logging.getLogger("extender").level == logging.ERROR


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"", 411, id="nothing"),
        pytest.param(b"-1", 400, id="below 0"),
        pytest.param(str(logs.MOST_VERBOSE + 1).encode(), 400, id="more than there is"),
        pytest.param(b"4; rm", 400, id="more than a number"),
        pytest.param("٤".encode(), 400, id="a digit of another script"),
        pytest.param(b"1e1", 400, id="a number of another form"),
        pytest.param(b"9" * 16, 400, id="a number as long as it may be"),
        pytest.param(b"4" * 17, 413, id="a body that is too long"),
        pytest.param(b"\x00\xff", 400, id="no text"),
    ],
)
def test_a_log_level_that_is_none_is_refused(client: FlaskClient, body: bytes, status: int) -> None:
    assert client.put(VERBOSITY, data=body).status_code == status
    assert client.get(VERBOSITY).data == b"2\n"


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", PATHS)
def test_no_other_method_does_anything(client: FlaskClient, path: str, method: str) -> None:
    assert client.open(path, method=method, data=b"4").status_code == 405


# Stacks


def waiting(count: int) -> tuple[list[threading.Thread], threading.Event]:
    end = threading.Event()
    threads = [threading.Thread(target=end.wait, name=f"waits-{number}") for number in range(count)]
    for thread in threads:
        thread.start()
    return threads, end


def test_threads_that_wait_at_one_place_are_one_paragraph_by_their_names(client: FlaskClient) -> None:
    threads, end = waiting(3)
    try:
        text = client.get(STACKS).get_data(as_text=True)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert "3 at: waits-0, waits-1, waits-2\n" in text
    assert "stacks.py" not in text  # the thread that asks is left out


def test_no_value_of_a_frame_is_shown(client: FlaskClient) -> None:
    secret = "hunter" + "2"
    text = client.get(STACKS).get_data(as_text=True)
    assert secret not in text


def test_what_is_too_much_is_cut() -> None:
    frames = [_frame_of(number) for number in range(MOST_PLACES + 3)]
    text = describe("greenlet", [Task("g", frame) for frame in frames])
    assert text.startswith(f"{MOST_PLACES + 3} greenlets\n")
    assert text.endswith("... and 3 places more\n")
    many = describe("greenlet", [Task(f"g{number}", frames[0]) for number in range(MOST_NAMES + 2)])
    assert f"{MOST_NAMES + 2} at: " in many
    assert many.count("... and 2 more") == 1


def _frame_of(number: int) -> FrameType:
    """Each from a line of its own."""
    there: dict[str, FrameType] = {}
    exec(compile("\n" * number + "import sys; frame = sys._getframe()", f"place-{number}", "exec"), {}, there)
    return there["frame"]


def test_a_task_that_has_ended_is_left_out() -> None:
    assert describe("thread", [Task("gone", None)]).startswith("0 threads\n")


def test_the_running_service_shows_its_held_binds_and_its_background(start: Callable[..., Service]) -> None:
    """Greenlets that were there before the heap was frozen, and those of calls that came after."""
    service = start()
    service.hold(3)
    status, text = service.ops(STACKS)
    assert status == 200
    assert "3 at: " in text
    assert "in bind\n" in text
    assert "loop-lag" in text or "loop_lag.py" in text
    assert "threads\n" in text


def test_the_running_service_says_more_or_less_from_then_on(start: Callable[..., Service]) -> None:
    service = start()
    client = http.client.HTTPConnection("127.0.0.1", service.ops_port, timeout=SOON)
    client.request("PUT", VERBOSITY, b"4")
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, b"successfully set the verbosity to 4\n")
    client.close()
    line = "log level changed verbosity=4 before=2"  # by the thread that writes the log
    eventually(lambda: line in service.program.log(), within=SOON, what=line)
    assert service.ops(VERBOSITY) == (200, "4\n")


def test_an_address_beyond_loopback_is_not_served_by_a_running_service(start: Callable[..., Service]) -> None:
    """The ops port listens on every address; this machine's own other one stands for a pod's."""
    service = start(ops_bind_address="0.0.0.0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        address = probe.getsockname()[0]
    client = http.client.HTTPConnection(address, service.ops_port, timeout=SOON)
    for path in PATHS:
        client.request("GET", path)
        answer = client.getresponse()
        answer.read()
        assert (path, answer.status) == (path, 404)
    client.close()
    assert service.ops(STACKS)[0] == 200


def test_a_body_that_does_not_come_holds_nothing_up(start: Callable[..., Service]) -> None:
    service = start()
    with service.connect(service.ops_port) as caller:
        caller.sendall(f"PUT {VERBOSITY} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n4".encode())
        assert service.ops("/readyz")[0] == 200
        caller.settimeout(10)
        assert b" 408 " in caller.recv(4096)
    assert service.ops(VERBOSITY) == (200, "2\n")
