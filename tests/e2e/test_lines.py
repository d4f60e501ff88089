"""The line to the API server is slow, cut, silent or tells things twice, and calls on it are refused, lost or made twice.

The extender's watches are a sixth as long as shipped, so that their end and their silence come within seconds. Bytes are the link's, calls
and the lines of watches the scripted connection's behind it. After each story the cache is what the API server lists, and conftest's
checker has found no gang bound in part.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
import urllib3

from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.link import PASS, Kind, Link, Mode
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.scripted_connection import Call, CutHereError, ScriptedConnection

SECONDS = 5.0  # of a watch
NAMES = ("g-0", "g-1", "g-2")
SILENT = SECONDS * 1.2 + 1.0  # after which a watch has lost its server, at most
PODS, GROUPS = f"GET {paths.ALL_PODS}$", f"GET {paths.ALL_POD_GROUPS}$"
CONFLICTS = "gang_extender_bind_conflicts_total"
Line = tuple[Link, ScriptedConnection]


@pytest.fixture(scope="module")
def line(plane: ControlPlane) -> Iterator[Line]:
    connection = ScriptedConnection(plane.server, plane.ca_file)
    link = Link(int(connection.url.rpartition(":")[2]))
    connection.start()
    link.start()
    yield link, connection
    link.stop()
    connection.stop()


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, line: Line, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """In place of conftest's: the extender sees the API server through the line."""
    link, _ = line
    pair = Pair.of(plane, tmp_path_factory.mktemp("pair"), server=f"http://127.0.0.1:{link.port}")
    command = pair.extender.program.command
    at = command.index("extender.cli.main")
    command[at : at + 1] = ["tests.e2e.short_watches", str(SECONDS)]
    with pair.running():
        yield pair


@pytest.fixture
def link(line: Line) -> Iterator[Link]:
    yield line[0]
    line[0].set(PASS)


@pytest.fixture
def api_server(line: Line, module_programs: Pair) -> Iterator[ScriptedConnection]:
    """What the extender takes for it."""
    yield line[1]
    line[1].pass_all()


@pytest.fixture(autouse=True)
def true_to_the_cluster(cluster: Cluster, module_programs: Pair, line: Line) -> Iterator[None]:
    """At the end of each story, with nothing befalling the line any more."""
    yield
    line[0].set(PASS)
    line[1].pass_all()

    def seen() -> bool:
        status, text = module_programs.extender.ops("/debug/cache?against=api")
        return status == 200 and json.loads(text)["differs"] is False

    eventually(seen, within=30, what="the cache is what the API server lists", every=0.2)
    assert "Traceback" not in module_programs.extender.log()


def gang(cluster: Cluster, *, cpu: str = "1") -> None:
    cluster.pod_group("g", min_member=len(NAMES))
    for name in NAMES:
        cluster.pod(name, group="g", requests={"cpu": cpu})


def gang_starts(cluster: Cluster, within: float = 10) -> None:
    gang(cluster)
    cluster.recorder.await_bound(*NAMES, within=within)


def full_node(cluster: Cluster, pair: Pair) -> None:
    """It has room for the gang, and a pod in it."""
    cluster.node("node-1", cpu="3")
    cluster.pod("old", requests={"cpu": "1"})
    cluster.recorder.await_bound("old", within=10)
    eventually(lambda: pods_in_the_cache(pair) == 1, within=5, what="the extender has seen it")


def pods_in_the_cache(pair: Pair) -> int:
    text = pair.extender.ops("/metrics")[1]
    return int(float(next(line.split()[1] for line in text.splitlines() if line.startswith(CACHED))))


CACHED = 'scheduler_cache_size{type="pods"}'


def listed(api_server: ScriptedConnection, since: float) -> list[Call]:
    """All pods, or all PodGroups."""
    return [call for call in api_server.calls(f"{PODS}|{GROUPS}", since=since) if call.is_list]


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Mode(Kind.DELAY, 1.0), id="every piece is late by a second"),
        pytest.param(Mode(Kind.THROTTLE, 20_000), id="20 kB a second"),
        pytest.param(Mode(Kind.TRUNCATE, 1500), id="each answer is cut after 1,500 bytes"),
        pytest.param(Mode(Kind.HALF_CLOSE), id="what comes back ends"),
        pytest.param(Mode(Kind.BLACKHOLE_BACK), id="what comes back is lost"),
        pytest.param(Mode(Kind.BLACKHOLE), id="everything is lost"),
    ],
)
def test_a_gang_that_comes_while_the_line_is_bad_starts_whole(
    mode: Mode, cluster: Cluster, module_programs: Pair, link: Link
) -> None:
    """On a slow one now, on the others when they pass again."""
    cluster.node("node-1")
    link.set(mode)
    gang(cluster)
    if mode.kind in (Kind.DELAY, Kind.THROTTLE):
        cluster.recorder.await_bound(*NAMES, within=25)
        return
    time.sleep(2)
    assert module_programs.extender.ops("/livez")[0] == 200
    assert cluster.recorder.bound() == set()
    link.set(PASS)
    cluster.recorder.await_bound(*NAMES, within=25)


def test_a_binding_that_is_not_answered_is_given_up_in_time(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """A call that waits for it as for any other would take half a minute. Of those that are made just then again, some are first."""
    cluster.killed = True
    cluster.node("node-1")
    api_server.befall_bindings(*[api_server.never_answered] * 100)
    gang(cluster)
    eventually(
        lambda: all(map(_is_given_up, map(cluster.recorder.condition, NAMES))), within=10, what="all are told so"
    )
    assert cluster.recorder.bound() == set()
    api_server.pass_all()
    cluster.recorder.await_bound(*NAMES, within=20)


def _is_given_up(condition: Mapping[str, Any]) -> bool:
    """One that waited for a connection meanwhile had no time left."""
    return any(text in condition.get("message", "") for text in ("no answer in the call's time", "no time was left"))


def test_a_binding_is_not_posted_again_before_retry_after_is_over(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    cluster.node("node-1")
    api_server.befall_bindings(*[api_server.refused(429, "TooManyRequests", retry_after=2)] * len(NAMES))
    began = time.monotonic()
    gang_starts(cluster)
    for name in NAMES:
        first, second = api_server.calls(f"POST .*/{name}/binding$", since=began)
        assert second.at - first.at >= 2
        assert cluster.recorder.condition(name)["status"] == "True"


def test_a_gang_that_etcd_has_no_space_for_starts_whole_once_it_has(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """Until then its members say so."""
    cluster.node("node-1")
    full = api_server.refused(500, "", message="etcdserver: mvcc: database space exceeded")
    api_server.befall_bindings(*[full] * 100)
    gang(cluster)
    for name in NAMES:
        cluster.recorder.await_message(name, "database space exceeded", within=15)
    assert cluster.recorder.bound() == set()
    cluster.killed = True  # of those that are made just then again, some are first
    api_server.pass_all()
    cluster.recorder.await_bound(*NAMES, within=20)


def test_nothing_is_asked_again_before_retry_after_is_over(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """A watch that has to begin anew with a list, which is refused twice."""
    full_node(cluster, module_programs)
    began = time.monotonic()
    api_server.befall_reads(r"^/api/v1/pods\?.*watch", api_server.refused(410, "Expired"))
    api_server.befall_reads(
        r"^/api/v1/pods\?.*limit=\d{2}", api_server.refused(429, "TooManyRequests", retry_after=2), 2
    )
    api_server.cut()
    cluster.delete_pod("old")
    gang_starts(cluster, within=20)
    first, second, third = (call.at for call in listed(api_server, began))
    assert second - first >= 2
    assert third - second >= 2


EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old"}}\n'
)


def test_after_410_what_went_meanwhile_is_not_there_any_more(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """A pod's end is lost on the way; then, in the next line, the server says that it has forgotten the version."""
    full_node(cluster, module_programs)
    began = time.monotonic()
    api_server.line = lambda path, line: b"" if path == paths.ALL_PODS else line
    cluster.delete_pod("old")
    cluster.recorder.wait(lambda: cluster.recorder.pod("old") is None, within=5, what="it is gone")
    gang(cluster)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    assert pods_in_the_cache(module_programs) == 1
    api_server.line = lambda path, line: EXPIRED if path == paths.ALL_PODS else line
    cluster.node("node-2", cpu="0")
    cluster.pod("next", scheduler_name="another")  # the line that is another now
    eventually(lambda: listed(api_server, began), within=10, what="a list")
    api_server.pass_all()
    cluster.recorder.await_bound(*NAMES, within=20)


def test_a_410_in_place_of_a_watch_is_followed_by_a_list(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """Of two kinds at once."""
    full_node(cluster, module_programs)
    began = time.monotonic()
    for path in (paths.ALL_PODS, paths.ALL_POD_GROUPS):
        api_server.befall_reads(rf"^{path}\?.*watch", api_server.refused(410, "Expired"))
    api_server.cut()
    cluster.delete_pod("old")
    gang_starts(cluster, within=20)
    assert {call.path for call in listed(api_server, began)} == {paths.ALL_PODS, paths.ALL_POD_GROUPS}


@pytest.mark.parametrize("kept", [pytest.param(True, id="bookmarks alone"), pytest.param(False, id="nothing at all")])
def test_quiet_watches_begin_again_and_list_nothing(
    kept: bool, cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """With a bookmark where it stood, and without where the last one stood."""
    cluster.node("node-1")
    bookmarks: list[str] = []

    def through(path: str, line: bytes) -> bytes:
        if not line.startswith(b'{"type":"BOOKMARK"'):
            return line
        if path == paths.ALL_PODS:
            bookmarks.append(json.loads(line)["object"]["metadata"]["resourceVersion"])
        return line if kept else b""

    api_server.line = through
    began = time.monotonic()

    def begun() -> list[str]:
        return [call.query["resourceVersion"] for call in api_server.calls(PODS, since=began) if call.is_watch]

    eventually(lambda: bookmarks and len(begun()) >= 2, within=3 * SECONDS, what="two watches began")
    eventually(lambda: not kept or bookmarks[0] in begun(), within=2 * SECONDS, what="one began at the bookmark")
    gang_starts(cluster)
    assert listed(api_server, began) == []


def test_watches_whose_connections_die_silently_are_found_by_their_silence(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    full_node(cluster, module_programs)
    api_server.stall_watches()
    began = time.monotonic()
    cluster.delete_pod("old")
    gang(cluster)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    cluster.recorder.await_bound(*NAMES, within=SILENT + 15)
    assert listed(api_server, began) == []


def test_events_that_are_cut_in_the_middle_are_read_again_and_nothing_is_listed(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    full_node(cluster, module_programs)
    began = time.monotonic()
    cuts: list[str] = []

    def cut_once(path: str, line: bytes) -> bytes:
        if path in cuts:
            return line
        cuts.append(path)
        raise CutHereError(line[: len(line) // 2])

    api_server.line = cut_once
    cluster.delete_pod("old")
    gang_starts(cluster, within=15)
    assert {paths.ALL_PODS, paths.ALL_POD_GROUPS} <= set(cuts)
    assert listed(api_server, began) == []


@pytest.mark.parametrize(
    "order", [pytest.param("twice", id="twice"), pytest.param("older", id="the older after the newer")]
)
def test_events_that_come_twice_or_out_of_order_change_nothing(
    order: str, cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """Were the older one believed, a pod on the node would be none, and the gang would be planned into its room."""
    last: dict[str, bytes] = {}

    def again(path: str, line: bytes) -> bytes:
        event = json.loads(line)
        metadata = event["object"].get("metadata", {})
        if "uid" not in metadata or event["type"] == "DELETED":
            return line
        before = last.get(metadata["uid"], line)
        last[metadata["uid"]] = line
        return line + (line if order == "twice" else before)

    api_server.line = again
    full_node(cluster, module_programs)
    planned = module_programs.extender.planned("default/g")
    gang(cluster)
    cluster.recorder.settle()
    assert module_programs.extender.planned("default/g") == planned
    assert cluster.recorder.bound() == {"old"}
    cluster.delete_pod("old")
    cluster.recorder.await_bound(*NAMES, within=15)
    eventually(lambda: pods_in_the_cache(module_programs) == 3, within=5, what="the members are seen")
    cluster.recorder.settle()
    assert pods_in_the_cache(module_programs) == 3


def bind(pair: Pair, pod: str, uid: str, node: str = "node-1") -> str:
    """A call like kube-scheduler's; the error that it is answered."""
    body = json.dumps({"PodName": pod, "PodNamespace": "default", "PodUID": uid, "Node": node})
    with urllib3.PoolManager(retries=False, timeout=30) as http:
        return str(json.loads(http.request("POST", f"{pair.extender.url}/bind", body=body).data)["Error"])


def test_two_bind_calls_for_one_pod_at_once_post_one_binding(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    cluster.node("node-1")
    began = time.monotonic()
    api_server.befall_bindings(api_server.until_released)
    uid = cluster.pod("single")
    eventually(lambda: api_server.calls("POST .*/single/binding$", since=began), within=10, what="it is being bound")
    answers: list[str] = []
    calls = [
        threading.Thread(target=lambda: answers.append(bind(module_programs, "single", uid)), name="bind")
        for _ in range(2)
    ]
    for call in calls:
        call.start()
    time.sleep(0.3)
    assert answers == []
    api_server.pass_all()
    for call in calls:
        call.join()
    assert answers == ["", ""]
    cluster.recorder.await_bound("single", within=5)
    assert len(api_server.calls("POST .*/single/binding$", since=began)) == 1
    assert cluster.recorder.condition("single")["status"] == "True"


def test_bindings_whose_answers_are_lost_count(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    """Nor does the read after it come through: it is posted again, which is a 409. The fault on the read is laid with the lost answer:
    a bind call for a pod that no watch event has told of yet reads it, too."""

    def lost_and_unreadable(call: BaseHTTPRequestHandler, body: bytes) -> None:
        pod = call.path.removesuffix("/binding")
        api_server.befall_reads(f"{pod}$", api_server.refused(503, "ServiceUnavailable"))
        api_server.lost_after(call, body)

    cluster.node("node-1")
    before = module_programs.extender.metric(CONFLICTS)
    api_server.befall_bindings(*[lost_and_unreadable] * len(NAMES))
    gang_starts(cluster)
    cluster.recorder.settle()
    assert module_programs.extender.metric(CONFLICTS) > before
    assert not [event for name in NAMES for event in cluster.events(name) if "Bind plugin" in event]


def test_a_pod_that_was_bound_to_another_node_meanwhile_stays_there(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    cluster.node("node-1")
    began = time.monotonic()
    api_server.befall_bindings(api_server.until_released)
    uid = cluster.pod("moved")
    eventually(lambda: api_server.calls("POST .*/moved/binding$", since=began), within=10, what="it is being bound")
    cluster.node("node-2")
    body: dict[str, Any] = {"metadata": {"name": "moved", "uid": uid}, "target": {"kind": "Node", "name": "node-2"}}
    cluster.api.create("/api/v1/namespaces/default/pods/moved/binding", body)
    answers: list[str] = []
    again = threading.Thread(target=lambda: answers.append(bind(module_programs, "moved", uid)), name="bind")
    again.start()
    time.sleep(0.2)
    api_server.pass_all()
    again.join()
    assert answers == ['pod "default/moved" is already assigned to node "node-2"']
    assert cluster.recorder.node_of("moved") == "node-2"
    assert "pod bound pod=default/moved" not in module_programs.extender.log()


def test_a_bind_call_that_is_replayed_binds_no_other_pod_of_that_name(
    cluster: Cluster, module_programs: Pair, api_server: ScriptedConnection
) -> None:
    cluster.node("node-1")
    old = cluster.pod("single")
    cluster.recorder.await_bound("single", within=10)
    cluster.delete_pod("single")
    cluster.recorder.wait(lambda: cluster.recorder.pod("single") is None, within=5, what="it is gone")
    cluster.pod("single", nodeSelector={"no": "where"})
    cluster.recorder.await_message("single", "node affinity", within=10)
    began = time.monotonic()
    # Until its own watch shows the other one, a call about the old one is told that it is bound, as it was.
    eventually(lambda: old in bind(module_programs, "single", old), within=5, what="the call is refused")
    assert cluster.recorder.bound() == set()
    assert api_server.calls("POST .*/binding$", since=began) == []
