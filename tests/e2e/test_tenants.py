"""manifests/tenants: what a tenant may not write on pods, whatever its role allows, and what is none the worse for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import PODS, Api, Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import DAEMON_SETS, MANIFESTS, SIDECAR, TENANT, TENANT_USER, ControlPlane, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

TENANT_PODS = PODS.format(namespace="default")
MERGE = "application/merge-patch+json"
START = "gang-extender.dev/start"
RECORD = "only the gang scheduler writes the annotation "
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agents", "uid": "agents", "controller": True}
NO_DAEMON_SET = "only the controller of DaemonSets makes a pod one that a DaemonSet controls"


def may_do_all_with_pods(plane: ControlPlane, user: str) -> None:
    """More than a tenant's: the ways round the pod itself, its status and its binding, too."""
    name = f"pods-of-{user.rpartition(':')[2]}"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": "default"},
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/status", "pods/binding", "bindings"], "verbs": ["*"]}
        ],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all([role, binding]))


def body(name: str = "mine", annotations: Json | None = None, owners: list[Json] | None = None) -> Json:
    return {
        "metadata": {"name": name, "annotations": annotations or {}, "ownerReferences": owners or []},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "a"}]},
    }


def refusal(api: Api, method: str, path: str, sent: Json, content_type: str = "application/json") -> str:
    """What the API server says against it; empty if it is done."""
    try:
        api.call(method, path, sent, content_type)
    except Refused as refused:
        if refused.code not in (403, 422):
            raise
        return refused.message
    return ""


@pytest.fixture(scope="module")
def tenant(plane: ControlPlane) -> Iterator[Api]:
    """With the policies in force; they are gone again after these tests."""
    for overlay in ("sidecar", "tenants", "tenants"):  # the second time changes nothing
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
    for user in (TENANT_USER, "system:serviceaccount:kube-system:daemon-set-controller"):
        may_do_all_with_pods(plane, user)
    api = plane.api(TENANT)
    dry = f"{TENANT_PODS}?dryRun=All"
    for sent, said in ((body(annotations={START: "x"}), RECORD), (body(owners=[OWNER]), NO_DAEMON_SET)):
        eventually(lambda: said in refusal(api, "POST", dry, sent), within=20, what="a policy is in force", every=0.2)  # noqa: B023
    yield api
    plane.kubectl("delete", "--ignore-not-found", "-k", str(MANIFESTS / "tenants"))
    for sent in (body(annotations={START: "x"}), body(owners=[OWNER])):
        eventually(lambda: not refusal(api, "POST", dry, sent), within=20, what="the policies are gone", every=0.2)  # noqa: B023


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        pytest.param({START: "x"}, f"{RECORD}{START}: leave it out", id="the record of a start"),
        pytest.param({START: "", "a": "b"}, f"{RECORD}{START}: leave it out", id="an empty one, beside another key"),
    ],
)
def test_a_tenant_makes_no_record(annotations: Json, said: str, tenant: Api, cluster: Cluster) -> None:
    assert said in refusal(tenant, "POST", TENANT_PODS, body(annotations=annotations))
    assert refusal(tenant, "POST", TENANT_PODS, body(annotations={"a": "b"})) == ""
    cluster.node("node-1")
    pod = f"{TENANT_PODS}/mine"
    patch = {"metadata": {"annotations": annotations}}
    assert said in refusal(tenant, "PATCH", pod, patch, MERGE)
    assert said in refusal(tenant, "PATCH", f"{pod}/status", patch, MERGE)
    target = {"kind": "Node", "name": "node-1"}
    binding = {"metadata": {"name": "mine", "annotations": annotations}, "target": target}
    assert said in refusal(tenant, "POST", f"{pod}/binding", binding)
    assert said in refusal(tenant, "POST", "/api/v1/namespaces/default/bindings", binding)
    assert refusal(tenant, "PATCH", pod, {"metadata": {"annotations": {"a": "c"}, "labels": {"d": "e"}}}, MERGE) == ""
    plain = {"metadata": {"name": "mine"}, "target": target}
    assert refusal(tenant, "POST", f"{pod}/binding", plain) == ""
    found = cluster.api.get(pod)
    assert found["spec"]["nodeName"] == "node-1"
    assert found["metadata"]["annotations"] == {"a": "c"}


@pytest.mark.usefixtures("tenant")
def test_a_gang_starts_with_its_records_and_its_owner_may_change_the_pods(
    tenant: Api, cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """The extender and kube-scheduler have the account of the sidecar, as they are shipped."""
    pair = Pair.of(cluster.plane, tmp_path, token=SIDECAR, scheduler_token=SIDECAR)
    programs.extend(pair.start())
    cluster.node("node-1")
    cluster.pod_group("web", min_member=2, annotations={"gang-extender.dev/match-policy": "only-waiting"})
    for name in ("web-0", "web-1"):
        cluster.pod(name, group="web")
    cluster.recorder.await_bound("web-0", "web-1", within=10)
    pod = f"{TENANT_PODS}/web-0"
    records = cluster.api.get(pod)["metadata"]["annotations"]
    assert START in records
    assert refusal(tenant, "PATCH", pod, {"metadata": {"labels": {"a": "b"}}}, MERGE) == ""
    assert refusal(tenant, "PATCH", pod, {"metadata": {"annotations": {START: records[START]}}}, MERGE) == ""
    assert RECORD in refusal(tenant, "PATCH", pod, {"metadata": {"annotations": {START: "x"}}}, MERGE)
    assert refusal(tenant, "PATCH", pod, {"metadata": {"annotations": {START: None}}}, MERGE) == ""


@pytest.mark.parametrize(
    ("owner", "refused"),
    [
        pytest.param({}, True, id="a DaemonSet controls it"),
        pytest.param({"controller": False}, False, id="a DaemonSet owns it"),
        pytest.param({"kind": "ReplicaSet"}, False, id="a ReplicaSet controls it"),
        pytest.param({"apiVersion": "tenant.example/v1"}, False, id="another group's DaemonSet controls it"),
    ],
)
def test_a_tenant_makes_no_pod_a_daemon_set_s(owner: Json, refused: bool, tenant: Api, cluster: Cluster) -> None:
    cluster.judged = True  # nothing schedules here
    said = NO_DAEMON_SET if refused else ""
    owners = [{**OWNER, **owner}]
    assert said in refusal(tenant, "POST", TENANT_PODS, body("made", owners=owners))
    assert refusal(tenant, "POST", TENANT_PODS, body("changed")) == ""
    changed = refusal(tenant, "PATCH", f"{TENANT_PODS}/changed", {"metadata": {"ownerReferences": owners}}, MERGE)
    assert (said in changed) if refused else changed == ""


@pytest.mark.usefixtures("tenant")
def test_the_controller_of_daemon_sets_does_and_its_pods_may_be_changed(tenant: Api, cluster: Cluster) -> None:
    controller = cluster.plane.api(DAEMON_SETS)
    assert refusal(controller, "POST", TENANT_PODS, body(owners=[OWNER])) == ""
    pod = f"{TENANT_PODS}/mine"
    assert refusal(tenant, "PATCH", pod, {"metadata": {"labels": {"a": "b"}}}, MERGE) == ""
    assert NO_DAEMON_SET in refusal(
        tenant, "PATCH", pod, {"metadata": {"ownerReferences": [{**OWNER, "uid": "another"}]}}, MERGE
    )
    assert refusal(tenant, "PATCH", pod, {"metadata": {"ownerReferences": []}}, MERGE) == ""
