"""The API in memory does with objects what the real server does."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from extender.api.codec import DecodeError
from extender.api.quantity import parse_quantity
from extender.client.embedded import EmbeddedAPI
from extender.client.embedded.defaults import with_pod_defaults
from extender.client.embedded.load import load_files
from extender.client.errors import AlreadyExistsError, ConflictError, ForbiddenError, GoneError, NotFoundError
from extender.client.interface import NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, EventType, PatchType, Preconditions


def test_a_watch_tells_what_comes_changes_and_leaves_the_selection() -> None:
    api = EmbeddedAPI()
    watch = iter(api.watch(PODS, field_selector="status.phase!=Failed", resource_version="0"))
    pod = api.create(PODS, {"metadata": {"name": "p"}})
    api.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    api.patch(PODS, "p", {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
    api.create(PODS, {"metadata": {"name": "q"}})
    seen = [next(watch) for _ in range(4)]
    assert [event.type for event in seen] == [
        EventType.ADDED,
        EventType.MODIFIED,
        EventType.DELETED,
        EventType.ADDED,
    ]
    assert seen[0].object == pod


def test_a_version_out_of_the_window_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.embedded.history.WINDOW", 2)
    api = EmbeddedAPI()
    api._history._changes = type(api._history._changes)(maxlen=2)
    for index in range(4):
        api.create(NODES, {"metadata": {"name": f"n{index}"}})
    with pytest.raises(GoneError):
        next(iter(api.watch(NODES, resource_version="1")))


def test_a_quiet_watch_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.embedded.history.BOOKMARK_SECONDS", 0.01)
    event = next(iter(EmbeddedAPI().watch(NODES)))
    assert (event.type, event.object) == (EventType.BOOKMARK, None)


def test_lists_come_in_pages() -> None:
    api = EmbeddedAPI()
    for index in range(5):
        api.create(NODES, {"metadata": {"name": f"n{index}"}})
    first = api.list_page(NODES, limit=2)
    second = api.list_page(NODES, limit=2, continue_token=first.next)
    last = api.list_page(NODES, limit=2, continue_token=second.next)
    assert [len(page.items) for page in (first, second, last)] == [2, 2, 1]
    assert last.next == ""


def test_names_are_unique_and_uids_are_preconditions() -> None:
    api = EmbeddedAPI()
    pod = api.create(PODS, {"metadata": {"name": "p"}})
    with pytest.raises(AlreadyExistsError):
        api.create(PODS, {"metadata": {"name": "p"}})
    with pytest.raises(ConflictError, match=pod.uid):
        api.delete(PODS, "p", "default", preconditions=Preconditions(uid="another"))
    with pytest.raises(ConflictError, match=pod.uid):
        api.patch(PODS, "p", {"metadata": {"uid": "another"}}, namespace="default")
    api.delete(PODS, "p", "default", dry_run=True)
    api.delete(PODS, "p", "default", preconditions=Preconditions(uid=pod.uid))
    with pytest.raises(NotFoundError):
        api.get(PODS, "p", "default")


def test_conditions_are_merged_by_type_and_status_is_a_world_of_its_own() -> None:
    api = EmbeddedAPI()
    api.create(PODS, {"metadata": {"name": "p"}})
    for kind in ("A", "B", "A"):
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}, "spec": {"nodeName": "ignored"}}
        pod = api.patch(PODS, "p", body, namespace="default", subresource="status", patch_type=PatchType.STRATEGIC)
    assert [condition.type for condition in pod.status.conditions] == ["A", "B"]
    assert pod.node_name == ""
    gated = api.create(PODS, {"metadata": {"name": "g"}, "spec": {"schedulingGates": [{"name": "x"}, {"name": "y"}]}})
    body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "x"}]}}
    freed = api.patch(PODS, "g", body, namespace="default", patch_type=PatchType.STRATEGIC)
    assert [gate.name for gate in gated.spec.scheduling_gates] == ["x", "y"]
    assert [gate.name for gate in freed.spec.scheduling_gates] == ["y"]


def test_a_priority_class_gives_its_value_and_has_to_exist() -> None:
    api = EmbeddedAPI()
    with pytest.raises(ForbiddenError, match="no PriorityClass with name high"):
        api.create(PODS, {"metadata": {"name": "p"}, "spec": {"priorityClassName": "high"}})
    api.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    pod = api.create(PODS, {"metadata": {"name": "p"}, "spec": {"priorityClassName": "high"}})
    assert (pod.priority, pod.spec.preemption_policy) == (7, "Never")


@pytest.mark.parametrize(
    ("spec", "scheduler"),
    [
        pytest.param({}, "default-scheduler", id="not named"),
        pytest.param({"schedulerName": ""}, "default-scheduler", id="named by an empty text"),
        pytest.param({"schedulerName": "other"}, "other", id="named"),
    ],
)
def test_a_pod_s_scheduler_is_the_default_one_unless_it_names_another(spec: dict[str, str], scheduler: str) -> None:
    """`simulate` had no profile for the empty name, and ended. Go: SetDefaults_PodSpec"""
    assert EmbeddedAPI().create(PODS, {"metadata": {"name": "p"}, "spec": spec}).spec.scheduler_name == scheduler


LIMIT = {"limits": {"nvidia.com/gpu": "8"}}


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        (LIMIT, {"nvidia.com/gpu": "8"}),
        ({**LIMIT, "requests": {"cpu": "1"}}, {"nvidia.com/gpu": "8", "cpu": "1"}),
        ({**LIMIT, "requests": {"nvidia.com/gpu": "2"}}, {"nvidia.com/gpu": "2"}),
    ],
    ids=["a limit alone", "another request", "a request of its own"],
)
def test_a_limit_is_a_request_where_there_is_none(
    resources: dict[str, dict[str, str]], requests: dict[str, str]
) -> None:
    container = {"name": "main", "resources": resources}
    for kind in ("containers", "initContainers"):
        pod = EmbeddedAPI().create(PODS, {"metadata": {"name": "p"}, "spec": {kind: [container]}})
        (made,) = pod.spec.containers if kind == "containers" else pod.spec.init_containers
        assert made.resources is not None
        assert made.resources.requests == {name: parse_quantity(amount) for name, amount in requests.items()}


@pytest.mark.parametrize(
    ("asked", "requests"),
    [({}, {"cpu": "4"}), ({"requests": {"cpu": "1"}}, None)],
    ids=["no container has a request", "a container has one"],
)
def test_a_limit_of_the_whole_pod_is_a_request_where_no_container_has_one(
    asked: dict[str, dict[str, str]], requests: dict[str, str] | None
) -> None:
    spec = {"resources": {"limits": {"cpu": "4"}}, "containers": [{"name": "main", "resources": asked}]}
    pod = EmbeddedAPI().create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert pod.spec.resources is not None
    made = {name: str(amount.value) for name, amount in (pod.spec.resources.requests or {}).items()}
    assert made == (requests or {})


def test_ports_on_the_node_s_own_network_are_those_of_the_node() -> None:
    container = {"name": "main", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}]}
    api = EmbeddedAPI()
    for name, host, ports in (("p", True, [80, 82]), ("q", False, [0, 82])):
        pod = api.create(PODS, {"metadata": {"name": name}, "spec": {"hostNetwork": host, "containers": [container]}})
        assert [port.host_port for port in pod.spec.containers[0].ports] == ports


def test_a_kind_that_is_not_served_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        EmbeddedAPI(absent=[POD_GROUPS]).list_page(POD_GROUPS)


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
"""


def test_files_make_a_cluster_with_the_pods_of_its_workloads(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(DEPLOYMENT)
    api = EmbeddedAPI()
    loaded = load_files(api, [file])
    assert (loaded.created, loaded.ignored) == ({"Node": 1, "Pod": 3}, {"ConfigMap": 1})
    names = [pod.name for pod in api.list_page(PODS).items]
    assert all(name.startswith("nginx-") and len(name) == len("nginx-") + 9 + 6 for name in names)
    assert api.get(NODES, "n1").status.allocatable["cpu"].milli_value == 4000


def test_all_pods_of_a_workload_are_made_where_none_would_run_for_others_to_come(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {replicas: 2}\n")
    api = EmbeddedAPI()
    load_files(api, [file])
    assert [pod.name for pod in api.list_page(PODS).items] == ["db-0", "db-1"]


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n"
UNKNOWN = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
---
apiVersion: batch.example.com/v1alpha1
kind: Job
metadata: {name: named-as-one-that-is-known}
spec: {tasks: [{replicas: 3}]}
---
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: not-ours}
---
apiVersion: scheduling.k8s.io/v1
kind: PodGroup
metadata: {name: of-a-later-release}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSetList
items: [{metadata: {name: a}}, {metadata: {name: b}}]
"""


def test_kinds_that_are_not_known_are_left_out_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(NODE + UNKNOWN)
    api = EmbeddedAPI()
    loaded = load_files(api, [file])
    assert loaded.created == {"Node": 1}
    assert loaded.unknown == {
        "kubeflow.org/v1 PyTorchJob": 1,
        "batch.example.com/v1alpha1 Job": 1,
        "scheduling.run.ai/v2alpha2 PodGroup": 1,
        "scheduling.k8s.io/v1 PodGroup": 1,
        "jobset.x-k8s.io/v1alpha2 JobSet": 2,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("kind: Pod\n  bad: indent", "cluster.yaml:2: mapping values are not allowed", id="no YAML"),
        pytest.param("a: 1\na: 2", "cluster.yaml:2: duplicate key 'a'", id="a key that stands twice"),
        pytest.param("[1, 2]", "cluster.yaml:1: $.kind: an object with apiVersion and kind is wanted", id="a list"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: 1}",
            "cluster.yaml:1: Expected `str`, got `int` - at `$.metadata.name`",
            id="a wrong type",
        ),
        pytest.param(
            "---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\napiVersion: v1\nkind: Pod\n"
            "metadata: {name: p}\nspec: {overhead: {cpu: ten}}",
            "cluster.yaml:6: ",
            id="a bad quantity in the second document",
        ),
        pytest.param(
            "apiVersion: example.com/v1\nkind: Widget",
            "cluster.yaml:1: $.kind: example.com/v1 Widget is not known here",
            id="an unknown kind, and nothing else",
        ),
        pytest.param(
            NODE + "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget",
            "cluster.yaml:5: $.kind: policy/v1beta1 PodDisruptionBudget is not known here; policy/v1 is",
            id="another version of a kind that is known",
        ),
        pytest.param(
            NODE + "apiVersion: apps/v1beta2\nkind: Deployment",
            "cluster.yaml:5: $.kind: apps/v1beta2 Deployment is not known here; apps/v1 is",
            id="another version of a workload",
        ),
        pytest.param(
            NODE + "kind: Widget",
            "cluster.yaml:5: $.kind: (no apiVersion) Widget is not known here",
            id="no version at all",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: many}",
            "$.spec.replicas: a number of 0 or more is wanted, got 'many'",
            id="replicas that are no number",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place_and_nothing_is_made(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    api = EmbeddedAPI()
    with pytest.raises(DecodeError) as raised:
        load_files(api, [file])
    assert message in str(raised.value)
    assert list(api.list_page(NODES).items) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": 5, "resources": {"limits": {"cpu": "1"}}},
        {"containers": [5, {"resources": 5}, {"resources": {"limits": {"cpu": "1"}, "requests": ["cpu"]}}]},
        {"containers": [{"ports": 5}, {"ports": [5, {}]}], "hostNetwork": True},
        {"resources": {"limits": 5, "requests": 5}},
        {"resources": {"limits": {"cpu": "1"}, "requests": 5}},
    ],
)
def test_what_makes_no_sense_is_left_to_those_that_decode_the_pod(spec: dict[str, Any]) -> None:
    pod = {"metadata": {"name": "p"}, "spec": deepcopy(spec)}
    with_pod_defaults(pod, {})
    assert pod["status"] == {"phase": "Pending"}, "all defaults were set"
