"""manifests/examples/quota on the real API server: what a tenant's namespace asks for beyond it is refused.

Nothing here counts what is there, as kube-controller-manager's quota controller does; the test writes its first word, that
nothing is used yet. From then on the API server's own admission counts what is created, and refuses.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from extender.api import corev1
from extender.api.codec import convert
from extender.cli.quotas import refused
from tests.e2e.api import POD_GROUPS, PODS, PRIORITY_CLASSES, Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, ControlPlane
from tests.e2e.processes import eventually

NAMESPACE = "with-quota"
EXAMPLE = MANIFESTS / "examples" / "quota"
QUOTAS = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
HARD: dict[str, dict[str, str]] = {
    quota["metadata"]["name"]: quota["spec"]["hard"]
    for quota in yaml.safe_load_all((EXAMPLE / "quota.yaml").read_text())
}


def say_that_nothing_is_used(plane: ControlPlane) -> None:
    api = plane.api()
    for name, hard in HARD.items():
        status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        api.patch(f"{QUOTAS}/{name}/status", {"status": status})


@pytest.fixture
def quota(cluster: Cluster) -> Iterator[Cluster]:
    cluster.judged = True  # nothing schedules here
    plane = cluster.plane
    cluster.namespace(NAMESPACE)
    apply = ("-k", str(EXAMPLE), "--namespace", NAMESPACE)
    plane.kubectl("apply", "--server-side", *apply)
    name = {"metadata": {"name": "high-priority"}, "value": 1000}
    cluster.api.create(PRIORITY_CLASSES, name)
    say_that_nothing_is_used(plane)
    eventually(lambda: not refusal(cluster, pod(1), "?dryRun=All"), within=10, what="the quotas are known", every=0.1)
    yield cluster
    plane.kubectl("delete", *apply)
    cluster.api.delete(f"{PRIORITY_CLASSES}/high-priority")


def pod(number: int, *, cpu: str = "", priority: str = "") -> Json:
    container: Json = {"name": "main", "image": "a"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    spec = {"terminationGracePeriodSeconds": 0, "schedulerName": "gang-scheduler", "containers": [container]}
    if priority:
        spec["priorityClassName"] = priority
    return {"metadata": {"name": f"pod-{number}"}, "spec": spec}


def group(number: int) -> Json:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": f"group-{number}"},
        "spec": {"minMember": 2},
    }


def refusal(cluster: Cluster, body: Json, query: str = "") -> str:
    """Of creating it; empty if it is there now."""
    path = POD_GROUPS if body.get("kind") == "PodGroup" else PODS
    try:
        cluster.api.create(path.format(namespace=NAMESPACE) + query, body)
    except Refused as refused:
        if refused.code != 403:
            raise
        return refused.message
    return ""


def test_pod_groups_beyond_the_quota_are_refused(quota: Cluster) -> None:
    most = int(HARD["gangs"]["count/podgroups.scheduling.x-k8s.io"])
    assert [refusal(quota, group(number)) for number in range(most)] == [""] * most
    assert "exceeded quota: gangs, requested: count/podgroups.scheduling.x-k8s.io=1" in refusal(quota, group(most))


def test_pods_beyond_the_quota_are_refused(quota: Cluster) -> None:
    most = int(HARD["gangs"]["pods"])
    assert [refusal(quota, pod(number)) for number in range(most)] == [""] * most
    assert "exceeded quota: gangs, requested: pods=1" in refusal(quota, pod(most))


def test_requests_beyond_the_quota_are_refused(quota: Cluster) -> None:
    most = int(HARD["gangs"]["requests.cpu"])
    assert refusal(quota, pod(0, cpu=str(most - 1))) == ""
    assert "exceeded quota: gangs, requested: requests.cpu=2" in refusal(quota, pod(1, cpu="2"))
    assert refusal(quota, pod(1)) == "", "what asks for nothing gets the default of the LimitRange"


def test_pods_of_high_priority_have_a_quota_of_their_own(quota: Cluster) -> None:
    most = int(HARD["gangs-of-high-priority"]["pods"])
    high = "high-priority"
    eventually(
        lambda: not refusal(quota, pod(0, priority=high), "?dryRun=All"), within=5, what="the class is known", every=0.1
    )
    assert [refusal(quota, pod(number, priority=high)) for number in range(most)] == [""] * most
    assert "exceeded quota: gangs-of-high-priority" in refusal(quota, pod(most, priority=high))
    assert refusal(quota, pod(most)) == "", "others are none of it"


@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical"])
def test_no_pod_has_the_priority_of_the_cluster_s_own(name: str, quota: Cluster) -> None:
    assert "exceeded quota: no-system-priority" in refusal(quota, pod(0, priority=name))


@pytest.mark.parametrize(
    ("cpu", "priority", "refusing"),
    [
        pytest.param("64", "", "", id="all that there is"),
        pytest.param("65", "", "gangs: requests.cpu", id="more"),
        pytest.param("16", "high-priority", "", id="all that its class may have"),
        pytest.param("17", "high-priority", "gangs-of-high-priority: requests.cpu", id="more than its class may have"),
        pytest.param("1", "system-cluster-critical", "no-system-priority: pods", id="a class that may have nothing"),
    ],
)
def test_whatif_says_beforehand_what_is_refused(quota: Cluster, cpu: str, priority: str, refusing: str) -> None:
    body = pod(9, cpu=cpu, priority=priority)
    body["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    quotas = [convert(each, corev1.ResourceQuota) for each in quota.api.items(QUOTAS)]
    said = [f"{each.quota.partition('/')[2]}: {each.resource}" for each in refused(quotas, [body], [])]
    assert said == ([refusing] if refusing else [])
    name, _, resource = refusing.partition(": ")
    words = refusal(quota, body, "?dryRun=All")
    assert bool(words) == bool(refusing)
    assert f"exceeded quota: {name}, requested: {resource}=" in words or not refusing
