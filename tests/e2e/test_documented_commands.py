"""The commands of README and docs/ on a real control plane, as they stand there: each story is one reader's, block after block."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documented import Block
from tests.documented_commands import blocks_run_by
from tests.e2e.api import PODS, Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS
from tests.e2e.documented_programs import Programs
from tests.e2e.pair import Pair
from tests.e2e.test_install_manifests import STATIC_POD

SYSTEM = "kube-system"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/gang-scheduler"
REPLICA_SETS = f"/apis/apps/v1/namespaces/{SYSTEM}/replicasets"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
ENDPOINT_SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices"
CONFIG_MAPS = f"/api/v1/namespaces/{SYSTEM}/configmaps"
SECRETS = f"/api/v1/namespaces/{SYSTEM}/secrets"
LEADER = "gang-scheduler-7d4f"
SHIPPED = ("kube-scheduler.yaml", "extender.yaml")


@pytest.fixture
def story(request: pytest.FixtureRequest) -> list[Block]:
    """The blocks that the test is named for."""
    return blocks_run_by(f"e2e/test_documented_commands.py::{request.node.name}")


@pytest.fixture
def pages(cluster: Cluster, module_programs: Pair, tmp_path: Path) -> Programs:
    return Programs(cluster.plane, tmp_path, module_programs.extender.ops_url)


@pytest.fixture
def made(cluster: Cluster) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """Makes an object in a collection; it is gone at the end."""
    paths: list[str] = []

    def make(collection: str, body: dict[str, Any]) -> None:
        cluster.api.create(collection, body)
        paths.append(f"{collection}/{body['metadata']['name']}")

    yield make
    for path in reversed(paths):
        _gone(cluster, path)


def _gone(cluster: Cluster, path: str) -> None:
    try:
        cluster.api.delete(path, gracePeriodSeconds=0)
    except Refused as refused:
        if refused.code != 404:
            raise


@pytest.fixture
def as_shipped(cluster: Cluster) -> Iterator[None]:
    """For stories that change what manifests/sidecar has made."""
    cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))
    yield
    cluster.plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(MANIFESTS / "sidecar"))


def test_readme_installs(story: list[Block], pages: Programs, cluster: Cluster) -> None:
    said = pages.run(*story)
    assert 'deployment "gang-scheduler" successfully rolled out' in said
    assert "podgroup.scheduling.x-k8s.io/nginx serverside-applied" in said
    cluster.plane.kubectl("delete", "-k", str(MANIFESTS / "examples" / "nginx"))


def test_readme_simulates_one_s_own_cluster(story: list[Block], pages: Programs, cluster: Cluster) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("train", 2)
    requests = {"requests": {"cpu": "1"}}
    spec = {"schedulerName": "gang-scheduler", "containers": [{"name": "c", "resources": requests}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one-more"}, "spec": spec}
    (pages.project / "more-pods.yaml").write_text(yaml.safe_dump(pod))
    said = pages.run(*story)
    assert re.search(r"^default +one-more +node-1 +Scheduled", said, re.MULTILINE)
    assert "train  Gathering" in said


def test_a_managed_cluster(story: list[Block], pages: Programs) -> None:
    assert "Server Version: " in pages.run(*story)


@pytest.mark.usefixtures("as_shipped")
def test_an_upgrade_and_the_way_back(story: list[Block], pages: Programs, cluster: Cluster, made: Any) -> None:
    """What the controller of Deployments writes for each version that was applied is played."""
    for name in SHIPPED:
        (pages.project / name).write_text((MANIFESTS / "sidecar" / name).read_text())
    *upgrade, back = story
    said = pages.run(*upgrade)
    assert "nothing is wrong" in said
    assert "successfully rolled out" in said
    deployment = cluster.api.get(DEPLOYMENT)
    for revision in ("1", "2"):
        made(REPLICA_SETS, _replica_set(deployment, revision))
    cluster.api.patch(DEPLOYMENT, {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}}})
    assert pages.run(back) == "deployment.apps/gang-scheduler rolled back\n"
    images = [each["image"] for each in cluster.api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]]
    assert [image for image in images if image.endswith(":revision-1")] == images


def _replica_set(deployment: dict[str, Any], revision: str) -> dict[str, Any]:
    template = json.loads(json.dumps(deployment["spec"]["template"]))
    template["metadata"]["labels"]["pod-template-hash"] = revision
    for container in template["spec"]["containers"]:
        container["image"] = container["image"].rpartition(":")[0] + f":revision-{revision}"
    labels = template["metadata"]["labels"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gang-scheduler", "controller": True}
    return {
        "metadata": {
            "name": f"gang-scheduler-{revision}",
            "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": revision},
            "ownerReferences": [{**owner, "uid": deployment["metadata"]["uid"]}],
        },
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


def test_the_leader_is_asked(story: list[Block], pages: Programs, cluster: Cluster, made: Any) -> None:
    """By page, runbook and troubleshooting: the Lease names the pod, and the extender answers."""
    _gone(cluster, f"{LEASES}/gang-scheduler")
    made(LEASES, {"metadata": {"name": "gang-scheduler"}, "spec": {"holderIdentity": f"{LEADER}_a-uid"}})
    deployment = next(yaml.safe_load_all((MANIFESTS / "sidecar" / "deployment.yaml").read_text()))
    containers = [
        {"name": each["name"], "image": "i", "ports": each.get("ports", [])}
        for each in deployment["spec"]["template"]["spec"]["containers"]
    ]
    spec = {"containers": containers, "terminationGracePeriodSeconds": 0, "schedulerName": "none"}
    made(PODS.format(namespace=SYSTEM), {"metadata": {"name": LEADER}, "spec": spec})
    cluster.node("node-1", cpu="4")
    cluster.pod_group("train", 3)
    cluster.pod("train-0", group="train")
    cluster.recorder.await_message("train-0", "cannot find enough sibling pods", within=10)
    by_page = {block.page.name: [each for each in story if each.page == block.page] for block in story}
    found = pages.run(*by_page["troubleshooting.md"])
    assert "default/train: Gathering" in found
    assert '"name":"train"' in found.replace(" ", "")
    assert "[+]" in pages.run(*by_page["runbooks.md"], POD=LEADER)
    pages.run(*by_page["page.md"], LEADER=LEADER)
    inside = pages.run(*by_page["debugging.md"], LEADER=LEADER)
    assert '"differs": false' in inside
    assert "successfully set the verbosity to 4" in inside


@pytest.mark.usefixtures("as_shipped")
def test_the_pages_get_a_certificate(story: list[Block], pages: Programs, cluster: Cluster, made: Any) -> None:
    certificate, token = story
    pages.run(certificate)
    secret = cluster.api.get(f"/api/v1/namespaces/{SYSTEM}/secrets/gang-extender-pages-tls")
    assert secret["type"] == "kubernetes.io/tls"
    _gone(cluster, f"/api/v1/namespaces/{SYSTEM}/secrets/gang-extender-pages-tls")
    cluster.namespace("team-a")
    made("/api/v1/namespaces/team-a/serviceaccounts", {"metadata": {"name": "viewer"}})
    assert pages.run(token, TOKEN="eyJ").startswith("ey")


@pytest.mark.usefixtures("as_shipped")
def test_another_namespace(story: list[Block], pages: Programs, cluster: Cluster, tmp_path: Path) -> None:
    there, other_name, overlay, doctor = story
    pages.run(there)
    assert "cannot" not in pages.run(overlay)
    kubeconfig = yaml.safe_load(cluster.plane.kubeconfig().read_text())
    kubeconfig["contexts"][0]["name"] = "prod"
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig))
    try:
        cluster.create(LEASES.replace(SYSTEM, "gang-system"), _held_lease("gang-scheduler"))
        said = pages.run(doctor, KUBECONFIG=str(file))
        assert "error: " not in said
        pages.run(other_name)
        assert cluster.api.get("/apis/apps/v1/namespaces/batch-system/deployments/gang-scheduler")
    finally:
        for namespace in ("gang-system", "batch-system"):
            cluster.delete_namespace(namespace)


def _held_lease(name: str) -> Json:
    """As a kube-scheduler renews it."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    held = {"holderIdentity": f"{name}-0_a-uid", "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now}
    return {"metadata": {"name": name}, "spec": held}


CLUSTER_CONFIGURATION = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.3\n"


@pytest.mark.usefixtures("as_shipped")
def test_kubeadm_s_static_pod(story: list[Block], pages: Programs, cluster: Cluster, made: Any, tmp_path: Path) -> None:
    """The editor puts in what cluster-configuration.yaml has; the pod that kubeadm would write has both containers."""
    made(CONFIG_MAPS, {"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": CLUSTER_CONFIGURATION}})
    made(LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "control-plane-1_a-uid"}})
    (pages.folder / "generated.yaml").write_text(STATIC_POD)
    more = yaml.safe_load((MANIFESTS / "kubeadm" / "nodes" / "cluster-configuration.yaml").read_text())["scheduler"]
    editor = tmp_path / "editor"
    put = textwrap.indent(yaml.safe_dump({"scheduler": more}), "    ")
    editor.write_text(f"#!/bin/sh\nsed -i '/kind: ClusterConfiguration/r {tmp_path / 'put'}' \"$1\"\n")
    (tmp_path / "put").write_text(put)
    editor.chmod(0o755)
    pages.run(*story, moved={"/etc/kubernetes": str(tmp_path / "etc-kubernetes")}, KUBE_EDITOR=str(editor))
    configured = [*yaml.safe_load_all((pages.project / "cluster.yaml").read_text())]
    assert configured[0]["scheduler"] == more
    assert configured[1]["kind"] == "InitConfiguration"
    pod = yaml.safe_load((pages.folder / "kube-scheduler.yaml").read_text())
    assert {each["name"] for each in pod["spec"]["containers"]} == {"kube-scheduler", "extender"}
    assert {each.name for each in (tmp_path / "etc-kubernetes" / "gang-extender").iterdir()} == {*SHIPPED}


def test_the_extender_as_a_service(
    story: list[Block], pages: Programs, cluster: Cluster, made: Any, tmp_path: Path
) -> None:
    """What the leader writes is played."""
    *cluster_s, node_s = story
    made(ENDPOINT_SLICES, {"metadata": {"name": "gang-extender-leader"}, "addressType": "IPv4", "endpoints": []})
    try:
        said = pages.run(*cluster_s)
        assert 'deployment "gang-extender" successfully rolled out' in said
        assert "gang-extender-leader" in said
        pages.run(node_s, moved={"/etc/kubernetes": str(tmp_path / "etc-kubernetes")})
        here = {each.name for each in (tmp_path / "etc-kubernetes" / "gang-extender").iterdir()}
        assert here == {"ca.crt", "tls.crt", "tls.key", "kube-scheduler.yaml"}
    finally:
        _gone(cluster, f"/api/v1/namespaces/{SYSTEM}/secrets/gang-extender-tls")
        cluster.plane.kubectl("delete", "--ignore-not-found", "-k", str(MANIFESTS / "service"))
        cluster.install_crd()
        cluster.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))


def there(cluster: Cluster, shape: str) -> set[str]:
    """What is in the cluster of what the manifests of a shape have."""
    said = cluster.plane.kubectl("get", "--ignore-not-found", "-o", "name", "-k", str(MANIFESTS / shape))
    return {*said.split()}


@pytest.mark.usefixtures("as_shipped")
def test_nothing_is_left_after_uninstalling(story: list[Block], pages: Programs, cluster: Cluster) -> None:
    gone, left = story
    before = pages.run(left)
    shipped = there(cluster, "sidecar")
    kinds = {name.partition("/")[0].partition(".")[0] for name in shipped}
    assert kinds >= {"deployment", "configmap", "serviceaccount", "clusterrole", "clusterrolebinding", "role"}
    assert {name.partition("/")[2] for name in shipped} <= {word.rpartition("/")[2] for word in before.split()}
    try:
        pages.run(gone)
        assert there(cluster, "sidecar") == set()
        here = [
            line for line in pages.run(left).splitlines() if line.startswith((SYSTEM, " "))
        ]  # not of other tests' namespaces
        still = {word.rpartition("/")[2] for line in here for word in line.split()}
        assert still & {name.partition("/")[2] for name in shipped} == set()
        assert not cluster.has_crd()
    finally:
        cluster.install_crd()


def test_kube_scheduler_is_the_plain_one_again(
    story: list[Block], pages: Programs, cluster: Cluster, made: Any, tmp_path: Path
) -> None:
    """The editor takes out what cluster-configuration.yaml has, and kubeadm writes the pod without a patch."""
    more = yaml.safe_load((MANIFESTS / "kubeadm" / "nodes" / "cluster-configuration.yaml").read_text())["scheduler"]
    with_config = CLUSTER_CONFIGURATION + yaml.safe_dump({"scheduler": more})
    made(CONFIG_MAPS, {"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": with_config}})
    (pages.folder / "generated.yaml").write_text(STATIC_POD)
    patches = tmp_path / "etc-kubernetes" / "patches"
    patches.mkdir(parents=True)
    (patches / "kube-scheduler+strategic.yaml").touch()
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i '/^    scheduler:/,/^kind:/{/^kind:/!d}' \"$1\"\n")
    editor.chmod(0o755)
    pages.run(*story, moved={"/etc/kubernetes": str(tmp_path / "etc-kubernetes")}, KUBE_EDITOR=str(editor))
    assert [*patches.iterdir()] == []
    assert yaml.safe_load((pages.project / "cluster.yaml").read_text()) == yaml.safe_load(CLUSTER_CONFIGURATION)
    pod = yaml.safe_load((pages.folder / "kube-scheduler.yaml").read_text())
    assert [each["name"] for each in pod["spec"]["containers"]] == ["kube-scheduler"]


@pytest.mark.usefixtures("as_shipped")
def test_nothing_is_left_of_the_other_shapes_after_uninstalling(
    story: list[Block], pages: Programs, cluster: Cluster, made: Any
) -> None:
    """The leader's endpoint, its Lease and the Secrets are not of the manifests."""
    try:
        for shape, block in zip(("kubeadm", "service"), story, strict=True):
            cluster.plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(MANIFESTS / shape))
            assert there(cluster, shape)
            if shape == "service":
                made(
                    ENDPOINT_SLICES,
                    {"metadata": {"name": "gang-extender-leader"}, "addressType": "IPv4", "endpoints": []},
                )
                made(LEASES, {"metadata": {"name": "gang-extender"}})
                for name in ("gang-extender-tls", "gang-extender-client"):
                    made(SECRETS, {"metadata": {"name": name}})
            pages.run(block)
            assert there(cluster, shape) == set()
        for collection in (ENDPOINT_SLICES, LEASES, SECRETS):
            names = {each["metadata"]["name"] for each in cluster.api.items(collection)}
            assert not {name for name in names if name.startswith("gang-extender")}
    finally:
        cluster.install_crd()
