"""Each judge of a fault run lets a good history pass, and catches the fault that is planted for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.api import Json
from tests.e2e.fault_run.judges.judge import JUDGES, judge
from tests.e2e.fault_run.record import Past, Pulse, Record

START = 1_790_000_000.0
TAINT = {"key": "k", "effect": "NoSchedule"}


class Written:
    """A run on disk: a gang of two on one node, led by the first replica, for a hundred seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = Record(folder)
        self.wishes: dict[str, Any] = {"default/web": wish("default/web", 2)}
        self.excused: list[str] = []  # pods that their owners delete

    def version(self, at: float, kind: str, item: Json, what: str = "MODIFIED") -> None:
        self.record.note(kind, at=START + at, type=what, object=item)

    def node(
        self, at: float, name: str = "node", cpu: str = "8", what: str = "MODIFIED", version: int = 0, **spec: Any
    ) -> None:
        room = {"cpu": cpu, "memory": "1Gi", "pods": "10"}
        metadata = {"name": name, "resourceVersion": str(version)}
        self.version(at, "nodes", {"metadata": metadata, "spec": spec, "status": {"allocatable": room}}, what)

    def pod(self, at: float, name: str, node: str = "", what: str = "MODIFIED", **metadata: Any) -> None:
        self.version(at, "pods", pod(name, node, **metadata), what)

    def bound(self, at: float, name: str, node: str = "node") -> None:
        self.pod(at - 1, name)
        self.pod(at, name, node)

    def lease(self, at: float, holder: str, process: int = 1) -> None:
        spec = {"holderIdentity": f"{holder}_{process}", "renewTime": ""}
        self.version(at, "leases", {"metadata": {"name": "gang-scheduler"}, "spec": spec})

    def fault(
        self, began: float, ended: float, name: str = "kill", target: str = "first extender", **more: Any
    ) -> None:
        self.record.note("faults", name=name, target=target, began=START + began, ended=START + ended, **more)

    def call(
        self, at: float, took: float, verb: str = "filter", status: int = 200, node: str = "", name: str = "web-0"
    ) -> None:
        times = {"began": START + at, "ended": START + at + took}
        which = {"replica": "first", "verb": verb, "pod": f"default/{name}", "uid": name, "node": node}
        self.record.note("calls", **which, status=status, error="", **times)

    def binding(self, at: float, node: str = "node", name: str = "web-0", took: float = 0.004) -> None:
        what = {"resource": "pods", "subresource": "binding", "namespace": "default", "name": name, "uid": name}
        self.audited(at, "first", "create", what, took=took, requestObject={"target": {"name": node}})

    def sample(self, at: float, **values: float) -> None:
        usual = {"process_start_time_seconds": 1.0, "process_resident_memory_bytes": 1e8, "process_open_fds": 30}
        usual["gang_extender_ready"] = 1.0
        names = {f"gang_extender_{name}" if "process" not in name else name: value for name, value in values.items()}
        self.record.note("metrics", at=START + at, replica="first", **usual | names)

    def request(
        self,
        at: float,
        writer: str = "first",
        verb: str = "create",
        resource: str = "pods",
        namespace: str = "default",
        name: str = "web-0",
        query: str = "",
    ) -> None:
        what = {"resource": resource, "subresource": "", "namespace": namespace, "name": name}
        self.audited(at, writer, verb, what, requestURI=f"/{resource}{query}")

    def audited(self, at: float, writer: str, verb: str, what: Json, took: float = 0.004, **more: Any) -> None:
        event = {
            "requestReceivedTimestamp": datetime.fromtimestamp(START + at, UTC).isoformat(),
            "stageTimestamp": datetime.fromtimestamp(START + at + took, UTC).isoformat(),
            "user": {"uid": f"{writer}-extender"},
            "verb": verb,
            "objectRef": what,
            **more,
        }
        with (self.folder / "audit-first.log").open("a") as file:
            file.write(json.dumps(event) + "\n")

    def log(self, text: str) -> None:
        (self.folder / "first").mkdir(exist_ok=True)
        (self.folder / "first" / "extender.log").write_text(text)

    def calm(self, **state: Any) -> None:
        empty: dict[str, Any] = {"pods": [], "nodes": [], "groups": [], "budgets": [], "claims": {}, "volumes": {}}
        self.record.note("calm", **empty | state)

    def books(self, *, leads: bool = True, wrong: Any = (), cache: Json | None = None, **gang: Any) -> None:
        web = [
            {"name": "web-0", "uid": "web-0", "state": "Bound"},
            {"name": "web-1", "uid": "web-1", "state": "Queued"},
        ]
        known = {"group": "default/web", "held": 0, "ending": 0, "slots": [], "members": web, **gang}
        good = {"unanswered": "", "differs": False, "ofNodes": {}, "ofPods": {}}
        pods, said = [pod("web-0", "node"), pod("web-1")], {"cache": good | (cache or {}), "gangs": [known]}
        self.record.note("books", replica="first", leads=leads, wrong=wrong, pods=pods, **said)

    def judged(self) -> list[str]:
        labels: dict[str, Json] = {"node": {}, "other": {}}
        ended = {"seed": 0, "ended": START + 100, "calm": True, "labels": labels, "excused": self.excused}
        faults = {"faults_from": START, "faults_until": START + 100}
        self.record.note("outcome", wishes=self.wishes, **ended, **faults)
        configuration = {"settings": {}, "two_profiles": False, "early_start": None}
        self.record.note("settings", seed=0, configuration=configuration)
        self.record.close()
        return judge(Past(self.folder))


def wish(key: str, least: int, **more: Any) -> Json:
    return {
        "key": key,
        "min_member": least,
        "level": "",
        "roles": {},
        "groups": [],
        "policy": "",
        "most": least,
        **more,
    }


def pod(name: str, node: str = "", cpu: str = "2", group: str = "web", **metadata: Any) -> Json:
    labels = {"scheduling.x-k8s.io/pod-group": group} if group else {}
    container = {"resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": labels, **metadata},
        "spec": {"containers": [container], **({"nodeName": node} if node else {})},
        "status": {"phase": "Pending"},
    }


def node(name: str, cpu: str = "8") -> Json:
    return {"metadata": {"name": name, "labels": {}}, "spec": {}, "status": {"allocatable": {"cpu": cpu}}}


@pytest.fixture
def run(tmp_path: Path) -> Written:
    made = Written(tmp_path)
    made.node(0)
    made.lease(0, "first")
    made.bound(20, "web-0")
    made.bound(20.1, "web-1")
    made.call(19, 0.01)
    made.request(20)
    made.call(19.5, 0.6, "bind", node="node")
    made.binding(20)
    for second in range(100):
        made.sample(second)
    return made


def test_a_good_run_is_good(run: Written) -> None:
    run.log("pod bound\n")
    run.calm()
    run.books(slots=[{"node": "node", "pod": "default/web-1"}, {"node": "node", "pod": ""}])
    assert run.judged() == []


def test_a_gang_that_is_evicted_whole_may_go_one_after_the_other(run: Written) -> None:
    for name in ("web-0", "web-1"):
        run.pod(60, name, "node", deletionTimestamp="2026-01-01T00:00:00Z")
    run.pod(62, "web-0", "node", "DELETED")
    run.pod(70, "web-1", "node", "DELETED")
    assert run.judged() == []


def test_a_gang_is_evicted_with_one_write_after_the_other(run: Written) -> None:
    for second in range(8):
        run.bound(30, f"web-{2 + second}")
    run.wishes["default/web"]["min_member"] = 10
    run.fault(10, 31, "freeze")
    for number in range(10):
        run.pod(60 + 0.8 * number, f"web-{number}", "node", deletionTimestamp="2026-01-01T00:00:00Z")
    assert [said for said in run.judged() if "fraction" in said] == []


def fault(began: float, ended: float, name: str = "kill", target: str = "first extender", **more: Any) -> Json:
    return {"began": began, "ended": ended, "name": name, "target": target, **more}


def restored(run: Written, *, to: str) -> None:
    """Of an etcd from before the pod was told to go, or from before it was bound."""
    run.fault(50, 62, "restored etcd", "etcd")
    run.pod(55, "web-0", "node", deletionTimestamp="2026-01-01T00:00:00Z")
    run.pod(56, "web-0", "node", "DELETED")
    run.pod(60, "web-0", to, "ADDED")


@pytest.mark.parametrize(
    ("code", "fault", "wrong"),
    [
        pytest.param(200, None, 1, id="it is a write"),
        pytest.param(403, None, 1, id="it was forbidden, and should not have been tried"),
        pytest.param(403, (20, 21, "kill", "kube-apiserver-first"), 0, id="forbidden by a server that has just begun"),
        pytest.param(200, (20, 21, "kill", "kube-apiserver-first"), 1, id="that server let it in"),
        pytest.param(403, (20, 21, "kill", "kube-apiserver-second"), 1, id="the other server had ended"),
        pytest.param(403, (20, 21, "kill", "etcd"), 0, id="its etcd had ended"),
        pytest.param(403, (20, 21, "kill", "first extender"), 1, id="a writer that had ended did not try before"),
        pytest.param(403, (2, 3, "kill", "kube-apiserver-first"), 1, id="that server has long begun"),
        pytest.param(
            404, (30, 57, "freeze", "kube-apiserver-first"), 0, id="the pod went while that server was frozen"
        ),
        pytest.param(404, None, 1, id="the pod has gone"),
    ],
)
def test_a_write_without_the_lease(
    code: int, fault: tuple[float, float, str, str] | None, wrong: int, run: Written
) -> None:
    run.lease(50, "second")
    if fault is not None:
        run.fault(*fault)
    what = {"resource": "pods", "subresource": "status", "namespace": "default", "name": "web-0"}
    run.audited(60, "first", "patch", what, responseStatus={"code": code})
    assert len([each for each in run.judged() if each.startswith("only the leader writes")]) == wrong


@pytest.mark.parametrize(
    ("verb", "subresource", "asked", "wrong"),
    [
        pytest.param("create", "eviction", {"deleteOptions": {"dryRun": ["All"]}}, 0, id="an eviction that is tried"),
        pytest.param("create", "eviction", {"deleteOptions": {}}, 1, id="an eviction"),
        pytest.param("delete", "", {"dryRun": ["All"]}, 0, id="a deletion that is tried"),
        pytest.param("delete", "", {"preconditions": {"uid": "web-0"}}, 1, id="a deletion"),
    ],
)
def test_a_dry_run_is_no_write(verb: str, subresource: str, asked: Json, wrong: int, run: Written) -> None:
    run.lease(50, "second")
    what = {"resource": "pods", "subresource": subresource, "namespace": "default", "name": "web-0"}
    run.audited(60, "first", verb, what, requestObject=asked, responseStatus={"code": 201})
    assert len([each for each in run.judged() if each.startswith("only the leader writes")]) == wrong


def test_a_binding_that_was_forbidden_needs_no_call(run: Written) -> None:
    """It wrote nothing, and its body, which names the pod's UID, is not in the audit log."""
    what = {"resource": "pods", "subresource": "binding", "namespace": "default", "name": "web-7"}
    run.audited(25, "first", "create", what, responseStatus={"code": 403})
    assert run.judged() == []


def test_a_pod_that_a_restored_etcd_brings_back_counts_again(run: Written) -> None:
    restored(run, to="node")
    assert run.judged() == []


def test_a_pod_that_a_restored_etcd_takes_from_its_node_uses_no_room_there(run: Written) -> None:
    restored(run, to="")
    run.node(61, "other")
    run.pod(63, "web-0", "other")
    run.bound(64, "web-2")
    run.bound(64, "web-3")
    run.bound(64, "web-4")
    assert run.judged() == []


def test_a_pod_that_a_restored_etcd_takes_from_its_node_is_no_fraction_from_then_on(run: Written) -> None:
    """Neither a deletion of it nor of any other pod was in the record; the others of its gang have not started."""
    run.wishes["default/late"] = wish("default/late", 2)
    run.fault(50, 62, "restored etcd", "etcd")
    for at, node_name in ((55, "node"), (61, "")):
        run.pod(at, "late-0", node_name, labels={"scheduling.x-k8s.io/pod-group": "late"})
    assert run.judged() == []


def a_hole(run: Written) -> None:
    run.record.note("holes", why="the follower of /api/v1/nodes broke: KeyError('items')")


def evicted_in_part(run: Written) -> None:
    run.pod(60, "web-0", "node", deletionTimestamp="2026-01-01T00:00:00Z")


def faults_most_of_the_time(run: Written) -> None:
    for began in range(0, 100, 10):
        run.fault(began, began + 7, "failing writes", "first")


def bound_late(run: Written) -> None:
    run.wishes["default/web"]["min_member"] = 3
    run.bound(30, "web-2")


def bound_late_and_back(run: Written) -> None:
    """Another process of the extender is ready soon afterwards."""
    bound_late(run)
    run.sample(36, process_start_time_seconds=2.0)


def one_was_deleted_unseen(run: Written) -> None:
    """Its last member three seconds before the others start."""
    run.wishes["default/web"]["min_member"] = 3
    run.pod(10, "web-2")
    run.pod(17, "web-2", what="DELETED")
    run.excused.append("default/web-2")


def a_master_was_deleted_unseen(run: Written) -> None:
    """Eight seconds before the worker starts; a gang of its own."""
    run.wishes["default/job"] = wish("default/job", 1, roles={"master": 1})
    labels = {"scheduling.x-k8s.io/pod-group": "job", "gang-extender.dev/role": "master"}
    run.pod(40, "master", labels=labels)
    run.pod(42, "master", what="DELETED", labels=labels)
    run.pod(50, "worker", "node", group="job")
    run.excused.append("default/master")


def two_racks(run: Written) -> None:
    run.wishes["default/web"]["level"] = "rack"


def evicted_with_a_pause(run: Written) -> None:
    for at, name in ((60, "web-0"), (63, "web-1")):
        run.pod(at, name, "node", deletionTimestamp="2026-01-01T00:00:00Z")


def never_bound_again(run: Written) -> None:
    restored(run, to="")


def too_much(run: Written) -> None:
    run.node(25, cpu="3")
    run.bound(40, "web-2")


def cordoned(run: Written) -> None:
    run.node(30, unschedulable=True)
    run.bound(40, "web-2")


def tainted(run: Written) -> None:
    run.node(30, taints=[TAINT])
    run.bound(40, "web-2")


def gone(run: Written) -> None:
    run.node(30, what="DELETED")
    run.bound(40, "web-2")


def gone_before_another_led(run: Written) -> None:
    """Its Binding arrives when the Lease is another's."""
    run.node(30, what="DELETED")
    run.lease(38, "second")
    run.bound(40, "web-2")


def told_late(run: Written) -> None:
    run.bound(40, "web-2", "new")
    run.node(45, "new")


def told_late_and_back(run: Written) -> None:
    told_late(run)
    run.sample(50, process_start_time_seconds=2.0)


def after_the_lease(run: Written) -> None:
    run.lease(50, "second")
    run.request(60)


def soon_after_the_lease(run: Written) -> None:
    run.lease(50, "second")
    run.request(55)


def slow(run: Written) -> None:
    run.call(50, 6)


def hung_up(run: Written) -> None:
    run.call(50, 4.95, status=0)


def bound_without_a_call(run: Written) -> None:
    run.binding(10)


def bound_after_the_answer(run: Written) -> None:
    run.binding(25)


def bound_after_the_caller_hung_up(run: Written) -> None:
    run.call(30, 1, "bind", status=0, node="node")
    run.binding(36)


def bound_for_an_older_call(run: Written) -> None:
    run.call(30, 20, "bind", node="node")
    run.call(35, 15, "bind", node="other")
    run.binding(40)


def bound_to_another_node(run: Written) -> None:
    run.binding(20, "other")


def waits(run: Written) -> None:
    run.calm(pods=[pod("alone", group="")], nodes=[node("node")])


def victim(run: Written) -> None:
    comer = {"name": "important", "cpu": 2, "count": 1, "gang": False, "level": ""}
    there = {"pods": [pod("web-9", "node", group="")], "nodes": [node("node")], "minimums": {}, "budgets": []}
    run.record.note("evictions", **there, comer=comer, victims=["web-9"], waits=[])


def an_error(run: Written) -> None:
    run.sample(100, unexpected_errors_total=1)


def a_traceback(run: Written) -> None:
    run.log("INFO\n  Traceback (most recent call last):\n    File ...\n  KeyError: 'a'\n")


def a_traceback_later(run: Written) -> None:
    moment = datetime.fromtimestamp(START + 98).strftime("%m%d %H:%M:%S.000")
    run.log(
        f"E{moment} extender.crash] unexpected error\n  Traceback (most recent call last):\n    File ...\n  MemoryError\n"
    )


def a_start_that_failed(run: Written, last: str = "I") -> None:
    """What the interpreter says has no time of its own. last: of which severity the line before it was."""
    before, after = (datetime.fromtimestamp(START + at).strftime("%m%d %H:%M:%S.000") for at in (60, 99))
    run.log(f"{last}{before} ends] \nTraceback (most recent call last):\n  File ...\nImportError\nI{after} starts] \n")


def a_start_that_failed_after_a_warning(run: Written) -> None:
    """The log indents the traceback that belongs to a line of it; this one belongs to none."""
    a_start_that_failed(run, last="W")


def a_leak(run: Written) -> None:
    for second in range(100, 300):
        run.sample(second, process_resident_memory_bytes=1e8 + 1e6 * second)


def descriptors(run: Written) -> None:
    for second in range(100, 300):
        run.sample(second, process_open_fds=second)


def a_slow_leak(run: Written) -> None:
    for second in range(100, 1100):
        run.sample(second, process_resident_memory_bytes=1e8 + 4e4 * second)


def held_in_the_end(run: Written) -> None:
    run.sample(100, held_binds=3)


def many_lists(run: Written) -> None:
    for number in range(30):
        run.request(50 + number, verb="list", resource="nodes", namespace="", name="")


def many_lists_of_a_namespace(run: Written) -> None:
    for number in range(30):
        run.request(50 + number, verb="list", name="")


def a_wrong_entry(run: Written) -> None:
    run.books(wrong=["default/web: held: {} is noted, {'web-1'} counted"])


def no_answer(run: Written) -> None:
    run.books(wrong=None)


def an_event_was_lost(run: Written) -> None:
    run.books(cache={"differs": True, "ofPods": {"missed": 1}})


def bound_for_the_extender_alone(run: Written) -> None:
    run.books(members=[{"name": name, "uid": name, "state": "Bound"} for name in ("web-0", "web-1")])


def bound_for_the_api_alone(run: Written) -> None:
    run.books(members=[{"name": name, "uid": name, "state": "Queued"} for name in ("web-0", "web-1")])


def a_member_that_is_gone(run: Written) -> None:
    members = [
        {"name": "web-0", "uid": "web-0", "state": "Bound"},
        {"name": "web-1", "uid": "web-1", "state": "Queued"},
    ]
    run.books(members=[*members, {"name": "web-2", "uid": "web-2", "state": "Queued"}])


def a_pod_that_is_no_member(run: Written) -> None:
    run.books(members=[{"name": "web-0", "uid": "web-0", "state": "Bound"}])


def a_slot_of_no_member(run: Written) -> None:
    run.books(slots=[{"node": "node", "pod": "default/web-7"}])


def a_slot_of_the_standby(run: Written) -> None:
    run.books(leads=False, slots=[{"node": "node", "pod": "default/web-1"}])


def a_call_that_is_held(run: Written) -> None:
    run.books(held=1)


BINDING = "no Binding after its call: the extender of first wrote a Binding of default/web-0"
BOOKS = "the books are right: the extender of first: "
PLANTED = [
    (a_wrong_entry, f"{BOOKS}default/web: held: {{}} is noted"),
    (no_answer, f"{BOOKS}did not say what is in its books"),
    (an_event_was_lost, f"{BOOKS}its cache is not as the API is: nodes {{}}, pods {{'missed': 1}}"),
    (bound_for_the_extender_alone, f"{BOOKS}default/web: web-1 is Bound, and its node is None"),
    (bound_for_the_api_alone, f"{BOOKS}default/web: web-0 is Queued, and its node is node"),
    (a_member_that_is_gone, f"{BOOKS}default/web: web-2 is a member, and is not there"),
    (a_pod_that_is_no_member, f"{BOOKS}default/web: default/web-1 is there, and is no member"),
    (a_slot_of_no_member, f"{BOOKS}default/web: a slot on node is for default/web-7, which is no member"),
    (a_slot_of_the_standby, f"{BOOKS}default/web: has 1 slots, and another leads"),
    (a_call_that_is_held, f"{BOOKS}default/web: 1 calls are held, 0 are ending"),
    (a_hole, "the record is whole: the follower of /api/v1/nodes broke: KeyError('items')"),
    (faults_most_of_the_time, "enough was judged: gangs were judged in 1% of the time, and 40% is the least"),
    (bound_late, "no gang is a fraction: default/web: 2 of minMember 3 bound"),
    (evicted_in_part, "no gang is a fraction: default/web: 1 of minMember 2 bound (default/web-1) at the end"),
    (evicted_with_a_pause, "no gang is a fraction: default/web: 1 of minMember 2 bound (default/web-1) for 3.00 s"),
    (never_bound_again, "no gang is a fraction: default/web: 1 of minMember 2 bound (default/web-1) at the end"),
    (two_racks, "what annotations promise: default/web: not in one rack: node (none) for"),
    (too_much, "no node over its room: node: 6 cpu of 3 once default/web-2 was bound"),
    (
        cordoned,
        "bound only to a node that is fit: default/web-2 was bound to node, which was cordoned, tainted or not ready",
    ),
    (
        tainted,
        "bound only to a node that is fit: default/web-2 was bound to node, which was cordoned, tainted or not ready",
    ),
    (gone, "bound only to a node that is fit: default/web-2 was bound to node, which was not there"),
    (after_the_lease, "only the leader writes: the extender of first had create pods default/web-0, and second led"),
    (slow, "answers in time: first: filter of default/web-0 took 6.00 s"),
    (hung_up, "answers in time: first: filter of default/web-0 took 4.95 s"),
    (bound_without_a_call, f"{BINDING} without a call"),
    (bound_after_the_answer, f"{BINDING} 4.90 s after its call was answered"),
    (bound_after_the_caller_hung_up, f"{BINDING} 5.00 s after its caller had hung up"),
    (bound_for_an_older_call, f"{BINDING} 5.00 s after a newer call for another node"),
    (bound_to_another_node, f"{BINDING} to other, for which there was no call"),
    (waits, "what fits does not wait: pod default/alone: 1 wait, 0 run of 1; there is room"),
    (victim, "every eviction is needed: important came, and web-9 went, though there was room"),
    (an_error, "no unexpected error: the extender of first: 1 more of gang_extender_unexpected_errors_total"),
    (a_traceback, "no traceback: first/extender.log:2: KeyError: 'a'"),
    (a_start_that_failed, "no traceback: first/extender.log:2: ImportError"),
    (a_leak, "memory and descriptors do not grow: the extender of first: 95 MiB, later"),
    (a_slow_leak, "memory and descriptors do not grow: the extender of first: 95 MiB, later"),
    (descriptors, "memory and descriptors do not grow: the extender of first: 30 descriptors, later"),
    (held_in_the_end, "memory and descriptors do not grow: the extender of first: 3 calls are held in the end"),
    (many_lists, "lists are rare: first-extender: more than 20 lists of nodes within 20 s"),
    (many_lists_of_a_namespace, "lists are rare: first-extender: more than 20 lists of pods of default within 20 s"),
]


@pytest.mark.parametrize(("plant", "said"), [pytest.param(*each, id=each[0].__name__) for each in PLANTED])
def test_a_planted_fault_is_caught(run: Written, plant: Callable[[Written], None], said: str) -> None:
    plant(run)
    (found,) = run.judged()
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("namespace", "selector"),
    [
        pytest.param("team-{}", "status.phase=Succeeded", id="of two namespaces"),
        pytest.param("team", "status.phase={}", id="with two selectors"),
    ],
)
def test_lists_are_counted_by_namespace_and_selector(run: Written, namespace: str, selector: str) -> None:
    for number in range(30):
        selects = quote(selector.format(number % 2))
        run.request(
            50 + number, verb="list", namespace=namespace.format(number % 2), name="", query=f"?fieldSelector={selects}"
        )
    assert run.judged() == []


def test_every_judge_has_a_planted_fault() -> None:
    assert {said.partition(":")[0] for _, said in PLANTED} == JUDGES.keys()


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        pytest.param(bound_late_and_back, fault(20.5, 21), id="a fraction while a killed program comes back"),
        pytest.param(bound_late, fault(20.5, 22, "freeze", "etcd"), id="a fraction while etcd stands still"),
        pytest.param(
            bound_late, fault(20.5, 20.6, "new certificates", "first"), id="a fraction of which the calls were cut off"
        ),
        pytest.param(
            cordoned,
            fault(29, 41, "line", "first extender's API"),
            id="a node that was cordoned while the extender heard nothing",
        ),
        pytest.param(
            gone_before_another_led,
            fault(29, 39.5, "line", "first extender's API"),
            id="a node that went while the Binding lay on the line",
        ),
        pytest.param(
            one_was_deleted_unseen,
            fault(14, 18, "kill", "kube-apiserver-first"),
            id="a gang whose member was deleted while its API server was away, until a watch is back",
        ),
        pytest.param(
            one_was_deleted_unseen, fault(16, 19, "cut watches", "first"), id="a member deleted while no watch was open"
        ),
        pytest.param(
            a_master_was_deleted_unseen,
            fault(41, 43, "kill", "kube-apiserver-first"),
            id="a worker whose master was deleted while their API server was away",
        ),
        pytest.param(
            evicted_with_a_pause, fault(59, 61, "failing reads", "first"), id="a gang whose eviction was not told of"
        ),
        pytest.param(
            told_late,
            fault(30, 46, "freeze", "kube-apiserver-second"),
            id="a node that a frozen API server tells of afterwards",
        ),
        pytest.param(after_the_lease, fault(45, 59, "line", "first extender's API"), id="a write that lay on the line"),
        pytest.param(
            soon_after_the_lease,
            fault(49, 56, "failing reads", "first"),
            id="a write of one that was not told of the end",
        ),
        pytest.param(
            soon_after_the_lease,
            fault(30, 40, "line", "first API server's etcd"),
            id="and of one whose API server waits before it asks etcd again",
        ),
        pytest.param(bound_after_the_answer, fault(20, 24, "freeze"), id="a Binding of an extender that was frozen"),
        pytest.param(slow, fault(49, 50, "freeze"), id="an answer while a program was frozen"),
        pytest.param(slow, fault(51, 57, "line", "first verbs"), id="an answer on a line that was late"),
        pytest.param(an_error, fault(97, 100, "little memory", "first"), id="an error for want of memory"),
        pytest.param(
            an_error,
            fault(99.6, 100, "few threads", "first"),
            id="an error as the lack of threads began, after a sample",
        ),
        pytest.param(an_error, fault(99, 99.5, "failpoint", "first", detail="relist=raise", done=True), id="raised"),
        pytest.param(a_traceback_later, fault(97, 100, "little memory", "first"), id="a traceback for want of memory"),
        pytest.param(
            a_start_that_failed, fault(70, 75, "little memory", "first"), id="a start that failed for want of memory"
        ),
        pytest.param(
            a_start_that_failed_after_a_warning,
            fault(70, 75, "little memory", "first"),
            id="and its last word a warning",
        ),
        pytest.param(a_start_that_failed, fault(70, 75, "few threads", "first"), id="for want of threads"),
        pytest.param(a_start_that_failed, fault(70, 75, "few descriptors", "first"), id="for want of descriptors"),
    ],
)
def test_a_fault_excuses_what_follows_from_it(run: Written, plant: Callable[[Written], None], fault: Json) -> None:
    plant(run)
    run.fault(**fault)
    assert run.judged() == []


@pytest.mark.parametrize(("binding", "wrong"), [(7, 0), (9, 1)])
def test_a_node_has_the_room_that_it_had_at_the_binding_s_version(run: Written, binding: int, wrong: int) -> None:
    """The record has pods nine seconds late; that the node has shrunk, by version 8, it has at once."""
    run.node(25, cpu="3", version=8)
    run.pod(39, "web-2", resourceVersion="6")
    run.pod(40, "web-2", "node", resourceVersion=str(binding))
    assert len([said for said in run.judged() if said.startswith("no node over its room")]) == wrong


@pytest.mark.parametrize(("made", "wrong"), [(8, 0), (10, 1)])
def test_a_node_is_there_if_its_version_is_older_than_the_binding_s(run: Written, made: int, wrong: int) -> None:
    """The record has it five seconds after the binding."""
    run.pod(39, "web-2", resourceVersion="6")
    run.pod(40, "web-2", "new", resourceVersion="9")
    run.node(45, "new", version=made)
    assert len([said for said in run.judged() if said.endswith("was bound to new, which was not there")]) == wrong


@pytest.mark.parametrize(("received", "wrong"), [(36.5, 0), (40, 1)])
def test_a_binding_was_made_when_its_api_server_received_it(run: Written, received: float, wrong: int) -> None:
    """The record has the node's end at once, and the binding five seconds late."""
    run.node(10, "new")
    run.node(36, "new", what="DELETED")
    run.binding(received, "new", "web-2")
    run.bound(41.5, "web-2", "new")
    assert len([said for said in run.judged() if said.endswith("was bound to new, which was not there")]) == wrong


@pytest.mark.parametrize(("received", "wrong"), [(31.5, 1), (39.9, 0)])
def test_room_that_a_binding_took_after_its_call_was_answered(run: Written, received: float, wrong: int) -> None:
    """Another replica may have given it away meanwhile. Whether the Binding may come so late says another judge."""
    run.node(25, cpu="7")
    run.call(30, 1, "bind", node="node", name="web-2")
    run.binding(received, name="web-2")
    run.bound(40, "web-2")
    run.bound(41, "web-3")
    assert len([said for said in run.judged() if said.startswith("no node over its room")]) == wrong


@pytest.mark.parametrize(("told", "wrong"), [(63, 0), (66, 1)])
def test_a_member_that_is_told_to_go_needs_its_roles_no_longer(run: Written, told: float, wrong: int) -> None:
    run.wishes["default/job"] = wish("default/job", 1, roles={"master": 1})
    labels = {"scheduling.x-k8s.io/pod-group": "job", "gang-extender.dev/role": "master"}
    run.pod(40, "master", labels=labels)
    run.pod(41, "master", "node", labels=labels)
    run.pod(40, "worker", group="job")
    run.pod(41, "worker", "node", group="job")
    run.pod(60, "master", "node", "DELETED", labels=labels)
    run.pod(told, "worker", "node", group="job", deletionTimestamp="2026-01-01T00:00:00Z")
    run.pod(69, "worker", "node", "DELETED", group="job")
    assert len([said for said in run.judged() if said.startswith("what annotations promise")]) == wrong


@pytest.mark.parametrize(
    ("plant", "fault"),
    [
        pytest.param(bound_late, fault(50, 51), id="a fraction before any fault"),
        pytest.param(bound_late, fault(10, 18, "freeze"), id="a fraction after a fault"),
        pytest.param(bound_late, fault(25, 29, "freeze"), id="a fraction that was one before a fault"),
        pytest.param(
            bound_late, fault(20.5, 21, target="second extender"), id="a fraction while the standby is killed"
        ),
        pytest.param(
            bound_late, fault(20.5, 21, "line", "second kube-scheduler's API"), id="a fraction, the standby's line cut"
        ),
        pytest.param(bound_late, fault(19, 30, "clock", "first"), id="a fraction while a clock is moved"),
        pytest.param(
            bound_late,
            fault(19, 30, "few descriptors", "first", done=False),
            id="a fraction, and nothing could be done",
        ),
        pytest.param(
            one_was_deleted_unseen,
            fault(18.5, 18.9, "cut watches", "first"),
            id="a member deleted before watches were cut",
        ),
        pytest.param(
            one_was_deleted_unseen,
            fault(14, 18, "kill", "kube-apiserver-second"),
            id="a member deleted while the standby's API server was away",
        ),
        pytest.param(
            a_master_was_deleted_unseen,
            fault(48, 49, "kill", "kube-apiserver-first"),
            id="a worker whose master was deleted before their API server was away",
        ),
        pytest.param(
            evicted_with_a_pause,
            fault(60.5, 61, "failing reads", "first"),
            id="a gang that was evicted in part before its eviction could not be told of",
        ),
        pytest.param(
            evicted_with_a_pause,
            fault(59, 61, "failing reads", "second"),
            id="a gang that was evicted in part, which the standby was not told of",
        ),
        pytest.param(bound_late, fault(19, 29, "failing reads", "first"), id="a start in part while nothing was told"),
        pytest.param(told_late_and_back, fault(30, 46), id="a node that came while an extender was killed"),
        pytest.param(
            gone_before_another_led,
            fault(35, 39.5, "line", "first extender's API"),
            id="a node that went before the Binding could lie on the line",
        ),
        pytest.param(
            gone, fault(29, 39.5, "line", "second extender's API"), id="a node that went, the standby's line held"
        ),
        pytest.param(
            gone_before_another_led,
            fault(29, 39.5, "line", "first kube-scheduler's API"),
            id="a node that went while no Binding could lie on the line",
        ),
        pytest.param(
            cordoned, fault(29, 41, "line", "second extender's API"), id="a cordon that the standby did not hear of"
        ),
        pytest.param(after_the_lease, fault(45, 59), id="a write of an extender that was killed"),
        pytest.param(
            after_the_lease,
            fault(49, 61, "failing reads", "first"),
            id="a write when the Lease had expired all the same",
        ),
        pytest.param(
            soon_after_the_lease, fault(52, 56, "failing reads", "first"), id="a write of one that had been told before"
        ),
        pytest.param(
            soon_after_the_lease, fault(49, 56, "failing reads", "second"), id="a write while the other was not told"
        ),
        pytest.param(
            soon_after_the_lease,
            fault(10, 20, "line", "first API server's etcd"),
            id="a write when its API server had long asked etcd again",
        ),
        pytest.param(
            after_the_lease, fault(45, 59, "line", "first verbs"), id="a write, and the line of verbs was held"
        ),
        pytest.param(
            after_the_lease, fault(45, 59, "line", "second extender's API"), id="a write, and another's line was held"
        ),
        pytest.param(slow, fault(49, 56, "line", "second verbs"), id="a late answer on a line without a fault"),
        pytest.param(slow, fault(49, 56, "line", "first extender's API"), id="a late answer, and the API was late"),
        pytest.param(
            bound_after_the_answer, fault(19, 26, "line", "first verbs"), id="a Binding, the verbs' line held"
        ),
        pytest.param(hung_up, fault(40, 45, "freeze"), id="a hang-up after a fault"),
        pytest.param(a_traceback_later, fault(97, 100), id="a traceback of an extender that was killed"),
        pytest.param(
            a_traceback_later, fault(97, 100, "little memory", "second"), id="a traceback while the other lacked memory"
        ),
        pytest.param(
            a_traceback_later, fault(99, 100, "few threads", "first"), id="a traceback before a lack of threads"
        ),
        pytest.param(
            a_start_that_failed, fault(5, 10, "little memory", "first"), id="a start that failed after memory was back"
        ),
        pytest.param(
            a_start_that_failed_after_a_warning,
            fault(5, 10, "little memory", "first"),
            id="and after a warning, too",
        ),
        pytest.param(
            an_error, fault(99, 99.5, "failpoint", "first", detail="relist=raise", done=False), id="not reached"
        ),
        pytest.param(an_error, fault(99, 100), id="an error of an extender that was killed"),
        pytest.param(
            an_error, fault(99, 100, "little memory", "second"), id="an error while the other extender lacked memory"
        ),
    ],
)
def test_a_fault_excuses_nothing_else(run: Written, plant: Callable[[Written], None], fault: Json) -> None:
    plant(run)
    run.fault(**fault)
    assert len(run.judged()) == 1


def test_a_chain_of_faults_excuses_no_fraction_without_end(run: Written) -> None:
    """Each of them overlaps the one before, or nearly; the extender is back within two seconds each time."""
    run.wishes["default/web"]["min_member"] = 3
    run.bound(90, "web-2")
    for killed in range(20, 90, 5):
        run.fault(killed + 0.5, killed + 0.5)
        run.sample(killed + 2.5, process_start_time_seconds=START + killed + 1)
    assert [said for said in run.judged() if "a fraction" in said] == [
        "no gang is a fraction: default/web: 2 of minMember 3 bound (default/web-0, default/web-1) for 70.00 s, "
        "longer than a commit takes (1.03 s)"
    ]


@pytest.mark.parametrize(
    ("began", "asked", "gated", "wrong"),
    [
        pytest.param(31, 58, False, 0, id="it waits in the next kube-scheduler's queue"),
        pytest.param(31, 33, False, 1, id="it has been asked about, and waits"),
        pytest.param(31, 58, True, 1, id="it is not in the queue: our gate is on it"),
        pytest.param(10, 58, False, 1, id="no kube-scheduler has begun since"),
    ],
)
def test_the_time_in_the_queue_of_the_next_kube_scheduler_is_not_the_program_s(
    run: Written, began: float, asked: float, gated: bool, wrong: int
) -> None:
    """The third member of a gang that a frozen extender has started in part."""
    run.wishes["default/web"]["min_member"] = 3
    run.fault(20, 30, "freeze")
    run.lease(began, "first", process=2)
    waiting = pod("web-2")
    waiting["spec"]["schedulingGates"] = [{"name": "scheduling.x-k8s.io/gang"}] if gated else []
    run.version(5, "pods", waiting)
    run.call(asked, 0.1, name="web-2")
    run.bound(60, "web-2")
    assert len([said for said in run.judged() if "a fraction" in said]) == wrong


@pytest.mark.parametrize(("received", "took", "wrong"), [(20.1, 1.3, 0), (20.1, 0.2, 1), (21.3, 0.1, 1)])
def test_the_time_that_an_api_server_takes_for_bindings_is_not_the_program_s(
    run: Written, received: float, took: float, wrong: int
) -> None:
    run.wishes["default/web"]["min_member"] = 3
    run.call(20, 2.0, "bind", node="node", name="web-2")
    run.bound(21.5, "web-2")
    run.binding(received, name="web-2", took=took)
    assert len([said for said in run.judged() if "a fraction" in said]) == wrong


@pytest.mark.parametrize(
    ("name", "took", "wrong"),
    [
        pytest.param("web-1", 2.5, 0, id="of the gang"),
        pytest.param("web-1", 0.5, 1, id="of the gang, not for long"),
        pytest.param("victim", 2.5, 0, id="of another victim of the preemption"),
        pytest.param("single", 2.5, 1, id="of a pod that does not go"),
        pytest.param("later", 2.5, 1, id="of a victim of another preemption"),
    ],
)
def test_nor_is_what_it_takes_for_evictions(run: Written, name: str, took: float, wrong: int) -> None:
    evicted_with_a_pause(run)
    for at, each in ((66, "victim"), (75, "later")):
        run.pod(at, each, "node", group="", deletionTimestamp="2026-01-01T00:00:00Z")
    what = {"resource": "pods", "subresource": "", "namespace": "default", "name": name}
    run.audited(60.3, "first", "delete", what, took=took)
    assert len([said for said in run.judged() if "a fraction" in said]) == wrong


@pytest.mark.parametrize(
    ("plant", "began", "ended", "wrong"),
    [
        pytest.param(bound_late, 20.5, 29.5, 0, id="a fraction while the rig stood still"),
        pytest.param(bound_late, 20.5, 21, 1, id="a fraction that was one for long besides"),
        pytest.param(slow, 50, 52, 0, id="an answer that was late by so much"),
        pytest.param(slow, 50, 50.5, 1, id="an answer that was later"),
        pytest.param(hung_up, 50, 51, 0, id="a call that was given up meanwhile"),
    ],
)
def test_times_in_which_the_rig_stood_still_do_not_count(
    run: Written, plant: Callable[[Written], None], began: float, ended: float, wrong: int
) -> None:
    plant(run)
    run.record.note("pauses", began=START + began, ended=START + ended)
    assert len(run.judged()) == wrong


def test_a_replica_that_comes_to_lead_has_more_connections(run: Written) -> None:
    for second in range(100, 2100):
        leads = 300 < second < 400 or second > 1500
        run.sample(second, process_open_fds=55 if leads else 30)
    assert run.judged() == []


def test_the_pulse_notes_when_the_rig_stood_still(run: Written) -> None:
    moments, all_taken = iter([10.0, 10.02, 10.9, 10.92]), threading.Event()

    def clock() -> float:
        now = next(moments, None)
        if now is None:
            all_taken.set()
        return now or 10.92

    pulse = Pulse(run.record, clock)
    pulse.start()
    assert all_taken.wait(5)
    pulse.stop()
    run.record.close()
    ((began, ended),) = Past(run.folder).pauses
    assert (round(began, 2), ended) == (10.04, 10.9)


def test_a_fault_of_the_old_leader_does_not_count_once_another_leads(run: Written) -> None:
    run.wishes["default/web"]["min_member"] = 3
    run.bound(60, "web-2")
    run.fault(20.5, 55, "freeze")
    run.lease(27, "second")
    assert len([said for said in run.judged() if "a fraction" in said]) == 1


def test_the_shares_are_of_the_time_with_faults(run: Written) -> None:
    run.fault(10, 20, "freeze")
    run.fault(50, 60, "line", "second extender's API")
    assert run.judged() == []
    assert {what: round(share, 2) for what, share in Past(run.folder).shares.items()} == {
        "gangs": 0.87,
        "answers": 0.87,
        "nodes": 0.85,
        "writes": 0.84,
    }


def test_a_run_that_did_not_end_cannot_be_judged(run: Written) -> None:
    run.record.close()
    with pytest.raises(ValueError, match="is no fault run that ended"):
        judge(Past(run.folder))


def test_a_line_that_was_cut_off_does_not_count(run: Written) -> None:
    run.record.close()
    with (run.folder / "pods.jsonl").open("a") as file:
        file.write('{"at": 1, "ty')
    assert run.judged() == []
