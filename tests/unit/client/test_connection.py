"""Calls of the API server: what is sent, what failures mean, and the token that rotates."""

from __future__ import annotations

import json
import socket
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.client import errors, transport
from extender.client.connection import Connection
from extender.client.credentials import IdentityError
from extender.client.identity import Identity
from extender.client.interface import (
    NODES,
    POD_GROUPS,
    PODS,
    VOLCANO_POD_GROUPS,
    PatchType,
    Preconditions,
    ResourceType,
    User,
)
from extender.client.time_limit import within
from extender.client.transport import Pool
from tests.fakes.api_server import Answer, FakeAPIServer, node, status_of


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(status_of(400, "BadRequest"), errors.BadRequestError, id="400"),
        pytest.param(status_of(403, "Forbidden"), errors.ForbiddenError, id="403"),
        pytest.param(status_of(404, "NotFound"), errors.NotFoundError, id="404"),
        pytest.param(status_of(409, "Conflict"), errors.ConflictError, id="409 of a precondition"),
        pytest.param(status_of(409, "AlreadyExists"), errors.AlreadyExistsError, id="409 of a name that is taken"),
        pytest.param(status_of(410, "Expired"), errors.GoneError, id="410"),
        pytest.param(status_of(422, "Invalid"), errors.InvalidError, id="422"),
        pytest.param(status_of(429, "TooManyRequests"), errors.TooManyRequestsError, id="429"),
        pytest.param(Answer(500, "no Status at all"), errors.ApiError, id="500 without a Status"),
    ],
)
def test_a_failure_is_an_error_of_its_own_kind(
    server: FakeAPIServer, connection: Connection, answer: Answer, kind: type[errors.ApiError]
) -> None:
    server.others.append(answer)
    with pytest.raises(kind) as raised:
        connection.get(NODES, "n1")
    assert type(raised.value) is kind
    assert raised.value.code == answer.status


def test_no_answer_is_an_outcome_that_is_open(kubeconfig: Path, server: FakeAPIServer) -> None:
    connection = Connection.from_kubeconfig(str(kubeconfig))
    server.stop()
    with pytest.raises(errors.ConnectionFailedError):
        connection.get(NODES, "n1")
    connection.close()


def test_a_401_reads_the_token_anew_and_tries_once_more(
    server: FakeAPIServer, connection: Connection, token_file: Path
) -> None:
    server.others.extend([status_of(401, "Unauthorized"), Answer(body=node("n1"))])
    token_file.write_text("second")
    assert connection.get(NODES, "n1").name == "n1"
    assert [headers["Authorization"] for _, _, headers, _ in server.seen] == ["Bearer first", "Bearer second"]


def test_a_401_that_stays_is_told(server: FakeAPIServer, connection: Connection) -> None:
    server.others.append(status_of(401, "Unauthorized"))
    with pytest.raises(errors.UnauthorizedError):
        connection.get(NODES, "n1")
    assert len(server.seen) == 2


def test_a_binding_carries_the_uid_and_the_node(server: FakeAPIServer, connection: Connection) -> None:
    server.others.append(Answer(201, {}))
    connection.bind(
        corev1.Binding(ObjectMeta(name="p", namespace="ns", uid="u"), corev1.ObjectReference(kind="Node", name="n1"))
    )
    method, path, _, body = server.seen[0]
    assert (method, path) == ("POST", "/api/v1/namespaces/ns/pods/p/binding")
    assert json.loads(body) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "target": {"kind": "Node", "name": "n1"},
    }


def test_a_binding_does_not_wait_for_calls_that_are_slow(
    server: FakeAPIServer, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "POOL_SIZE", 1)
    answered = threading.Event()
    server.others.extend([Answer(body=node("n1"), until=answered), Answer(201, {})])
    made = Connection.from_kubeconfig(str(kubeconfig))
    slow = threading.Thread(target=made.get, args=(NODES, "n1"))
    slow.start()
    server.await_calls(1)
    try:
        made.bind(corev1.Binding(ObjectMeta(name="p", namespace="ns"), corev1.ObjectReference(kind="Node", name="n1")))
        assert slow.is_alive(), "the binding is done, and the call is still under way"
        assert [method for method, _, _, _ in server.seen] == ["GET", "POST"]
    finally:
        answered.set()
        slow.join()
        made.close()


@pytest.mark.parametrize("verb", ["get", "bind", "watch"])
def test_a_connection_notices_that_its_server_has_gone(
    server: FakeAPIServer, connection: Connection, verb: str
) -> None:
    """A call takes at most 30 s, a watch a little more than the server was asked to let it last; a server that vanished
    without a word is found by probes of the kernel's within 45 s."""
    server.others.append(Answer(body=node("n1")))
    server.watches.append(Answer(lines=[{"type": "ADDED", "object": node("n1")}], hang=True))
    if verb == "get":
        connection.get(NODES, "n1")
    elif verb == "bind":
        connection.bind(
            corev1.Binding(ObjectMeta(name="p", namespace="ns"), corev1.ObjectReference(kind="Node", name="n1"))
        )
    sock = _socket_of(connection, verb)
    assert sock.gettimeout() == (13.0 if verb == "watch" else 30.0)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    idle, interval, count = (
        sock.getsockopt(socket.IPPROTO_TCP, option)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    )
    assert idle + interval * count <= 45


def _socket_of(connection: Connection, verb: str) -> socket.socket:
    if verb == "watch":
        watch: Any = connection.watch(NODES, timeout_seconds=10.0)
        found: socket.socket = watch._response._connection.sock
        return found
    pool: Any = connection._transport._pools[Pool.BINDINGS if verb == "bind" else Pool.CALLS].pool
    made = next(each for each in pool.queue if each is not None)
    sock: socket.socket = made.sock
    return sock


def test_patches_and_deletions_say_what_they_are(server: FakeAPIServer, connection: Connection) -> None:
    server.others.append(Answer(body=node("p")))
    connection.patch(PODS, "p", {"status": {}}, namespace="ns", subresource="status", patch_type=PatchType.STRATEGIC)
    connection.delete(PODS, "p", "ns", preconditions=Preconditions(uid="u"), grace_period_seconds=0, dry_run=True)
    (patch, path, headers, _), (delete, _, _, options) = server.seen
    assert (patch, path) == ("PATCH", "/api/v1/namespaces/ns/pods/p/status")
    assert headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert delete == "DELETE"
    assert json.loads(options)["preconditions"] == {"uid": "u"}
    assert json.loads(options)["dryRun"] == ["All"]


def test_a_kubeconfig_that_is_no_use_is_named(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("clusters: nonsense")
    with pytest.raises(IdentityError, match=str(file)):
        Identity.from_kubeconfig(str(file))


@pytest.mark.parametrize("busy", [0, transport.POOL_SIZE], ids=["the server is silent", "no connection is free"])
def test_a_call_ends_within_the_time_that_its_caller_has(
    server: FakeAPIServer, connection: Connection, busy: int
) -> None:
    """A call has 30 s otherwise, and waits for a connection for ever."""
    go_on = threading.Event()
    server.others.append(Answer(until=go_on, body={}))
    binding = corev1.Binding(ObjectMeta(name="p", namespace="ns"), corev1.ObjectReference(kind="Node", name="n1"))
    threads = [threading.Thread(target=connection.bind, args=(binding,)) for _ in range(busy)]
    for thread in threads:
        thread.start()
    server.await_calls(busy)
    began = time.monotonic()
    try:
        with within(0.1), pytest.raises(errors.ConnectionFailedError) as raised:
            connection.bind(binding)
        why = "all connections were in use until the call's time was over" if busy else "no answer in the call's time"
        assert str(raised.value).endswith(f": {server.url.removeprefix('http://')}: {why}")
        assert time.monotonic() - began < 5.0
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


def test_a_connection_that_is_cut_names_no_class_of_ours(server: FakeAPIServer, connection: Connection) -> None:
    server.others.append(Answer(no_answer=True))
    with pytest.raises(errors.ConnectionFailedError) as cut:
        connection.get(NODES, "n1")
    assert "Pool" not in str(cut.value)
    assert "_InOnePiece" not in str(cut.value)


def test_a_call_for_which_no_time_is_left_is_not_made(server: FakeAPIServer, connection: Connection) -> None:
    with within(0.0), within(10.0), pytest.raises(errors.TimedOutError, match="no time was left"):
        connection.get(PODS, "p", "default")
    assert not server.seen


@pytest.mark.parametrize(
    ("resource", "discovered", "kind", "asked"),
    [
        pytest.param(VOLCANO_POD_GROUPS, 404, errors.NotFoundError, 2, id="a kind that is not there"),
        pytest.param(VOLCANO_POD_GROUPS, 200, errors.ForbiddenError, 2, id="a kind that is there"),
        pytest.param(VOLCANO_POD_GROUPS, 403, errors.ForbiddenError, 2, id="nor may it be asked whether it is there"),
        pytest.param(NODES, 404, errors.ForbiddenError, 1, id="a kind that is always there"),
    ],
)
def test_a_list_that_is_forbidden_may_be_of_a_kind_that_is_not_served(
    server: FakeAPIServer,
    connection: Connection,
    resource: ResourceType[Any],
    discovered: int,
    kind: type[errors.ApiError],
    asked: int,
) -> None:
    """The API server looks at the right before it looks for the kind."""
    server.lists.append(status_of(403, "Forbidden"))
    server.others.append(Answer(200, {"resources": []}) if discovered == 200 else status_of(discovered))
    with pytest.raises(kind):
        connection.list_page(resource)
    assert [path for _, path, _, _ in server.seen][1:] == ["/apis/scheduling.volcano.sh/v1beta1"][: asked - 1]


def test_the_bearer_of_a_token_and_what_it_may_is_asked_with_all_that_the_api_server_said(
    server: FakeAPIServer, connection: Connection
) -> None:
    known = {"username": "alice", "uid": "u1", "groups": ["admins"], "extra": {"scopes": ["x", "y"]}}
    server.others.append(Answer(201, {"status": {"authenticated": True, "user": known}}))
    server.others.append(Answer(201, {"status": {"allowed": True}}))
    user = connection.user_of("secret")
    assert user == User("alice", "u1", ("admins",), {"scopes": ("x", "y")})
    assert connection.user_may(user, "get", POD_GROUPS, namespace="team-a", name="train")
    review, access = (json.loads(body) for _, _, _, body in server.seen[-2:])
    assert (review["kind"], review["spec"]) == ("TokenReview", {"token": "secret"})
    assert access["kind"] == "SubjectAccessReview"
    wanted = {"verb": "get", "group": "scheduling.x-k8s.io", "resource": "podgroups", "subresource": ""}
    assert access["spec"] == {
        "resourceAttributes": {**wanted, "namespace": "team-a", "name": "train"},
        "user": "alice",
        "uid": "u1",
        "groups": ["admins"],
        "extra": {"scopes": ["x", "y"]},
    }


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="no word"),
        pytest.param({"authenticated": False, "error": "expired"}, id="not vouched for"),
        pytest.param({"authenticated": True, "user": {}}, id="of a user without a name"),
        pytest.param({"user": {"username": "alice"}}, id="only a name"),
    ],
)
def test_a_token_that_no_user_has(server: FakeAPIServer, connection: Connection, status: dict[str, Any]) -> None:
    server.others.append(Answer(201, {"status": status}))
    assert connection.user_of("secret") is None


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        pytest.param("Thu, 01 Jan 2026 12:00:07 GMT", datetime(2026, 1, 1, 12, 0, 7, tzinfo=UTC), id="a date"),
        pytest.param("", None, id="none"),
        pytest.param("yesterday", None, id="no date"),
    ],
)
@pytest.mark.parametrize(
    "framed", [pytest.param({}, id="short"), pytest.param({"Content-Encoding": "identity"}, id="by http.client")]
)
def test_the_api_servers_clock_is_the_date_of_an_answer(
    server: FakeAPIServer, connection: Connection, date: str, expected: datetime | None, framed: dict[str, str]
) -> None:
    server.others.append(Answer(200, {"major": "1", "minor": "36"}, {"Date": date, **framed}))
    assert connection.server_time() == expected


def test_the_versions_of_an_api_group_are_those_of_discovery(server: FakeAPIServer, connection: Connection) -> None:
    found = {"versions": [{"version": "v1"}, {"version": "v1beta1"}], "preferredVersion": {"version": "v1"}}
    server.others += [Answer(200, found), status_of(404, "NotFound")]
    assert connection.served_versions("scheduling.k8s.io") == ("v1", "v1beta1")
    assert connection.served_versions("scheduling.volcano.sh") == ()
    assert [path for _, path, _, _ in server.seen] == ["/apis/scheduling.k8s.io", "/apis/scheduling.volcano.sh"]
