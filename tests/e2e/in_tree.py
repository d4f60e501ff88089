"""A control plane that serves kube-scheduler's own PodGroups, in the version of its release, and builders for them.

Used by test_in_tree_groups, on every release, and by test_composite_pod_groups, on the API server of 1.37.
The kube-scheduler knows nothing of them: its gates are off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Json, Refused
from tests.e2e.build import Binaries, in_ci
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import BINARIES, COMPOSITES, NO_COMPOSITES
from tests.e2e.control_plane import MANIFESTS, SCHEDULER_NAME, SIDECAR, ControlPlane, version_of
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

GROUP = "scheduling.k8s.io"
GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling")  # without its gate the API server drops a field
GATES_1_36 = ("GangScheduling", "WorkloadAwarePreemption")
GATES_1_37 = ("CompositePodGroup", "PodGroupPreemptionPolicy")
SETTINGS = {
    "profiles": [
        {
            "schedulerName": SCHEDULER_NAME,
            "pluginConfig": [{"name": "Coscheduling", "args": {"inTreePodGroups": True}}],
        }
    ]
}
OVERLAYS = ("crd", "rbac", "in-tree-groups", "preemption")
WORKLOAD = "serve"  # what made the groups; there need not be such an object


def has_composites(binaries: Binaries) -> bool:
    return version_of(binaries.kube_apiserver) >= (1, 37)


@contextmanager
def in_tree_plane(request: pytest.FixtureRequest, folder: Path, *, composites: bool = False) -> Iterator[ControlPlane]:
    """In place of the one that all others share. composites: with an API server that serves them; skipped where there is none."""
    stash = request.config.stash
    if BINARIES not in stash:
        pytest.skip("no control plane")
    if composites and (reason := stash.get(NO_COMPOSITES, "")):
        if in_ci():
            pytest.fail(f"where CI=true this must run: {reason}", pytrace=False)
        pytest.skip(reason)
    binaries = stash[COMPOSITES] if composites else stash[BINARIES]
    newer = has_composites(binaries)
    versions = ("v1beta1", "v1alpha3") if newer else ("v1alpha2",)
    gates = (*GATES, *(GATES_1_37 if newer else GATES_1_36))
    flags = (
        f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}",
        f"--runtime-config={','.join(f'{GROUP}/{version}=true' for version in versions)}",
    )
    plane = ControlPlane(binaries, folder, flags)
    plane.in_tree_api = f"{GROUP}/{versions[0]}"
    try:
        plane.start()
        for overlay in (*OVERLAYS, *(() if plane.wakes_by_status else ("wake-by-annotation",))):
            plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
        yield plane
    finally:
        plane.stop()


def pair(plane: ControlPlane, folder: Path) -> Pair:
    """With the rights that the manifests give, and no others. Not started yet."""
    return Pair.of(plane, folder, token=SIDECAR, settings=SETTINGS)


class Groups:
    """PodGroups of the cluster's own version, and CompositePodGroups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.api_version = cluster.plane.in_tree_api
        self.newer = self.api_version.endswith("v1beta1")
        self.scheduled = "PodGroupInitiallyScheduled" if self.newer else "PodGroupScheduled"
        self.min_counts: dict[str, int] = {}  # namespace/name -> as it was last

    def _path(self, api_version: str, kind: str) -> str:
        return f"/apis/{api_version}/namespaces/default/{kind.lower()}s"

    def create(self, name: str, minimum: int, *, level: str = "", parent: str = "", **spec: Any) -> None:
        """level: the node label of its topology constraint. parent: the CompositePodGroup that it is a group of."""
        body = {"schedulingPolicy": {"gang": {"minCount": minimum}}, **_constraint(level), **spec}
        if parent:
            body |= {"parentCompositePodGroupName": parent, "workloadRef": _made_from("group")}
        self._create(self.api_version, "PodGroup", name, body)
        self.min_counts[f"default/{name}"] = minimum

    def composite(self, name: str, minimum: int, *, level: str = "", parent: str = "", **spec: Any) -> None:
        body = {"schedulingPolicy": {"gang": {"minGroupCount": minimum}}, **_constraint(level), **spec}
        body["workloadRef"] = _made_from(name)
        if parent:
            body["parentCompositePodGroupName"] = parent
        self._create(f"{GROUP}/v1alpha3", "CompositePodGroup", name, body)

    def _create(self, api_version: str, kind: str, name: str, spec: Json) -> None:
        body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self._cluster.create(self._path(api_version, kind), body)

    def change_min_count(self, name: str, minimum: int) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        self._cluster.api.patch(f"{self._path(self.api_version, 'PodGroup')}/{name}", {"spec": spec})
        self.min_counts[f"default/{name}"] = minimum

    def change_composite(self, name: str, **spec: Any) -> None:
        """Raises Refused for a field that may not change."""
        self._cluster.api.patch(f"{self._path(f'{GROUP}/v1alpha3', 'CompositePodGroup')}/{name}", {"spec": spec})

    def delete_composite(self, name: str) -> None:
        path = f"{self._path(f'{GROUP}/v1alpha3', 'CompositePodGroup')}/{name}"
        self._cluster.api.delete(path)
        with suppress(Refused):  # it is gone
            self._cluster.api.patch(path, {"metadata": {"finalizers": None}})

    def disrupted(self, *, whole: bool) -> Json:
        """The field disruptionMode of this version."""
        if self.newer:
            return {"disruptionMode": {"all": {}} if whole else {"single": {}}}
        return {"disruptionMode": "PodGroup" if whole else "Pod"}

    def members(self, group: str, count: int, first: int = 0, *, cpu: str = "1", **more: Any) -> list[str]:
        names = [f"{group}-{number}" for number in range(first, first + count)]
        for name in names:
            self._cluster.pod(name, schedulingGroup={"podGroupName": group}, requests={"cpu": cpu}, **more)
        return names

    def condition(self, group: str, type_: str = "") -> Json:
        """Of this type, by default the one that says whether it has been scheduled; empty where there is none."""
        found = self._cluster.api.get(f"{self._path(self.api_version, 'PodGroup')}/{group}")
        conditions = found.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == (type_ or self.scheduled)), {})

    def await_condition(self, group: str, status: str, reason: str, type_: str = "", text: str = "") -> None:
        def said() -> bool:
            known = self.condition(group, type_)
            return (known.get("status"), known.get("reason")) == (status, reason) and text in known["message"]

        eventually(said, within=10 + self._cluster.patience, what=f"{group} is told {status} {reason} {text}")

    def end(self) -> None:
        """No history may show a fraction of these groups either."""
        try:
            assert self._cluster.violations(known=self.min_counts) == []
        finally:
            self._cluster.delete_all_pods()
            self._clean()

    def _clean(self) -> None:
        """With the finalizer that admission gives each PodGroup, and that a controller takes off which does not run here."""
        kinds = [(self.api_version, "PodGroup"), *([(f"{GROUP}/v1alpha3", "CompositePodGroup")] if self.newer else [])]
        for path in (self._path(*each) for each in kinds):
            self._cluster.api.delete(path)
            for left in self._cluster.api.items(path):
                self._cluster.api.patch(f"{path}/{left['metadata']['name']}", {"metadata": {"finalizers": None}})
            assert self._cluster.api.items(path) == []


def _constraint(level: str) -> Json:
    return {"schedulingConstraints": {"topology": [{"key": level}]}} if level else {}


def _made_from(template: str) -> Json:
    return {"workloadName": WORKLOAD, "templateName": template}
