"""The ways to install besides manifests/sidecar: one file, another namespace, without the definition, kubeadm's static pod."""

from __future__ import annotations

import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documented import PROJECT
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, ControlPlane
from tests.e2e.install_yaml import FILE, rendered
from tests.e2e.processes import eventually

NODES = MANIFESTS / "kubeadm" / "nodes"

# What kubeadm 1.36 writes to /etc/kubernetes/manifests/kube-scheduler.yaml with our cluster-configuration.yaml, as far as it matters.
STATIC_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: kube-scheduler, namespace: kube-system, labels: {component: kube-scheduler, tier: control-plane}}
spec:
  containers:
    - name: kube-scheduler
      image: registry.k8s.io/kube-scheduler:v1.36.3
      command:
        - kube-scheduler
        - --authentication-kubeconfig=/etc/kubernetes/scheduler.conf
        - --authorization-kubeconfig=/etc/kubernetes/scheduler.conf
        - --bind-address=127.0.0.1
        - --config=/etc/kubernetes/gang-extender/kube-scheduler.yaml
        - --kubeconfig=/etc/kubernetes/scheduler.conf
        - --leader-elect=true
      volumeMounts:
        - {mountPath: /etc/kubernetes/scheduler.conf, name: kubeconfig, readOnly: true}
        - {mountPath: /etc/kubernetes/gang-extender, name: gang-extender, readOnly: true}
  hostNetwork: true
  priorityClassName: system-node-critical
  volumes:
    - {hostPath: {path: /etc/kubernetes/scheduler.conf, type: FileOrCreate}, name: kubeconfig}
    - {hostPath: {path: /etc/kubernetes/gang-extender, type: Directory}, name: gang-extender}
"""


def kustomized(plane: ControlPlane, overlay: str) -> list[Any]:
    return list(yaml.safe_load_all(plane.kubectl("kustomize", str(MANIFESTS / overlay))))


def identity(each: Any) -> tuple[str, str]:
    return each["kind"], each["metadata"]["name"]


def test_install_yaml_is_what_make_manifests_makes(plane: ControlPlane) -> None:
    assert FILE.read_text() == rendered(plane.binaries.kubectl)


def test_one_file_installs_what_the_overlay_does(cluster: Cluster) -> None:
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))
    said = cluster.plane.kubectl("apply", "--server-side", "-f", str(FILE))
    assert len(said.splitlines()) == len(list(yaml.safe_load_all(FILE.read_text())))


def test_without_the_definition_all_else_is_the_same(plane: ControlPlane) -> None:
    definition = ("CustomResourceDefinition", "podgroups.scheduling.x-k8s.io")
    whole, without = kustomized(plane, "sidecar"), kustomized(plane, "without-crd")
    assert [each for each in whole if identity(each) != definition] == without != whole


def test_in_another_namespace_only_the_reader_of_kube_system_stays(plane: ControlPlane) -> None:
    objects = kustomized(plane, "other-namespace")
    reader = ("RoleBinding", "gang-scheduler-extension-apiserver-authentication-reader")
    assert [identity(each) for each in objects if each["metadata"].get("namespace") == "kube-system"] == [reader]
    accounts = {subject["namespace"] for each in objects for subject in each.get("subjects", ())}
    assert accounts == {"gang-system"}
    names = {identity(each) for each in kustomized(plane, "sidecar") if each["kind"] != "ConfigMap"}
    more = {("Namespace", "gang-system"), ("ResourceQuota", "gang-scheduler")}
    assert {identity(each) for each in objects if each["kind"] != "ConfigMap"} == names | more


def test_kubeadm_s_kube_scheduler_has_what_it_has_not_by_itself(plane: ControlPlane) -> None:
    """The roles that every cluster has for that user are its own; nothing is made for a ServiceAccount."""
    objects = kustomized(plane, "kubeadm")
    assert {each["kind"] for each in objects} == {
        "CustomResourceDefinition",
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    }
    users = {(subject["kind"], subject["name"]) for each in objects for subject in each.get("subjects", ())}
    assert users == {("User", "system:kube-scheduler")}
    (role,) = [each for each in objects if each["kind"] == "Role"]
    leases = [rule for rule in role["rules"] if rule["resources"] == ["leases"]]
    assert [rule["resourceNames"] for rule in leases] == [["kube-scheduler"]]


def may(cluster: Cluster, user: str, right: str) -> bool:
    """right: verb, group/resource/name, and namespace."""
    verb, what, namespace = right.split()
    group, resource, name = what.split("/")
    resource, _, subresource = resource.partition(".")
    asked = {"namespace": namespace, "verb": verb, "group": group, "resource": resource, "name": name}
    review = {"spec": {"user": user, "resourceAttributes": {**asked, "subresource": subresource}}}
    answer = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    allowed: bool = answer["status"]["allowed"]
    return allowed


RIGHTS = (
    "watch coordination.k8s.io/leases/{lease} {namespace}",
    "update coordination.k8s.io/leases/{lease} {namespace}",
    "create storage.k8s.io/csistoragecapacities/ {namespace}",
    "get /configmaps/extension-apiserver-authentication kube-system",
    "patch scheduling.x-k8s.io/podgroups.status/train default",
)


@pytest.mark.parametrize(
    ("overlay", "user", "namespace", "lease"),
    [
        pytest.param(
            "other-namespace",
            "system:serviceaccount:gang-system:gang-scheduler",
            "gang-system",
            "gang-scheduler",
            id="the ServiceAccount of another namespace",
        ),
        pytest.param(
            "kubeadm", "system:kube-scheduler", "kube-system", "kube-scheduler", id="kubeadm's kube-scheduler"
        ),
    ],
)
def test_the_identity_has_its_rights(overlay: str, user: str, namespace: str, lease: str, cluster: Cluster) -> None:
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
    try:
        for right in RIGHTS:
            asked = right.format(namespace=namespace, lease=lease)
            eventually(lambda asked=asked: may(cluster, user, asked), within=10, what=asked)  # type: ignore[misc]
    finally:
        cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))


TASKS = PROJECT / "docs" / "tasks"


def test_the_overlay_of_one_s_own_takes_the_images_that_it_names(plane: ControlPlane, tmp_path: Path) -> None:
    """As docs/tasks/managed-clusters.md writes it down."""
    page = (TASKS / "managed-clusters.md").read_text()
    found = re.search(r"<!-- kustomization -->\n *```yaml\n(.*?) *```", page, re.DOTALL)
    assert found is not None
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    mine = tmp_path / "manifests" / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(textwrap.dedent(found[1]))
    objects = list(yaml.safe_load_all(plane.kubectl("kustomize", str(mine))))
    (pod,) = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"]
    assert [each["image"] for each in pod["containers"]] == [
        "registry.k8s.io/kube-scheduler:v1.35.4",
        "registry.example.com/gang-extender:0.1.0",
    ]


def test_the_other_namespace_may_have_another_name(plane: ControlPlane, tmp_path: Path) -> None:
    """By the command of docs/tasks/another-namespace.md."""
    (command,) = re.findall(r"^(grep -rl .*)$", (TASKS / "another-namespace.md").read_text(), re.MULTILINE)
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    rendered = plane.kubectl("kustomize", str(tmp_path / "manifests" / "other-namespace"))
    assert "gang-system" not in rendered
    config = next(each for each in yaml.safe_load_all(rendered) if each["kind"] == "ConfigMap")
    assert "leaderLease: batch-system/gang-scheduler" in config["data"]["extender.yaml"]
    assert "resourceNamespace: batch-system" in config["data"]["kube-scheduler.yaml"]


def test_kubeadm_s_patch_makes_a_pod_that_the_api_server_takes(cluster: Cluster, tmp_path: Path) -> None:
    """As kubeadm applies it, a strategic merge; the kubelet shows static pods to the API server as they are."""
    generated = tmp_path / "kube-scheduler.yaml"
    generated.write_text(STATIC_POD)
    patch = str(NODES / "kube-scheduler+strategic.yaml")
    patched = cluster.plane.kubectl(
        "patch", "--local", "-f", str(generated), "--type", "strategic", "--patch-file", patch, "-o", "yaml"
    )
    pod = yaml.safe_load(patched)
    assert {each["name"] for each in pod["spec"]["containers"]} == {"kube-scheduler", "extender"}
    assert {each["name"] for each in pod["spec"]["volumes"]} == {"kubeconfig", "gang-extender", "gang-extender-tmp"}
    cluster.plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=patched)
