"""What ResourceQuotas would refuse of pods that are not there yet, as the API server's admission would."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.cli.quotas import by_namespace, refused, usage_of

Raw = dict[str, Any]


def pod(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, name: str = "a", **spec: Any
) -> Raw:
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "resources": resources}], **spec}}


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> corev1.ResourceQuota:
    raw = {
        "metadata": {"name": "q", "namespace": "team-a"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or {}},
    }
    return convert(raw, corev1.ResourceQuota)


def scope(name: str, operator: str = "Exists", *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"scopeName": name, "operator": operator, "values": list(values)}]}


CPU = {"cpu": "4"}
WHOLE = {"cpu": "1", "memory": "1Gi"}
GROUP = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}


@pytest.mark.parametrize(
    ("quota", "pods", "said"),
    [
        pytest.param(quota({"requests.cpu": "8"}), [pod(CPU)] * 2, [], id="as much as is left"),
        pytest.param(
            quota({"requests.cpu": "8"}, {"requests.cpu": "500m"}),
            [pod(CPU)] * 2,
            ["requests.cpu: 8 wanted, 7500m of 8 left"],
            id="more than is left",
        ),
        pytest.param(quota({"cpu": "7"}), [pod(CPU)] * 2, ["cpu: 8 wanted, 7 of 7 left"], id="by its short name"),
        pytest.param(
            quota({"cpu": "2"}, {"cpu": "3"}),
            [pod(CPU)],
            ["cpu: 4 wanted, 0 of 2 left"],
            id="more is used than is allowed",
        ),
        pytest.param(
            quota({"requests.memory": "3Gi"}),
            [pod(WHOLE)] * 4,
            ["requests.memory: 4Gi wanted, 3Gi of 3Gi left"],
            id="bytes",
        ),
        pytest.param(
            quota({"requests.nvidia.com/gpu": "2"}),
            [pod({"nvidia.com/gpu": "1"})] * 3,
            ["requests.nvidia.com/gpu: 3 wanted, 2 of 2 left"],
            id="extended resources",
        ),
        pytest.param(
            quota({"limits.cpu": "1"}), [pod(CPU, {"cpu": "2"})], ["limits.cpu: 2 wanted, 1 of 1 left"], id="limits"
        ),
        pytest.param(quota({"pods": "3"}), [pod()] * 4, ["pods: 4 wanted, 3 of 3 left"], id="pods"),
        pytest.param(quota({"count/pods": "0"}), [pod()], ["count/pods: 1 wanted, 0 of 0 left"], id="no pods at all"),
        pytest.param(quota({"services": "0"}), [pod()], [], id="what pods do not use"),
        pytest.param(
            quota({"requests.cpu": "8", "limits.memory": "1Gi"}),
            [pod(CPU), pod()],
            [
                "limits.memory: each container has to name it, unless a LimitRange does",
                "requests.cpu: each container has to name it, unless a LimitRange does",
            ],
            id="a container that leaves out what is counted",
        ),
        pytest.param(quota({"requests.cpu": "8"}), [pod({}, CPU)], [], id="a limit stands for a request"),
        pytest.param(
            quota({"pods": "0"}, scopeSelector=scope("PriorityClass", "In", "high")),
            [pod(priorityClassName="high")],
            ["pods: 1 wanted, 0 of 0 left"],
            id="of its priority class",
        ),
        pytest.param(
            quota({"pods": "0"}, scopeSelector=scope("PriorityClass", "In", "high")), [pod()], [], id="of another class"
        ),
        pytest.param(
            quota({"pods": "0"}, scopeSelector=scope("PriorityClass", "NotIn", "high")),
            [pod()],
            ["pods: 1 wanted, 0 of 0 left"],
            id="not of that class",
        ),
        pytest.param(
            quota({"pods": "0"}, scopeSelector=scope("PriorityClass", "DoesNotExist")),
            [pod(priorityClassName="high")],
            [],
            id="only those of no class",
        ),
        pytest.param(
            quota({"pods": "0"}, scopes=["BestEffort"]), [pod()], ["pods: 1 wanted, 0 of 0 left"], id="best effort"
        ),
        pytest.param(quota({"pods": "0"}, scopes=["BestEffort"]), [pod(CPU)], [], id="which one with requests is not"),
        pytest.param(
            quota({"pods": "0"}, scopes=["NotBestEffort", "NotTerminating"]),
            [pod(CPU), pod(CPU, activeDeadlineSeconds=5)],
            ["pods: 1 wanted, 0 of 0 left"],
            id="of all its scopes",
        ),
        pytest.param(
            quota({"pods": "0"}, scopes=["Terminating"]),
            [pod(activeDeadlineSeconds=5)],
            ["pods: 1 wanted, 0 of 0 left"],
            id="with a deadline",
        ),
        pytest.param(quota({"pods": "0"}, scopes=["Unheard-of"]), [pod()], [], id="a scope that is not known"),
    ],
)
def test_what_a_quota_says_of_pods(quota: corev1.ResourceQuota, pods: list[Raw], said: list[str]) -> None:
    assert [f"{each.resource}: {each.message}" for each in refused([quota], pods, [])] == said


@pytest.mark.parametrize(
    ("term", "counts"),
    [
        pytest.param({"namespaces": ["team-b"]}, True, id="names another namespace"),
        pytest.param({"namespaceSelector": {}}, True, id="or selects them"),
        pytest.param({}, False, id="its own"),
    ],
)
@pytest.mark.parametrize("preferred", [True, False])
def test_affinity_across_namespaces(term: Raw, counts: bool, preferred: bool) -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, **term}
    terms: Raw = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if preferred:
        terms = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    of = quota({"pods": "0"}, scopeSelector=scope("CrossNamespacePodAffinity"))
    assert bool([*refused([of], [pod(affinity={"podAntiAffinity": terms})], [])]) == counts


def test_groups_count_where_the_quota_has_no_scope() -> None:
    hard = {"count/podgroups.scheduling.x-k8s.io": "1"}
    [said] = refused([quota(hard)], [], [GROUP, GROUP])
    assert (said.quota, said.message) == ("team-a/q", "2 wanted, 1 of 1 left")
    assert [*refused([quota(hard, scopes=["BestEffort"])], [], [GROUP, GROUP])] == []


def test_sidecars_and_overhead_count_as_the_scheduler_counts_them() -> None:
    raw = pod(CPU, {"cpu": "5"}, overhead={"cpu": "100m"})
    raw["spec"]["initContainers"] = [
        {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}
    ]
    usage = usage_of(convert(raw, corev1.Pod))
    assert (usage["requests.cpu"], usage["cpu"], usage["limits.cpu"]) == (5100, 5100, 6000)


def test_each_namespace_is_asked_about_by_itself() -> None:
    mine = {"metadata": {"name": "a", "namespace": "team-a"}}
    assert by_namespace([pod(), mine]) == {"default": [pod()], "team-a": [mine]}
