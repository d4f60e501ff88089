"""Builders of the objects that tests speak of: `make_pod().name("a").req(cpu="1").obj()`.

Every call gives a new builder, so a half-built one can be shared by the rows of a table; `obj` gives the frozen struct,
through the same decoding as an object from the API server. kube-scheduler: pkg/scheduler/testing/wrappers.go
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from extender.api import corev1, policyv1, schedulingv1alpha1
from extender.api.codec import convert
from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo

T = TypeVar("T")

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Json = dict[str, Any]


def requests(amounts: Mapping[str, str | int]) -> dict[str, str]:
    """Keywords to resource names: `ephemeral_storage` and `cpu`; others come in a mapping as they are."""
    return {name.replace("_", "-") if "/" not in name else name: str(amount) for name, amount in amounts.items()}


def selector(labels: Mapping[str, str] | None = None, *expressions: tuple[str, str, Sequence[str]]) -> Json:
    """A label selector: equalities, and (key, operator, values)."""
    return {
        "matchLabels": dict(labels or {}),
        "matchExpressions": [{"key": key, "operator": op, "values": list(vs)} for key, op, vs in expressions],
    }


class Builder(Generic[T]):
    """An object under construction, in JSON spelling."""

    _type: type[T]

    def __init__(self, value: Json | None = None) -> None:
        self._value: Json = value if value is not None else {"metadata": {}}

    def _with(self, change: Callable[[Json], object]) -> Self:
        value = copy.deepcopy(self._value)
        change(value)
        return type(self)(value)

    def _meta(self, key: str, value: Any) -> Self:
        return self._with(lambda o: o["metadata"].update({key: value}))

    def _in(self, part: str, key: str, value: Any) -> Self:
        """Sets a field of `spec` or `status`."""
        return self._with(lambda o: o.setdefault(part, {}).update({key: value}))

    def _append(self, part: str, key: str, *values: Any) -> Self:
        return self._with(lambda o: o.setdefault(part, {}).setdefault(key, []).extend(values))

    def name(self, name: str) -> Self:
        return self._meta("name", name)

    def uid(self, uid: str) -> Self:
        return self._meta("uid", uid)

    def namespace(self, namespace: str) -> Self:
        return self._meta("namespace", namespace)

    def label(self, key: str, value: str) -> Self:
        return self._with(lambda o: o["metadata"].setdefault("labels", {}).update({key: value}))

    def labels(self, labels: Mapping[str, str]) -> Self:
        return self._meta("labels", dict(labels))

    def annotation(self, key: str, value: str) -> Self:
        return self._with(lambda o: o["metadata"].setdefault("annotations", {}).update({key: value}))

    def created(self, when: str) -> Self:
        """RFC 3339."""
        return self._meta("creationTimestamp", when)

    def terminating(self, when: str = "2026-01-01T00:00:00Z") -> Self:
        return self._meta("deletionTimestamp", when)

    def owner(self, kind: str, name: str, api_version: str = "apps/v1") -> Self:
        """The controller."""
        reference = {"kind": kind, "name": name, "uid": name, "apiVersion": api_version, "controller": True}
        return self._with(lambda o: o["metadata"].setdefault("ownerReferences", []).append(reference))

    def json(self) -> Json:
        """As a client would send it."""
        return copy.deepcopy(self._value)

    def obj(self) -> T:
        return convert(self._value, self._type)


class PodBuilder(Builder[corev1.Pod]):
    _type = corev1.Pod

    def obj(self) -> corev1.Pod:
        """Namespace `default`, and the UID its name, where nothing else was said."""
        value = self.json()
        value["metadata"].setdefault("namespace", "default")
        value["metadata"].setdefault("uid", value["metadata"].get("name", ""))
        return convert(value, corev1.Pod)

    def info(self) -> PodInfo:
        return PodInfo(self.obj())

    # Where, by which scheduler, how soon

    def node(self, name: str) -> Self:
        return self._in("spec", "nodeName", name)

    def scheduler_name(self, name: str) -> Self:
        return self._in("spec", "schedulerName", name)

    def priority(self, priority: int) -> Self:
        return self._in("spec", "priority", priority)

    def preemption_policy(self, policy: str) -> Self:
        return self._in("spec", "preemptionPolicy", policy)

    def scheduling_gates(self, *names: str) -> Self:
        return self._append("spec", "schedulingGates", *({"name": name} for name in names))

    def pod_group(self, name: str) -> Self:
        return self.label(POD_GROUP_LABEL, name)

    def nominated_node_name(self, name: str) -> Self:
        return self._in("status", "nominatedNodeName", name)

    def phase(self, phase: str) -> Self:
        return self._in("status", "phase", phase)

    def start_time(self, when: str) -> Self:
        return self._in("status", "startTime", when)

    def condition(self, type_: str, status: str, reason: str = "") -> Self:
        return self._append("status", "conditions", {"type": type_, "status": status, "reason": reason})

    # What it asks for

    def req(self, amounts: Mapping[str, str | int] | None = None, **more: str | int) -> Self:
        """One more container with these requests."""
        return self.container(resources={"requests": requests({**(amounts or {}), **more})})

    def container(self, image: str = "", **fields: Any) -> Self:
        """fields: as in JSON."""
        count = len(self._value.get("spec", {}).get("containers", ()))
        return self._append("spec", "containers", {"name": f"con{count}", "image": image, **fields})

    def init_req(self, amounts: Mapping[str, str | int] | None = None, **more: str | int) -> Self:
        return self._init({"resources": {"requests": requests({**(amounts or {}), **more})}})

    def sidecar_req(self, amounts: Mapping[str, str | int] | None = None, **more: str | int) -> Self:
        resources = {"requests": requests({**(amounts or {}), **more})}
        return self._init({"resources": resources, "restartPolicy": "Always"})

    def _init(self, fields: Json) -> Self:
        count = len(self._value.get("spec", {}).get("initContainers", ()))
        return self._append("spec", "initContainers", {"name": f"init{count}", **fields})

    def pod_level_req(self, amounts: Mapping[str, str | int] | None = None, **more: str | int) -> Self:
        return self._in("spec", "resources", {"requests": requests({**(amounts or {}), **more})})

    def overhead(self, amounts: Mapping[str, str | int] | None = None, **more: str | int) -> Self:
        return self._in("spec", "overhead", requests({**(amounts or {}), **more}))

    def host_port(self, port: int, protocol: str = "TCP", host_ip: str = "") -> Self:
        one = {"containerPort": port, "hostPort": port, "protocol": protocol, "hostIP": host_ip}
        return self.container(ports=[one])

    def pvc(self, claim: str, *, read_only: bool = False) -> Self:
        source = {"claimName": claim, "readOnly": read_only}
        return self.volume(claim, persistentVolumeClaim=source)

    def volume(self, name: str, **source: Any) -> Self:
        """source: as in JSON, such as gcePersistentDisk={...}."""
        return self._append("spec", "volumes", {"name": name, **source})

    # Where it may and would like to run

    def node_selector(self, labels: Mapping[str, str]) -> Self:
        return self._in("spec", "nodeSelector", dict(labels))

    def toleration(self, key: str = "", value: str = "", effect: str = "", operator: str = "") -> Self:
        one = {"key": key, "value": value, "effect": effect, "operator": operator}
        return self._append("spec", "tolerations", one)

    def node_affinity_in(self, key: str, values: Sequence[str], *, field: bool = False) -> Self:
        """One more required term."""
        return self.node_affinity_term((key, "In", values), field=field)

    def node_affinity_term(self, *requirements: tuple[str, str, Sequence[str]], field: bool = False) -> Self:
        """One more required term of (key, operator, values); field: of matchFields."""
        term = _node_term(requirements, field)

        def change(value: Json) -> None:
            affinity = value.setdefault("spec", {}).setdefault("affinity", {}).setdefault("nodeAffinity", {})
            affinity.setdefault(REQUIRED, {}).setdefault("nodeSelectorTerms", []).append(term)

        return self._with(change)

    def preferred_node_affinity(self, weight: int, *requirements: tuple[str, str, Sequence[str]]) -> Self:
        term = {"weight": weight, "preference": _node_term(requirements, False)}

        def change(value: Json) -> None:
            affinity = value.setdefault("spec", {}).setdefault("affinity", {}).setdefault("nodeAffinity", {})
            affinity.setdefault(PREFERRED, []).append(term)

        return self._with(change)

    def pod_affinity(self, topology_key: str, label_selector: Json | None = None, **fields: Any) -> Self:
        return self._pod_term("podAffinity", REQUIRED, _pod_term(topology_key, label_selector, fields))

    def pod_anti_affinity(self, topology_key: str, label_selector: Json | None = None, **fields: Any) -> Self:
        return self._pod_term("podAntiAffinity", REQUIRED, _pod_term(topology_key, label_selector, fields))

    def preferred_pod_affinity(
        self, weight: int, topology_key: str, label_selector: Json | None = None, **fields: Any
    ) -> Self:
        term = {"weight": weight, "podAffinityTerm": _pod_term(topology_key, label_selector, fields)}
        return self._pod_term("podAffinity", PREFERRED, term)

    def preferred_pod_anti_affinity(
        self, weight: int, topology_key: str, label_selector: Json | None = None, **fields: Any
    ) -> Self:
        term = {"weight": weight, "podAffinityTerm": _pod_term(topology_key, label_selector, fields)}
        return self._pod_term("podAntiAffinity", PREFERRED, term)

    def _pod_term(self, which: str, kind: str, term: Json) -> Self:
        def change(value: Json) -> None:
            affinity = value.setdefault("spec", {}).setdefault("affinity", {})
            affinity.setdefault(which, {}).setdefault(kind, []).append(term)

        return self._with(change)

    def spread_constraint(
        self,
        max_skew: int,
        topology_key: str,
        when_unsatisfiable: str = "DoNotSchedule",
        label_selector: Json | None = None,
        **fields: Any,
    ) -> Self:
        constraint = {
            "maxSkew": max_skew,
            "topologyKey": topology_key,
            "whenUnsatisfiable": when_unsatisfiable,
            "labelSelector": label_selector,
            **fields,
        }
        return self._append("spec", "topologySpreadConstraints", constraint)


def _node_term(requirements: Sequence[tuple[str, str, Sequence[str]]], field: bool) -> Json:
    rows = [{"key": key, "operator": operator, "values": list(values)} for key, operator, values in requirements]
    return {"matchFields" if field else "matchExpressions": rows}


def _pod_term(topology_key: str, label_selector: Json | None, fields: Json) -> Json:
    return {"topologyKey": topology_key, "labelSelector": label_selector, **fields}


class NodeBuilder(Builder[corev1.Node]):
    _type = corev1.Node

    def capacity(self, amounts: Mapping[str, str | int] | None = None, **more: str | int) -> Self:
        """Capacity and allocatable alike; 32 pods where nothing is said of pods, as Go's MakeNode has it."""
        resources = requests({"pods": 32, **(amounts or {}), **more})
        return self._in("status", "capacity", resources)._in("status", "allocatable", resources)

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        return self._append("spec", "taints", {"key": key, "value": value, "effect": effect})

    def unschedulable(self) -> Self:
        return self._in("spec", "unschedulable", True)

    def image(self, name: str, size: int) -> Self:
        return self._append("status", "images", {"names": [name], "sizeBytes": size})

    def condition(self, type_: str, status: str) -> Self:
        return self._append("status", "conditions", {"type": type_, "status": status})

    def zone(self, name: str) -> Self:
        return self.label(ZONE, name)

    def info(self, *pods: corev1.Pod) -> NodeInfo:
        return NodeInfo(self.obj(), (PodInfo(pod) for pod in pods))


class PodGroupBuilder(Builder[schedulingv1alpha1.PodGroup]):
    _type = schedulingv1alpha1.PodGroup

    def min_member(self, count: int) -> Self:
        return self._in("spec", "minMember", count)

    def min_resources(self, amounts: Mapping[str, str | int] | None = None, **more: str | int) -> Self:
        return self._in("spec", "minResources", requests({**(amounts or {}), **more}))

    def schedule_timeout_seconds(self, seconds: int) -> Self:
        return self._in("spec", "scheduleTimeoutSeconds", seconds)


class PodDisruptionBudgetBuilder(Builder[policyv1.PodDisruptionBudget]):
    _type = policyv1.PodDisruptionBudget

    def match(self, labels: Mapping[str, str]) -> Self:
        return self._in("spec", "selector", selector(labels))

    def disruptions_allowed(self, count: int) -> Self:
        return self._in("status", "disruptionsAllowed", count)


def make_pod() -> PodBuilder:
    return PodBuilder()


def make_node() -> NodeBuilder:
    return NodeBuilder()


def make_pod_group() -> PodGroupBuilder:
    return PodGroupBuilder({"metadata": {"namespace": "default"}})


def make_pdb() -> PodDisruptionBudgetBuilder:
    return PodDisruptionBudgetBuilder({"metadata": {"namespace": "default"}})
