"""Pods of a SparkApplication, and the PodGroup that spark-operator makes for its batchScheduler: a driver, which makes the executors.

spark-operator: internal/scheduler, internal/controller/sparkapplication/submission.go, internal/webhook/sparkpod_defaulter.go
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from extender.api.quantity import QuantityError, parse_quantity
from extender.api.volcanov1beta1 import GROUP_NAME_ANNOTATION
from extender.client.embedded.workloads.section import Raw, Section
from extender.client.embedded.workloads.spark_conf import SparkConf
from extender.client.embedded.workloads.workload import (
    POD_GROUP_LABEL,
    After,
    Made,
    Workload,
    amounts,
    owner_reference,
    requests_of,
)
from extender.client.interface import VOLCANO_POD_GROUPS

VOLCANO, YUNIKORN = "volcano", "yunikorn"
KUEUE = "kueue.x-k8s.io/"  # labels that are not passed on
CONTAINERS = {
    "driver": ("spark-kubernetes-driver",),
    "executor": ("spark-kubernetes-executor", "executor"),
}
"""Role -> names of its Spark container in a pod template; the first container where there is none of them."""
_CPU = {"driver": ("cores", "coreLimit"), "executor": ("coreRequest", "cores", "coreLimit")}


def spark_application(workload: Workload) -> Iterator[Made]:
    spec = workload.spec
    if workload.suspended():
        return
    if (mode := spec.text("mode", "cluster")) != "cluster":
        workload.warn(f"the mode {mode} is not simulated, nor are its pods")
        return
    conf = SparkConf(workload, spec)
    labels, annotations = dict[str, str](), dict[str, str]()
    scheduler = spec.text("batchScheduler")
    if scheduler == VOLCANO:
        group = _of_volcano(workload, conf)
        annotations = {GROUP_NAME_ANNOTATION: group.object["metadata"]["name"]}
        yield group
    elif scheduler == YUNIKORN:
        workload.warn("its gang is YuniKorn's own, by annotations, and is not simulated")
    elif scheduler:
        yield workload.pod_group(1, name=f"{workload.name}-pg", minResources=_as_read_by_operator(conf))
        labels = {POD_GROUP_LABEL: f"{workload.name}-pg"}
    made = _Pods(workload, conf, labels, annotations)
    driver = made.driver()
    yield driver
    yield from made.executors(driver)


def _as_read_by_operator(conf: SparkConf) -> Raw:
    """minResources of scheduler-plugins' PodGroup. The operator takes Spark's sizes for quantities of Kubernetes: 512m is half a byte,
    4g is none and left out; of the overhead that alone counts which the object names."""
    total: dict[str, int] = {}
    for role, count in (("driver", 1), ("executor", conf.executors_by_operator())):
        section = conf.spec.section(role)
        cores = conf.conf.value.get(f"spark.{role}.cores") is None
        fields = {"cores": 1 if cores else None, "memory": "1g", **section.value}
        cpu = next((found for field in _CPU[role] if (found := _milli(fields.get(field))) is not None), None)
        memory, overhead = _milli(fields["memory"]), _milli(fields.get("memoryOverhead"))
        if cpu is not None:
            total["cpu"] = total.get("cpu", 0) + cpu * count
        if memory is not None:
            total["memory"] = total.get("memory", 0) + (memory + (overhead or 0)) * count
    return amounts(total)


def _milli(value: object) -> int | None:
    """None for what is no quantity."""
    try:
        return parse_quantity(str(value)).milli_value if value is not None else None
    except QuantityError:
        return None


def _of_volcano(workload: Workload, conf: SparkConf) -> Made:
    options = conf.spec.section("batchSchedulerOptions")
    parts = [_sized(conf, "driver", 1), _sized(conf, "executor", conf.executors_by_operator())]
    body: Raw = {"minMember": 1, "minResources": options.section("resources").value or requests_of(parts)}
    for field in ("queue", "priorityClassName"):
        body |= {field: options.text(field)} if options.text(field) else {}
    return workload.group(VOLCANO_POD_GROUPS, body, name=f"spark-{workload.name}-pg")


def _sized(conf: SparkConf, role: str, count: int) -> tuple[Section, int]:
    """Without limits, which ask for nothing here."""
    resources = {"requests": conf.resources(role)["requests"]}
    section = conf.spec.section(role)
    return Section(section.place, section.path, {"spec": {"containers": [{"resources": resources}]}}), count


class _Pods:
    """Of one application. labels, annotations: what its scheduler's adapter puts on them."""

    def __init__(
        self, workload: Workload, conf: SparkConf, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> None:
        self._workload, self._conf = workload, conf
        self._spec = workload.spec
        self._annotations = annotations
        self._digest = hashlib.sha256(f"{workload.namespace}/{workload.name}".encode()).hexdigest()[:32]
        own = workload.object.section("metadata").texts("labels")
        self._labels = {
            **{key: value for key, value in own.items() if not key.startswith(KUEUE)},
            **labels,
            "spark-app-name": workload.name,
            "spark-app-selector": f"spark-{self._digest}",
            "sparkoperator.k8s.io/app-name": workload.name,
            "sparkoperator.k8s.io/launched-by-spark-operator": "true",
        }

    def driver(self) -> Made:
        name = self._spec.section("driver").text("podName") or f"{self._workload.name}-driver"
        return self._pod("driver", name, self._pod_spec("driver"), owner=self._workload.owner)

    def executors(self, driver: Made) -> Iterator[Made]:
        """The driver makes them once it runs."""
        owner = owner_reference("v1", "Pod", self._workload.namespace, driver.object["metadata"]["name"])
        after, pod_spec = After((driver.key,)), self._pod_spec("executor")
        for index in range(1, self._conf.executors() + 1):
            name = f"{self._workload.name}-{self._digest[:16]}-exec-{index}"
            own = {"spark-exec-id": str(index)}
            yield self._pod("executor", name, pod_spec, own, owner=owner, after=after)

    def _pod(self, role: str, name: str, pod_spec: Raw, own: Mapping[str, str] | None = None, **made: Any) -> Made:
        section = self._spec.section(role)
        labels = {**self._labels, **section.texts("labels"), "spark-role": role, **(own or {})}
        annotations = {**section.texts("annotations"), **self._annotations}
        return self._workload.pod(
            section.section("template"), name, labels=labels, annotations=annotations, **made, **pod_spec
        )

    def _pod_spec(self, role: str) -> Raw:
        section = self._spec.section(role)
        template = section.section("template", "spec")
        selectors = [template, self._spec, section]
        found: Raw = {
            "containers": [*self._containers(role, section, template), *_objects(section, "sidecars")],
            "nodeSelector": {key: value for each in selectors for key, value in each.texts("nodeSelector").items()},
            "restartPolicy": "Never",
        }
        for field in ("tolerations", "initContainers"):
            found[field] = [*_objects(template, field), *_objects(section, field)]
        found["volumes"] = [*_objects(template, "volumes"), *self._mounted(section)]
        if scheduler := self._spec.text("batchScheduler") or section.text("schedulerName"):
            found["schedulerName"] = scheduler
        for field in ("affinity", "priorityClassName", "hostNetwork"):
            if section.value.get(field):
                found[field] = section.value[field]
        return found

    def _containers(self, role: str, section: Section, template: Section) -> list[Raw]:
        """Those of the template, with what Spark asks for in its own."""
        containers = _objects(template, "containers") or [{}]
        names = [container.get("name") for container in containers]
        place = next((names.index(name) for name in CONTAINERS[role] if name in names), 0)
        own = Section(template.place, f"{template.path}.containers[{place}]", containers[place])
        asked = self._conf.resources(role)
        resources = {
            **own.section("resources").value,
            **{part: {**own.section("resources", part).value, **asked[part]} for part in asked},
        }
        image = section.text("image") or self._spec.text("image")
        containers[place] = {
            "name": CONTAINERS[role][-1],
            **own.value,
            **({"image": image} if image else {}),
            "resources": resources,
        }
        return containers

    def _mounted(self, section: Section) -> Iterator[Raw]:
        """Volumes of the application that the role mounts."""
        mounts = {mount.text("name") for mount in section.sections("volumeMounts")}
        return (volume.value for volume in self._spec.sections("volumes") if volume.text("name") in mounts)


def _objects(section: Section, name: str) -> list[Raw]:
    return [each.value for each in section.sections(name)]
