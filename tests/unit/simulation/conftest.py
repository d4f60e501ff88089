"""A cluster in a few lines, simulated: objects go through files, as the command reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extender.config.types import KubeSchedulerConfiguration
from extender.framework.runtime.registry import Registry
from extender.simulation.clock import VirtualClock
from extender.simulation.cluster import load_cluster, whole_configuration
from extender.simulation.report import GangReport, PodReport, Report
from extender.simulation.simulate import DAY, Simulation

GROUP = "scheduling.x-k8s.io/pod-group"
Json = dict[str, Any]


class World:
    """What is in the files. `run` simulates it; `report` is the last one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.objects: list[Json] = []
        self.configuration: KubeSchedulerConfiguration | None = None
        self.registry: Registry | None = None
        self.clock = VirtualClock()
        self.report: Report

    def add(self, kind: str, name: str, api_version: str = "v1", **fields: Any) -> None:
        meta = {"name": name, **fields.pop("metadata", {})}
        self.objects.append({"apiVersion": api_version, "kind": kind, "metadata": meta, **fields})

    def node(self, name: str, cpu: str = "4", labels: Json | None = None, **spec: Any) -> None:
        room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": name, **(labels or {})}
        self.add("Node", name, metadata={"labels": labels}, spec=spec, status={"allocatable": room})

    def pod(self, name: str, cpu: str = "1", group: str = "", **spec: Any) -> None:
        labels = {GROUP: group} if group else {}
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        self.add("Pod", name, metadata={"labels": labels}, spec={"containers": [container], **spec})

    def pod_group(self, name: str, min_member: int, **spec: Any) -> None:
        self.add("PodGroup", name, "scheduling.x-k8s.io/v1alpha1", spec={"minMember": min_member, **spec})

    def priority_class(self, name: str, value: int) -> None:
        self.add("PriorityClass", name, "scheduling.k8s.io/v1", value=value)

    def written(self, objects: Json) -> str:
        return json.dumps(objects)

    def run(self, seed: int = 0, until: float = DAY) -> Report:
        file = self._folder / "cluster.json"
        file.write_text(self.written({"apiVersion": "v1", "kind": "List", "items": self.objects}))
        clock = self.clock = VirtualClock()
        cluster = load_cluster([file], clock.text)
        configuration = self.configuration or whole_configuration(cluster, None)
        self.report = Simulation(cluster, configuration, clock, seed=seed, registry=self.registry).run(until)
        return self.report

    def of(self, name: str) -> PodReport:
        return next(pod for pod in self.report.pods if pod.name == name)

    def gang(self, name: str) -> GangReport:
        return next(gang for gang in self.report.gangs if gang.group == name)

    def states(self) -> Json:
        return dict(self.report.summary)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


Make = Callable[[World], None]
