"""manifests/gate: the policy that gates the pods of groups, the right to take the gate off, and what guards that right."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.e2e.api import PODS, Api, Json, Refused
from tests.e2e.cluster import GROUP_LABEL, Cluster
from tests.e2e.control_plane import MANIFESTS, SIDECAR, ControlPlane
from tests.e2e.processes import eventually

GATE = {"name": "scheduling.x-k8s.io/gang"}
OTHER = {"name": "example.com/quota"}
LWS = "leaderworkerset.sigs.k8s.io/group-key"
POD = "/api/v1/namespaces/default/pods/{}"
STRATEGIC = "application/strategic-merge-patch+json"


def gates(cluster: Cluster, name: str) -> list[Json]:
    found: list[Json] = cluster.api.get(POD.format(name))["spec"].get("schedulingGates", [])
    return found


def is_gated(cluster: Cluster, name: str, **spec: Any) -> bool:
    """Whether a pod of a group that is created now gets the gate; it is deleted again."""
    cluster.pod(name, group="probe", **spec)
    found = GATE in gates(cluster, name)
    cluster.delete_pod(name)
    return found


@pytest.fixture(scope="module")
def gate(plane: ControlPlane) -> Iterator[None]:
    """In force, and gone again: other modules' pods are not to be gated."""
    for overlay in ("sidecar", "gate", "gate"):  # the second time changes nothing
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
    cluster = Cluster(plane)
    eventually(lambda: is_gated(cluster, "probe"), within=20, what="the policy is in force", every=0.2)
    account = plane.api(SIDECAR)
    cluster.pod("probe")
    await_guard(account, "probe")
    cluster.delete_pod("probe")
    yield
    plane.kubectl("delete", "--ignore-not-found", "-k", str(MANIFESTS / "gate"))
    eventually(lambda: not is_gated(cluster, "probe"), within=20, what="the policy is gone", every=0.2)


def await_guard(account: Api, name: str) -> None:
    """A new policy is in force some seconds later; until then labels change, and what changes nothing is not refused."""
    values = count()
    eventually(
        lambda: is_refused(account, name, {"metadata": {"labels": {"a": f"{next(values)}"}}}),
        within=20,
        what="the guard is in force",
        every=0.2,
    )


def is_refused(account: Api, name: str, body: Any, code: int = 422) -> bool:
    try:
        account.call("PATCH", POD.format(name), body, STRATEGIC)
    except Refused as refused:
        return refused.code == code
    return False


@pytest.mark.parametrize(
    ("metadata", "spec", "expected"),
    [
        pytest.param({"labels": {GROUP_LABEL: "web"}}, {}, [GATE], id="a member of a PodGroup"),
        pytest.param(
            {
                "labels": {
                    "pod-group.scheduling.sigs.k8s.io/name": "web",
                    "pod-group.scheduling.sigs.k8s.io/min-available": "2",
                }
            },
            {},
            [GATE],
            id="a member of a group of labels",
        ),
        pytest.param({"labels": {"pod-group.scheduling.sigs.k8s.io": "web"}}, {}, [GATE], id="of Koordinator's object"),
        pytest.param({"annotations": {"gang.scheduling.koordinator.sh/name": "web"}}, {}, [GATE], id="by annotations"),
        pytest.param({"annotations": {"scheduling.k8s.io/group-name": "web"}}, {}, [GATE], id="of Volcano's object"),
        pytest.param({"annotations": {"a": "b"}}, {}, [], id="with another annotation"),
        pytest.param({"labels": {LWS: "web"}}, {}, [], id="by keys that are not configured"),
        pytest.param({"labels": {GROUP_LABEL: "web"}}, {"schedulingGates": [OTHER]}, [OTHER, GATE], id="beside others"),
        pytest.param({"labels": {GROUP_LABEL: "web"}}, {"schedulingGates": [GATE]}, [GATE], id="gated by the user"),
        pytest.param({"labels": {GROUP_LABEL: "web"}}, {"schedulerName": "other"}, [], id="another scheduler's"),
        pytest.param({"labels": {GROUP_LABEL: "web"}}, {"nodeName": "node-1"}, [], id="placed by its creator"),
        pytest.param({"labels": {"app": "web"}}, {}, [], id="in no group"),
        pytest.param({}, {}, [], id="without labels"),
    ],
)
@pytest.mark.usefixtures("gate")
def test_which_pods_get_the_gate(metadata: Json, spec: Json, expected: list[Json], cluster: Cluster) -> None:
    cluster.judged = True  # nothing schedules here
    body = {
        "metadata": {"name": "made", **metadata},
        "spec": {
            "schedulerName": "gang-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "a"}],
            **spec,
        },
    }
    cluster.api.create(PODS.format(namespace="default"), body)
    assert sorted(gates(cluster, "made"), key=str) == sorted(expected, key=str)


@pytest.mark.usefixtures("gate")
def test_members_by_keys_that_are_configured_get_the_gate(cluster: Cluster) -> None:
    """Nor is the policy the worse for a list that is left out."""
    cluster.judged = True
    path = "/api/v1/namespaces/kube-system/configmaps/gang-extender-gate"
    before = cluster.api.get(path)["data"]
    numbers = count()
    try:
        labels = before["groupLabels"] + LWS
        cluster.api.patch(path, {"data": {"groupLabels": labels, "groupAnnotations": None, "schedulingGroup": None}})
        eventually(
            lambda: _gated(cluster, f"made-{next(numbers)}", {LWS: "a"}), within=20, what="the list is read", every=0.2
        )
    finally:
        cluster.api.patch(path, {"data": before})
        eventually(
            lambda: not _gated(cluster, f"made-{next(numbers)}", {LWS: "a"}),
            within=20,
            what="the list is read again",
            every=0.2,
        )


def _gated(cluster: Cluster, name: str, labels: Json) -> bool:
    cluster.pod(name, labels=labels)
    found = GATE in gates(cluster, name)
    cluster.delete_pod(name)
    return found


@pytest.mark.usefixtures("gate")
def test_a_pod_of_a_group_that_names_no_scheduler_is_given_ours_and_the_gate(
    cluster: Cluster, plane: ControlPlane
) -> None:
    """manifests/scheduler-name, which brings the gate itself where it is told to: the gate's policy may come before it."""
    cluster.judged = True
    overlay, numbers = str(MANIFESTS / "scheduler-name"), count()
    for _ in range(2):  # the second time changes nothing
        plane.kubectl("apply", "--server-side", "-k", overlay)

    def made(labels: Json, scheduler: str = "default-scheduler") -> str:
        name = f"named-{next(numbers)}"
        cluster.pod(name, labels=labels, scheduler_name=scheduler)
        named = cluster.api.get(POD.format(name))["spec"]["schedulerName"]
        gated = GATE in gates(cluster, name)
        cluster.delete_pod(name)
        return f"{named}{' gated' if gated else ''}"

    ours, settings = "gang-scheduler gated", "/api/v1/namespaces/kube-system/configmaps/gang-extender-scheduler-name"
    try:
        eventually(
            lambda: made({GROUP_LABEL: "g"}) != "default-scheduler", within=20, what="the policy is in force", every=0.2
        )
        cluster.api.patch(settings, {"data": {"schedulingGate": GATE["name"], "groupAnnotations": None}})
        eventually(lambda: made({GROUP_LABEL: "g"}) == ours, within=20, what="the gate comes too", every=0.2)
        assert made({"app": "web"}) == "default-scheduler"
        assert made({GROUP_LABEL: "g"}, "other") == "other"
    finally:
        plane.kubectl("delete", "--ignore-not-found", "-k", overlay)
        eventually(lambda: made({GROUP_LABEL: "g"}) != ours, within=20, what="the policy is gone", every=0.2)


@pytest.mark.usefixtures("gate")
def test_the_extender_may_take_its_gate_off(cluster: Cluster) -> None:
    account = cluster.plane.api(SIDECAR)
    cluster.pod("web", group="web", schedulingGates=[OTHER])
    assert GATE in gates(cluster, "web")
    without = {"spec": {"schedulingGates": [{"$patch": "delete", **GATE}]}}
    account.call("PATCH", POD.format("web"), without, STRATEGIC)
    assert gates(cluster, "web") == [OTHER]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"spec": {"schedulingGates": [{"$patch": "delete", **OTHER}]}}, id="a foreign gate"),
        pytest.param({"spec": {"containers": [{"name": "main", "image": "evil"}]}}, id="an image"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, id="a label"),
        pytest.param({"metadata": {"labels": {GROUP_LABEL: None}}}, id="no group any more"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, id="an annotation"),
        pytest.param({"metadata": {"annotations": {"gang-extender.dev/wake": "1"}}}, id="the wake annotation"),
        pytest.param({"metadata": {"finalizers": ["example.com/stay"]}}, id="a finalizer"),
        pytest.param({"spec": {"nodeSelector": {"a": "b"}}}, id="a node selector"),
        pytest.param({"spec": {"activeDeadlineSeconds": 1}}, id="a deadline"),
        pytest.param({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, id="a toleration"),
    ],
)
@pytest.mark.usefixtures("gate")
def test_the_extender_may_change_nothing_else(body: Json, cluster: Cluster) -> None:
    account = cluster.plane.api(SIDECAR)
    cluster.pod("web", group="web", schedulingGates=[OTHER])
    with pytest.raises(Refused, match="the extender may") as refused:
        account.call("PATCH", POD.format("web"), body, STRATEGIC)
    assert refused.value.code == 422


@pytest.mark.usefixtures("gate")
def test_the_gates_can_be_taken_off_by_hand(cluster: Cluster) -> None:
    """The very lines of docs/operations.md."""
    text = (MANIFESTS.parent / "docs" / "operations.md").read_text()
    _, _, rest = text.partition("<!-- take the gates off -->\n```sh\n")
    lines, _, _ = rest.partition("```")
    assert "kubectl get pods" in lines
    for name in ("web-0", "web-1"):
        cluster.pod(name, group="web", schedulingGates=[OTHER])
    plane = cluster.plane
    kubectl = f'kubectl() {{ "{plane.binaries.kubectl}" --kubeconfig="{plane.kubeconfig()}" "$@"; }}\n'
    subprocess.run(["sh", "-eu", "-c", kubectl + lines], check=True, capture_output=True, timeout=60)
    assert [gates(cluster, name) for name in ("web-0", "web-1")] == [[OTHER], [OTHER]]
