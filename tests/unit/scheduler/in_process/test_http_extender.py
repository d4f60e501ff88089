"""kube-scheduler's side of the extender protocol against a server on loopback: what is sent, and what is made of answers."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.snapshot import Snapshot
from extender.config.types import ExtenderConfig, ExtenderTLSConfig
from extender.framework.preemption.candidate import Victims
from extender.scheduler.in_process.http_extender import ExtenderError, HTTPExtender, in_calling_order
from tests.fakes.extender import FakeExtender
from tests.objects import make_node, make_pod

NODES = [make_node().name(name).obj() for name in ("a", "b")]
POD = make_pod().name("p").obj()


@pytest.fixture
def server() -> Iterator[FakeExtender]:
    made = FakeExtender()
    yield made
    made.stop()


def extender(server: FakeExtender, **settings: Any) -> HTTPExtender:
    verbs = {"filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt", "bind_verb": "bind"}
    return HTTPExtender(ExtenderConfig(server.url, **{**verbs, "node_cache_capable": True, **settings}))


@pytest.mark.parametrize(
    ("capable", "answer", "passed"),
    [
        pytest.param(True, {"NodeNames": ["b"]}, ["b"], id="names"),
        pytest.param(True, {"nodenames": ["b"], "ERROR": ""}, ["b"], id="keys in any case"),
        pytest.param(True, {"NodeNames": None, "FailedNodes": None}, [], id="null is nothing"),
        pytest.param(True, {}, [], id="nothing is nothing"),
        pytest.param(True, {"Nodes": {"items": [{"metadata": {"name": "a"}}]}}, ["a"], id="nodes in place of names"),
        pytest.param(False, {"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["b"], id="nodes"),
        pytest.param(False, {"NodeNames": ["b"]}, [], id="names are not read where nodes were sent"),
    ],
)
def test_filter(server: FakeExtender, capable: bool, answer: Any, passed: list[str]) -> None:
    server.answers["filter"] = answer
    assert list(extender(server, node_cache_capable=capable).filter(POD, NODES).passed) == passed
    asked = server.asked["filter"][0]
    assert asked["Pod"]["metadata"]["name"] == "p"
    if capable:
        assert (asked["NodeNames"], asked["Nodes"]) == (["a", "b"], None)
    else:
        assert asked["NodeNames"] is None
        assert [node["metadata"]["name"] for node in asked["Nodes"]["items"]] == ["a", "b"]


def test_filter_says_why_nodes_failed(server: FakeExtender) -> None:
    server.answers["filter"] = {"FailedNodes": {"a": "busy"}, "FailedAndUnresolvableNodes": {"b": "never"}}
    answer = extender(server).filter(POD, NODES)
    assert (answer.failed, answer.unresolvable) == ({"a": "busy"}, {"b": "never"})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "no"}, "^no$", id="an error of its own"),
        pytest.param(
            {"NodeNames": ["x"]},
            'claims a filtered node "x" which is not found in the input node list',
            id="a node that was not offered",
        ),
        pytest.param(b"{", "truncated", id="no JSON"),
        pytest.param({"NodeNames": "a"}, "Expected `array", id="of the wrong type"),
    ],
)
def test_filter_fails(server: FakeExtender, answer: Any, text: str) -> None:
    server.answers["filter"] = answer
    with pytest.raises(ExtenderError, match=text):
        extender(server).filter(POD, NODES)


def test_a_status_other_than_200_is_an_error(server: FakeExtender) -> None:
    server.answers["filter"] = {}
    server.status = 500
    with pytest.raises(ExtenderError, match=f"failed filter with extender at URL {server.url}/filter, code 500"):
        extender(server).filter(POD, NODES)


def test_a_refused_connection_reads_as_in_go() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gone = HTTPExtender(ExtenderConfig(f"http://127.0.0.1:{port}/", filter_verb="filter"))
    text = f'Post "http://127.0.0.1:{port}/filter": dial tcp 127.0.0.1:{port}: connect: connection refused'
    with pytest.raises(ExtenderError) as failed:
        gone.filter(POD, NODES)
    assert str(failed.value) == text


def test_a_server_that_does_not_answer_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        slow = HTTPExtender(ExtenderConfig(url, filter_verb="filter", http_timeout_seconds=0.05))
        with pytest.raises(ExtenderError, match=r"context deadline exceeded \(Client.Timeout exceeded"):
            slow.filter(POD, NODES)
        slow.close()


@pytest.mark.parametrize(
    ("answer", "scores"),
    [
        pytest.param([{"Host": "a", "Score": 3}], {"a": 3}, id="scores"),
        pytest.param([{"host": "a", "score": 3}], {"a": 3}, id="keys in any case"),
        pytest.param(None, {}, id="null"),
        pytest.param([{"Host": "a"}], {"a": 0}, id="no score is zero"),
    ],
)
def test_prioritize(server: FakeExtender, answer: Any, scores: dict[str, int]) -> None:
    server.answers["prioritize"] = answer
    assert {entry.host: entry.score for entry in extender(server).prioritize(POD, NODES)} == scores


def test_bind(server: FakeExtender) -> None:
    server.answers["bind"] = {"Error": ""}
    extender(server).bind(make_pod().name("p").uid("u").obj(), "a")
    assert server.asked["bind"] == [{"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}]
    server.answers["bind"] = {"error": "taken"}
    with pytest.raises(ExtenderError, match=r"^taken$"):
        extender(server).bind(POD, "a")


VICTIM = make_pod().name("v").uid("victim").node("a").obj()
SNAPSHOT = Snapshot((make_node().name("a").info(VICTIM), make_node().name("b").info()))


@pytest.mark.parametrize("capable", [True, False])
def test_preempt_turns_uids_into_pods_again(server: FakeExtender, capable: bool) -> None:
    left = {"a": {"Pods": [{"UID": "victim"}], "NumPDBViolations": 1}}
    server.answers["preempt"] = {"NodeNameToMetaVictims": left}
    offered = {"a": Victims((VICTIM,)), "b": Victims((VICTIM,))}
    answer = extender(server, node_cache_capable=capable).process_preemption(POD, offered, SNAPSHOT)
    assert answer == {"a": Victims((VICTIM,), 1)}
    asked = server.asked["preempt"][0]
    if capable:
        assert asked["NodeNameToMetaVictims"]["a"] == {"Pods": [{"UID": "victim"}], "NumPDBViolations": 0}
        assert asked["NodeNameToVictims"] is None
    else:
        assert asked["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["name"] == "v"
        assert asked["NodeNameToMetaVictims"] is None


@pytest.mark.parametrize(
    ("left", "text"),
    [
        pytest.param({"x": {"Pods": []}}, 'nodeinfo not found for node name "x"', id="an unknown node"),
        pytest.param(
            {"b": {"Pods": [{"UID": "victim"}]}}, "on node: b, but the pod is not found on that node", id="a stranger"
        ),
    ],
)
def test_preempt_fails(server: FakeExtender, left: Any, text: str) -> None:
    server.answers["preempt"] = {"NodeNameToMetaVictims": left}
    with pytest.raises(ExtenderError, match=text):
        extender(server).process_preemption(POD, {"a": Victims((VICTIM,))}, SNAPSHOT)


def pod_with(where: str, resource: str) -> corev1.Pod:
    resources = {"limits" if where == "limits" else "requests": {resource: "1"}}
    containers = [{"name": "c", "resources": resources}]
    spec = {"initContainers": containers} if where == "init" else {"containers": containers}
    return convert({"metadata": {"name": "p"}, "spec": spec}, corev1.Pod)


@pytest.mark.parametrize(
    ("pod", "interested"),
    [
        pytest.param(POD, False, id="asks for nothing"),
        pytest.param(pod_with("requests", "example.com/gpu"), True, id="requests it"),
        pytest.param(pod_with("limits", "example.com/gpu"), True, id="limits it"),
        pytest.param(pod_with("init", "example.com/gpu"), True, id="an init container requests it"),
        pytest.param(pod_with("requests", "example.com/fpga"), False, id="requests another"),
    ],
)
def test_managed_resources(server: FakeExtender, pod: corev1.Pod, interested: bool) -> None:
    assert extender(server, managed_resources=frozenset({"example.com/gpu"})).is_interested(pod) is interested
    assert extender(server).is_interested(pod)


def test_those_that_may_be_ignored_come_last(server: FakeExtender) -> None:
    entries = [extender(server, ignorable=flag, weight=i) for i, flag in enumerate((True, False, True, False))]
    assert [entry.config.weight for entry in in_calling_order(entries)] == [1, 3, 0, 2]


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[FakeExtender]:
    """Wants a client certificate of the same authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("extender.example", "127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    made = FakeExtender({"filter": {"NodeNames": ["a"]}}, context)
    yield made
    made.stop()


def with_certificate(authority: trustme.CA, **more: Any) -> ExtenderTLSConfig:
    mine = authority.issue_cert("kube-scheduler")
    chain = b"".join(blob.bytes() for blob in mine.cert_chain_pems)
    return ExtenderTLSConfig(cert_data=chain, key_data=mine.private_key_pem.bytes(), **more)


def test_tls_with_certificates_as_data(secure: FakeExtender, authority: trustme.CA) -> None:
    tls = with_certificate(authority, ca_data=authority.cert_pem.bytes())
    assert extender(secure, tls=tls).filter(POD, NODES).passed == ("a",)


def test_tls_with_files_and_a_server_name(secure: FakeExtender, authority: trustme.CA, tmp_path: Path) -> None:
    tls = with_certificate(authority, server_name="extender.example")
    for name, data in (("ca", authority.cert_pem.bytes()), ("cert", tls.cert_data), ("key", tls.key_data)):
        (tmp_path / name).write_bytes(data)
    files = {f"{name}_file": str(tmp_path / name) for name in ("ca", "cert", "key")}
    by_files = ExtenderTLSConfig(server_name="extender.example", **files)  # type: ignore[arg-type]
    assert extender(secure, tls=by_files).filter(POD, NODES).passed == ("a",)


def test_https_without_a_ca_checks_nothing(secure: FakeExtender, authority: trustme.CA) -> None:
    entry = extender(secure, enable_https=True, tls=with_certificate(authority))
    assert entry.filter(POD, NODES).passed == ("a",)


def test_a_server_without_a_trusted_certificate_is_not_called(secure: FakeExtender, authority: trustme.CA) -> None:
    with pytest.raises(ExtenderError, match="CERTIFICATE_VERIFY_FAILED"):
        extender(secure, tls=with_certificate(authority)).filter(POD, NODES)


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        pytest.param(
            ExtenderTLSConfig(insecure=True, ca_data=b"x"),
            "root certificates file with the insecure flag is not allowed",
            id="a CA that nothing is checked with",
        ),
        pytest.param(ExtenderTLSConfig(cert_data=b"x"), "go together", id="a certificate without its key"),
        pytest.param(ExtenderTLSConfig(ca_file="/nowhere"), "No such file", id="a CA that is not there"),
    ],
)
def test_tls_options_that_make_no_sense(tls: ExtenderTLSConfig, text: str) -> None:
    with pytest.raises(ExtenderError, match=text):
        HTTPExtender(replace(ExtenderConfig("https://127.0.0.1"), tls=tls))
