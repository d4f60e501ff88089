"""Which users see what of the pages: their own tokens, judged by the real API server, in a namespace of their own and beyond it.

By the page's own calls, and by a real kubectl with `kubectl gang` as its plugin.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, SIDECAR, ControlPlane, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.processes import eventually, free_port

TENANTS = ("team-a", "team-b")
VIEW = "gang-extender-podgroups-view"  # of manifests/rbac, aggregated to the ClusterRole `view`
WITHIN = 30.0


class Pages:
    """The pages' port of an extender, as users reach it."""

    def __init__(self, port: int, ca_file: Path) -> None:
        self.url, self.ca_file = f"https://127.0.0.1:{port}", ca_file
        self._port = port
        self._context = ssl.create_default_context(cafile=str(ca_file))

    def get(self, path: str, token: str = "") -> tuple[int, Any]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=10, context=self._context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, json.loads(body) if body.startswith((b"{", b"[")) else body
        finally:
            connection.close()

    def first_event(self, path: str, token: str) -> Any:
        """The whole, as a page gets it at first."""
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=10, context=self._context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            while not (line := answer.readline()).startswith(b"data: "):
                assert line, "the stream has ended"
            return json.loads(line.removeprefix(b"data: "))
        finally:
            connection.close()


def token_of(plane: ControlPlane, namespace: str, name: str) -> str:
    return plane.kubectl("-n", namespace, "create", "token", name).strip()


def objects_of(namespace: str) -> list[Any]:
    """A tenant's namespace, with a gang that waits and a ServiceAccount that may view PodGroups there."""
    rbac = "rbac.authorization.k8s.io"
    inside = {"name": "viewer", "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": VIEW},
            "subjects": [{"kind": "ServiceAccount", **inside}],
        },
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": f"gang-of-{namespace}", "namespace": namespace},
            "spec": {"minMember": 2},
        },
    ]


@pytest.fixture
def tenants(cluster: Cluster) -> Iterator[Cluster]:
    """The namespaces stay."""
    plane = cluster.plane
    for overlay in ("pages",) if plane.wakes_by_status else ("pages", "wake-by-annotation"):
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
    objects = [each for namespace in TENANTS for each in objects_of(namespace)]
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))
    yield cluster
    for namespace in TENANTS:
        plane.kubectl("-n", namespace, "delete", "pods,podgroups", "--all")


@pytest.fixture
def pages(tenants: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]) -> Pages:
    """Of an extender that has the rights of the shipped account and no others."""
    ca, port = trustme.CA(), free_port()
    issued = ca.issue_cert("127.0.0.1")
    files = {name: tmp_path / name for name in ("ca.crt", "tls.crt", "tls.key")}
    ca.cert_pem.write_to_path(files["ca.crt"])
    issued.cert_chain_pems[0].write_to_path(files["tls.crt"])
    issued.private_key_pem.write_to_path(files["tls.key"])
    flags = [
        "--pages-bind-address=127.0.0.1",
        f"--pages-port={port}",
        f"--pages-tls-cert-file={files['tls.crt']}",
        f"--pages-tls-private-key-file={files['tls.key']}",
    ]
    extender = Extender(tmp_path, tenants.plane.kubeconfig(SIDECAR), flags=flags)
    scheduler = Scheduler(tenants.plane, tmp_path, extender=extender.url)
    programs += [extender, scheduler]
    extender.start()
    scheduler.start()
    made = Pages(port, files["ca.crt"])
    token = token_of(tenants.plane, "team-a", "viewer")
    eventually(
        lambda: made.get("/gangs/team-a/gang-of-team-a", token)[0] == 200, within=WITHIN, what="the role is in force"
    )
    return made


def test_a_user_of_one_namespace_sees_its_gangs_and_no_other_s(pages: Pages, tenants: Cluster) -> None:
    token = token_of(tenants.plane, "team-a", "viewer")
    status, own = pages.get("/gangs?namespace=team-a", token)
    assert (status, [gang["name"] for gang in own]) == (200, ["gang-of-team-a"])
    page = pages.first_event("/ui/events?namespace=team-a", token)
    assert [gang["name"] for gang in page["gangs"]] == ["gang-of-team-a"]
    assert "nodes" not in page or page["nodes"] == []
    assert "team-b" not in json.dumps([own, page])
    for path in (
        "/gangs",
        "/ui/events",
        "/gangs?namespace=team-b",
        "/ui/events?namespace=team-b",
        "/gangs/team-b/gang-of-team-b",
    ):
        status, refused = pages.get(path, token)
        assert (status, refused["reason"]) == (403, "Forbidden"), path


def test_a_refusal_is_worded_as_the_api_server_s_own(pages: Pages, tenants: Cluster) -> None:
    token = token_of(tenants.plane, "team-a", "viewer")
    _, ours = pages.get("/gangs/team-b/gang-of-team-b", token)
    path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-b/podgroups/gang-of-team-b"
    with pytest.raises(Exception, match="403") as caught:
        tenants.plane.api(token).get(path)
    theirs = json.loads(str(caught.value).removeprefix("403: "))
    assert {key: theirs[key] for key in ours} == ours


def test_without_a_token_of_the_cluster_s_nothing_is_seen_but_the_empty_page(pages: Pages, tenants: Cluster) -> None:
    assert pages.get("/ui")[0] == 200
    for token in ("", "made-up", token_of(tenants.plane, "team-a", "viewer")[:-4]):
        status, refused = pages.get("/gangs?namespace=team-a", token)
        assert (status, refused["message"]) == (401, "Unauthorized")


def test_an_operator_sees_all_gangs_and_a_right_that_is_taken_back_ends(pages: Pages, tenants: Cluster) -> None:
    plane = tenants.plane
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator", "namespace": "team-a"}}
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(account))
    binding = ("clusterrolebinding", "pages-operator")
    plane.kubectl("create", *binding, f"--clusterrole={VIEW}", "--serviceaccount=team-a:operator")
    token = token_of(plane, "team-a", "operator")
    try:
        eventually(lambda: pages.get("/gangs", token)[0] == 200, within=WITHIN, what="the operator sees all")
        _, gangs = pages.get("/gangs", token)
        assert {"gang-of-team-a", "gang-of-team-b"} <= {gang["name"] for gang in gangs}
        assert "nodes" in pages.first_event("/ui/events", token)
    finally:
        plane.kubectl("delete", *binding)
    eventually(lambda: pages.get("/gangs", token)[0] == 403, within=WITHIN, what="it is taken back")


class Tenant:
    """A user with a RoleBinding to one namespace and nothing else, by a real kubectl."""

    def __init__(self, plane: ControlPlane, pages: Pages, namespace: str, folder: Path) -> None:
        self._plane, self._pages = plane, pages
        self.token = token_of(plane, namespace, "viewer")
        self._file = folder / f"token-of-{namespace}"
        self._file.write_text(self.token)

    def get(self, *arguments: str, code: int = 0) -> str:
        """What `kubectl get podgroups` says; of an error, where one is wanted."""
        return self._run("--token", self.token, "get", "podgroups.scheduling.x-k8s.io", *arguments, code=code)

    def gang(self, *arguments: str, code: int = 0) -> str:
        """What `kubectl gang` says, asking the pages."""
        given = ("--server", self._pages.url, "--token-file", str(self._file))
        return self._run("gang", *arguments, *given, "--certificate-authority", str(self._pages.ca_file), code=code)

    def _run(self, *arguments: str, code: int) -> str:
        environ = {**os.environ, "KUBECONFIG": str(self._plane.kubeconfig("no-token-of-the-cluster"))}
        environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
        ended = subprocess.run(
            [self._plane.binaries.kubectl, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environ,
        )
        assert ended.returncode == code, (arguments, ended.stdout, ended.stderr)
        return ended.stderr if code else ended.stdout


def test_a_tenant_sees_its_gangs_and_no_other_s_by_kubectl_by_kubectl_gang_and_by_the_page(
    pages: Pages, tenants: Cluster, tmp_path: Path
) -> None:
    """team-b's gang runs, with a low priority, where team-a's would like to be."""
    tenants.node("node-0", cpu="5")
    for number in range(2):
        tenants.pod(f"b-{number}", group="gang-of-team-b", namespace="team-b", requests={"cpu": "2"}, priority=1)
    tenants.recorder.await_bound("team-b/b-0", "team-b/b-1", within=WITHIN)
    for number in range(2):
        tenants.pod(f"a-{number}", group="gang-of-team-a", namespace="team-a", requests={"cpu": "1"}, priority=1)
    tenants.recorder.await_message("team-a/a-0", "minMember of 2 does not fit: Insufficient cpu", within=WITHIN)
    tenant = Tenant(tenants.plane, pages, "team-a", tmp_path)

    eventually(lambda: "InsufficientResources" in tenant.get("-n", "team-a"), within=WITHIN, what="kubectl says why")
    assert "team-b" not in tenant.get("-n", "team-a", "-o", "yaml")
    refused = 'User "system:serviceaccount:team-a:viewer" cannot'
    for beyond in (("-n", "team-b"), ("-A", "-o=name")):
        assert refused in tenant.get(*beyond, code=1)

    asked = ("--members", "2", "--requests", "cpu=1")
    answers = {
        "list": tenant.gang("list", "-n", "team-a"),
        "explain": tenant.gang("explain", "-n", "team-a", "gang-of-team-a"),
        "why": tenant.gang("why", "-n", "team-a", "a-1"),
        "whatif": tenant.gang("whatif", "-n", "team-a", *asked),
        "whatif above it": tenant.gang("whatif", "-n", "team-a", *asked, "--priority", "9"),
    }
    assert [line.split()[1] for line in answers["list"].splitlines()[1:]] == ["team-a/gang-of-team-a"]
    for question in ("explain", "why", "whatif"):
        assert "1 of 2 members would find a place" in answers[question], question
    assert "would evict  (of another namespace)" in answers["whatif above it"]
    for question, answer in answers.items():
        assert "team-b" not in answer, question
        assert "b-0" not in answer, question
    for elsewhere in (
        ("list", "-n", "team-b"),
        ("list", "-A"),
        ("explain", "-n", "team-b", "gang-of-team-b"),
        ("why", "-n", "team-b", "b-0"),
        ("whatif", "-n", "team-b", *asked),
        ("drain", "node-0"),
    ):
        assert refused in tenant.gang(*elsewhere, code=1), elsewhere

    page = pages.first_event("/ui/events?namespace=team-a", tenant.token)
    assert [gang["name"] for gang in page["gangs"]] == ["gang-of-team-a"]
    assert "team-b" not in json.dumps(page)
    assert pages.get("/ui/events", tenant.token)[0] == 403
