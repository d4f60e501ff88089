"""What manifests/ ships, applied to the real API server, and enough for what it is for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from extender.cli.main import main
from tests.e2e.api import Api, Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import EXTENDER_ALONE, EXTENDER_USER, MANIFESTS, SIDECAR, ControlPlane, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

# They change or refuse pods: tests of their own apply them, and take them away again. The other has kinds that are not served.
POLICIES = ("gate", "scheduler-name", "wake-by-annotation", "tenants", "examples/quota")
OTHERS_KINDS = "examples/integrations"
OVERLAYS = sorted(
    overlay
    for file in MANIFESTS.rglob("kustomization.yaml")
    if (overlay := str(file.parent.relative_to(MANIFESTS))) not in (*POLICIES, OTHERS_KINDS)
)
EXAMPLES = sorted(
    str(file.relative_to(MANIFESTS))
    for file in (MANIFESTS / "examples").rglob("*.yaml")
    if file.name != "kustomization.yaml" and file.parent.name not in ("quota", "integrations")
)


# By name alone, with any content: only that the manifests can be applied where these kinds exist is shown.
KINDS_OF_OTHERS = {
    "monitoring": ("monitoring.coreos.com", ("PodMonitor", "PrometheusRule")),
    "examples/certificates": ("cert-manager.io", ("Certificate", "Issuer")),
}


def define(plane: ControlPlane, group: str, kinds: tuple[str, ...]) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for kind in kinds:
        plural = f"{kind.lower()}s"
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        }
        plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(definition))
        plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{plural}.{group}")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_applied_twice(overlay: str, cluster: Cluster) -> None:
    """The second time changes nothing: no field is fought over."""
    if overlay in KINDS_OF_OTHERS:
        define(cluster.plane, *KINDS_OF_OTHERS[overlay])
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_applied(example: str, cluster: Cluster) -> None:
    folder = str(Path(example).parent)
    if folder in KINDS_OF_OTHERS:
        define(cluster.plane, *KINDS_OF_OTHERS[folder])
    cluster.plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / example))
    cluster.plane.kubectl("delete", "-f", str(MANIFESTS / example))


def deployment(plane: ControlPlane) -> Json:
    rendered = yaml.safe_load_all(plane.kubectl("kustomize", str(MANIFESTS / "sidecar")))
    (found,) = (each for each in rendered if each["kind"] == "Deployment")
    made: Json = found
    return made


def test_the_sidecar_may_read_its_one_lease(cluster: Cluster) -> None:
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))
    account = cluster.plane.api(SIDECAR)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    eventually(
        lambda: not is_forbidden(account, leases, fieldSelector="metadata.name=gang-scheduler"),
        within=10,
        what="the Lease may be watched",
    )
    assert is_forbidden(account, f"{leases}/kube-controller-manager")
    assert is_forbidden(account, "/api/v1/namespaces/kube-system/secrets")


def test_the_doctor_finds_the_right_that_is_taken_away(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the shipped ServiceAccount, by an administrator's kubeconfig: preemption is an overlay of its own, and so no mistake."""
    plane = cluster.plane
    plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))
    asked = [f"--kubeconfig={plane.kubeconfig()}", f"--config={MANIFESTS / 'sidecar/extender.yaml'}", "-o", "json"]

    def missing() -> set[str]:
        main(["doctor", *asked])
        found = json.loads(capsys.readouterr().out)
        return {each["field"] for each in found if each["code"] == "MissingRight" and each["severity"] != "info"}

    eventually(lambda: not missing(), within=10, what="nothing is missing")
    plane.kubectl("delete", "clusterrolebinding", "gang-extender")
    try:
        own = {"podgroups.scheduling.x-k8s.io", "podgroups.scheduling.x-k8s.io/status"}
        eventually(lambda: own <= missing(), within=10, what="what was taken away is missing")
        assert not missing() & {"nodes", "pods/binding"}  # the ServiceAccount has kube-scheduler's own role too
    finally:
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))


def test_the_pod_of_the_sidecar_passes_restricted_pod_security(cluster: Cluster) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    with_labels = {"metadata": {"name": "restricted", "labels": labels}}
    try:
        cluster.api.create("/api/v1/namespaces", with_labels)
    except Refused as refused:
        assert refused.code == 409  # noqa: PT017 - left over by an earlier run of this test
    template = deployment(cluster.plane)["spec"]["template"]
    pod = {"metadata": {"name": "sidecar", "labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    cluster.api.create("/api/v1/namespaces/restricted/pods", pod)
    cluster.api.delete("/api/v1/namespaces/restricted/pods/sidecar")


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        pytest.param({"minMember": 3}, "", id="minMember alone"),
        pytest.param({"minMember": 0}, "spec.minMember", id="a group of none"),
        pytest.param(
            {"minMember": 1, "minResources": {"cpu": 4, "memory": "1.5Gi"}}, "", id="amounts as number and text"
        ),
        pytest.param({"minMember": 1, "minResources": {"cpu": "many"}}, "spec.minResources.cpu", id="no amount at all"),
        pytest.param({"minMember": 1, "scheduleTimeoutSeconds": 0}, "", id="a timeout of 0 is the default"),
        pytest.param({}, "", id="no minMember, as scheduler-plugins allows"),
    ],
)
def test_the_definition_judges_a_pod_group(spec: Json, refused: str, cluster: Cluster) -> None:
    body = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "judged"},
        "spec": spec,
    }
    path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
    if not refused:
        cluster.api.create(path, body)
        return
    with pytest.raises(Refused, match=refused):
        cluster.api.create(path, body)


def test_a_status_with_conditions_is_kept(cluster: Cluster) -> None:
    cluster.pod_group("web", min_member=3)
    condition = {
        "type": "Scheduled",
        "status": "False",
        "reason": "NotEnoughPods",
        "message": "2 of 3",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/web"
    status = {"phase": "Pending", "running": 0, "reason": "NotEnoughPods"}
    cluster.api.patch(f"{path}/status", {"status": {**status, "conditions": [condition]}})
    assert cluster.api.get(path)["status"]["conditions"] == [condition]
    assert "NotEnoughPods" in cluster.plane.kubectl("get", "pg", "web", "-o", "wide")


def bind_roles_to_the_extender_alone(plane: ControlPlane) -> None:
    """The extender's two roles, and no other, for a user of the test's own."""
    plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "rbac"))
    user = [{"kind": "User", "name": EXTENDER_USER, "apiGroup": "rbac.authorization.k8s.io"}]
    for kind, role, namespace in (
        ("ClusterRoleBinding", "ClusterRole", None),
        ("RoleBinding", "Role", "kube-system"),
    ):
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": EXTENDER_USER, **({"namespace": namespace} if namespace else {})},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "gang-extender"},
            "subjects": user,
        }
        plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(binding))


@pytest.fixture
def right_to_wake(plane: ControlPlane) -> Iterator[None]:
    """What kube-scheduler before 1.33 needs in addition, as docs/operations.md says; nothing where a status wakes."""
    if plane.wakes_by_status:
        yield
        return
    plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "wake-by-annotation"))
    plane.kubectl(
        "create", "clusterrolebinding", "wake-alone", "--clusterrole=gang-extender-wake", f"--user={EXTENDER_USER}"
    )
    yield
    plane.kubectl("delete", "clusterrolebinding", "wake-alone")
    plane.kubectl("delete", "-k", str(MANIFESTS / "wake-by-annotation"))


@pytest.mark.usefixtures("right_to_wake")
def test_the_extender_needs_no_more_than_its_role(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    bind_roles_to_the_extender_alone(cluster.plane)
    alone = cluster.plane.api(EXTENDER_ALONE)
    eventually(lambda: not is_forbidden(alone, "/api/v1/nodes"), within=10, what="the roles are in force")
    pair = Pair.of(cluster.plane, tmp_path, token=EXTENDER_ALONE)
    programs.extend(pair.start())
    run_a_gang(cluster)
    assert "orbidden" not in pair.extender.log()


@pytest.mark.usefixtures("right_to_wake")
def test_the_sidecar_as_it_is_shipped_with_leader_election(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """Both containers with the ServiceAccount's rights, and the extender acts only once its kube-scheduler leads."""
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))
    account = cluster.plane.api(SIDECAR)
    eventually(lambda: not is_forbidden(account, "/api/v1/nodes"), within=10, what="the roles are in force")
    pair = Pair.of(cluster.plane, tmp_path, token=SIDECAR, scheduler_token=SIDECAR, as_shipped=True)
    programs.extend(pair.start())
    run_a_gang(cluster, within=20)
    assert "orbidden" not in pair.extender.log()
    assert "orbidden" not in pair.scheduler.log()


def run_a_gang(cluster: Cluster, within: float = 5) -> None:
    """One that waits first, so that the pods are woken and events are written."""
    cluster.node("node-1")
    cluster.pod_group("web", min_member=3)
    for number in range(2):
        cluster.pod(f"web-{number}", group="web")
    cluster.recorder.await_message("web-1", "current pods number: 2", within=within)
    cluster.pod("web-2", group="web")
    cluster.recorder.await_bound("web-0", "web-1", "web-2", within=within)


def is_forbidden(api: Api, path: str, **query: str) -> bool:
    try:
        api.get(path, **query)
    except Refused as refused:
        return refused.code == 403
    return False
