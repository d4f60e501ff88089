"""A cluster that a test fills: nodes, pods, groups and priorities in a line each; emptied before the next test.

Used by every test here, through the `cluster` fixture. Without kubelets a bound pod stays Pending with a nodeName.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.e2e import api as paths
from tests.e2e.api import Api, Json, Refused
from tests.e2e.control_plane import MANIFESTS, SCHEDULER_NAME, ControlPlane
from tests.e2e.history import RECOVERY_SECONDS, Amounts, amounts, violations
from tests.e2e.node_objects import csi_node, node
from tests.e2e.processes import eventually
from tests.e2e.recorder import Recorder

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
CRD = MANIFESTS / "crd"
BUSY = 2.0  # seconds that a start may take longer: two tests at a time, and a back-off that ends only as kube-scheduler next looks
BACK_OFF = 12.0  # seconds that a kube-scheduler before 1.33 may let a pod serve before it tries it again


class Cluster:
    """Builders over the API, with the recorder of everything that happens."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.api: Api = plane.api()
        self.patience = BUSY if plane.wakes_by_status else BACK_OFF
        self.recorder = Recorder(self.api, self.patience)
        self.killed = False  # set by a test that kills a process: a commit may then take longer
        self.recovery = RECOVERY_SECONDS  # how long that may be, from when it is back
        self._restarts: list[float] = []
        self._nodes = 0
        self.excused: set[str] = set()  # pods that the test itself deletes
        self.judged = False  # set by a test that wants a bad history, and has looked at it itself

    def node(
        self,
        name: str,
        *,
        cpu: str = "64",
        memory: str = "256Gi",
        pods: int = 110,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """As its kubelet writes it, with the CSINode beside it: every second one has a driver. The amounts are allocatable."""
        room = {"cpu": cpu, "memory": memory, "pods": str(pods)}
        self._nodes += 1
        with_driver = self._nodes % 2 == 0
        made = self.api.create(paths.NODES, node(name, room, labels or {}, with_driver=with_driver))
        try:
            self.api.create(paths.CSI_NODES, csi_node(made, with_driver=with_driver))
        except Refused as refused:
            if refused.code != 409:  # one of this name was here before: nothing here would take its CSINode with it
                raise

    def namespace(self, name: str) -> None:
        with suppress(Refused):
            self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})

    def delete_namespace(self, name: str) -> None:
        """With its finalizer, which the namespace controller would take away, and none runs here: what was in it is still there."""
        path = f"/api/v1/namespaces/{name}"
        try:
            namespace = self.api.delete(path)
            self.api.call("PUT", f"{path}/finalize", {**namespace, "spec": {"finalizers": []}})
        except Refused as refused:
            if refused.code != 404:
                raise

    def pod_group(
        self,
        name: str,
        min_member: int,
        *,
        namespace: str = "default",
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        body = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name, "annotations": {**(annotations or {})}},
            "spec": {"minMember": min_member, "scheduleTimeoutSeconds": 10, **spec},
        }
        self.api.create(paths.POD_GROUPS.format(namespace=namespace), body)

    def change_min_member(self, name: str, min_member: int, *, namespace: str = "default") -> None:
        path = f"{paths.POD_GROUPS.format(namespace=namespace)}/{name}"
        self.api.patch(path, {"spec": {"minMember": min_member}})

    def annotate_pod_group(
        self, name: str, annotations: Mapping[str, str | None], *, namespace: str = "default"
    ) -> None:
        """None takes one away."""
        path = f"{paths.POD_GROUPS.format(namespace=namespace)}/{name}"
        self.api.patch(path, {"metadata": {"annotations": dict(annotations)}})

    def condition_of_group(self, name: str) -> tuple[str, str]:
        """Reason and message of the group's Scheduled condition; empty where there is none yet."""
        condition = self._scheduled(name)
        return condition.get("reason", ""), condition.get("message", "")

    def verdict_on_group(self, name: str) -> tuple[str, str]:
        """Likewise its status and reason."""
        condition = self._scheduled(name)
        return condition.get("status", ""), condition.get("reason", "")

    def _scheduled(self, name: str) -> Json:
        path = f"{paths.POD_GROUPS.format(namespace='default')}/{name}"
        conditions = self.api.get(path).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Scheduled"), {})

    def pod(
        self,
        name: str,
        *,
        group: str = "",
        labels: Mapping[str, str] | None = None,
        requests: Mapping[str, str] | None = None,
        priority: int = 0,
        preempts: bool = True,
        scheduler_name: str = SCHEDULER_NAME,
        namespace: str = "default",
        annotations: Mapping[str, str] | None = None,
        host_port: int = 0,
        **spec: Any,
    ) -> str:
        """Its UID."""
        resources = {"requests": requests or {}}
        container: Json = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
        if host_port:
            container["ports"] = [{"containerPort": host_port, "hostPort": host_port}]
        body: Json = {
            "metadata": {
                "name": name,
                "labels": {**({GROUP_LABEL: group} if group else {}), **(labels or {})},
                "annotations": {**(annotations or {})},
            },
            "spec": {
                "schedulerName": scheduler_name,
                "terminationGracePeriodSeconds": 0,  # there is no kubelet to confirm that it has ended
                "containers": [container],
                **spec,
            },
        }
        if priority:
            body["spec"]["priorityClassName"] = self.priority_class(priority, preempts=preempts)
        uid: str = self.create(paths.PODS.format(namespace=namespace), body)["metadata"]["uid"]
        return uid

    def create(self, path: str, body: Json) -> Json:
        """An object that may name a PriorityClass: admission hears of a new one a moment after it was made."""
        deadline = time.monotonic() + 5
        while True:
            try:
                return self.api.create(path, body)
            except Refused as refused:
                if "no PriorityClass" not in refused.message or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def priority_class(self, value: int, *, preempts: bool = True) -> str:
        name = f"priority-{value}" if preempts else f"priority-{value}-never"
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
        }
        try:
            self.api.create(paths.PRIORITY_CLASSES, body)
        except Refused as refused:
            if refused.code != 409:
                raise
        return name

    def delete_pod(self, name: str, *, namespace: str = "default", grace: int = 0) -> None:
        """grace: seconds that its kubelet may take to confirm that it has ended."""
        self.excused.add(f"{namespace}/{name}")
        self.api.delete(f"{paths.PODS.format(namespace=namespace)}/{name}", gracePeriodSeconds=grace)

    def delete_pod_group(self, name: str, *, namespace: str = "default") -> None:
        self.api.delete(f"{paths.POD_GROUPS.format(namespace=namespace)}/{name}")

    def events(self, name: str) -> list[str]:
        """The notes of the events about an object of this name, oldest first; those of earlier tests' pods do not count."""
        uids = {change.pod.uid for change in self.recorder.history()}
        mine = [
            event
            for event in self.api.items(paths.EVENTS.format(namespace="default"))
            if event["regarding"]["name"] == name
            and (event["regarding"].get("kind") != "Pod" or event["regarding"].get("uid") in uids)
        ]
        mine.sort(key=lambda event: str(event["metadata"]["creationTimestamp"]))
        return [f"{event['reason']}: {event.get('note', '')}" for event in mine]

    def violations(
        self,
        known: Mapping[str, int] | None = None,
        loose: Collection[str] = (),
        most: Mapping[str, Amounts] | None = None,
    ) -> list[str]:
        """What the history so far shows that it may not. known: the minMember of groups whose object is gone, or that was
        changed; loose: groups with the match policy once-satisfied; most: that nodes ever had, where that changed."""
        self.recorder.catch_up()
        now = {node["metadata"]["name"]: amounts(node["status"]["allocatable"]) for node in self.api.items(paths.NODES)}
        return violations(
            self.recorder.history(),
            {**self.min_members(), **(known or {})},
            {**now, **(most or {})},
            ended=time.monotonic(),
            killed=self.killed,
            recovery=self.recovery,
            restarts=self._restarts,
            excused=self.excused,
            loose=dict.fromkeys(loose, 0),
        )

    def await_back(self, start: Callable[[], object]) -> None:
        """Starts a program that the test has killed: a gang that was left half bound is to be whole soon after it is ready."""
        start()
        self._restarts.append(time.monotonic())

    def min_members(self) -> dict[str, int]:
        """namespace/name -> minMember of the groups that have an object."""
        groups = self.api.items(paths.ALL_POD_GROUPS) if self.has_crd() else []
        return {
            f"{group['metadata']['namespace']}/{group['metadata']['name']}": group.get("spec", {}).get("minMember", 1)
            for group in groups
        }

    def has_crd(self) -> bool:
        try:
            self.api.get(paths.ALL_POD_GROUPS)
        except Refused as refused:
            if refused.code not in (404, 429):  # 429: its storage is being made
                raise
            return False
        return True

    def install_crd(self, manifest: Path = CRD) -> None:
        """A new definition is served some 100 ms after it was made."""
        self.plane.kubectl("apply", "--server-side", "-k", str(manifest))
        eventually(self.has_crd, within=10, what="PodGroups are served")

    def remove_crd(self) -> None:
        self.plane.kubectl("delete", "--ignore-not-found", "-k", str(CRD))
        eventually(lambda: not self.has_crd(), within=10, what="PodGroups are served no longer")

    def delete_all_pods(self) -> None:
        """In one call a namespace, and waits until they are gone."""
        pods = [pod["metadata"] for pod in self.all_pods()]
        self.excused |= {f"{pod['namespace']}/{pod['name']}" for pod in pods}
        for namespace in {"default", *(pod["namespace"] for pod in pods)}:
            self.api.delete(paths.PODS.format(namespace=namespace))
        eventually(lambda: not self.all_pods(), within=15, what="all pods are gone")

    def all_pods(self) -> list[Json]:
        return self.api.items(paths.ALL_PODS)

    def clean(self) -> None:
        """Deletes what tests make, and waits until it is gone."""
        self.delete_all_pods()
        if self.has_crd():
            for namespace in {group["metadata"]["namespace"] for group in self.api.items(paths.ALL_POD_GROUPS)}:
                self.api.delete(paths.POD_GROUPS.format(namespace=namespace))
        self.api.delete(paths.EVENTS.format(namespace="default"))
        self.api.delete(paths.NODES)
        self.api.delete(paths.CSI_NODES)
        eventually(lambda: not self.api.items(paths.NODES), within=15, what="all nodes are gone")
