"""Random changes of pods and nodes, and the pods refused before them: what queueing hints are compared on.

The same seed gives the same cases. The vocabulary is small, so that things meet. Answers of the real plugins to them
are in data/hint_answers.json, recorded by record_hints.
"""

from __future__ import annotations

import copy
import hashlib
import json
from random import Random
from typing import Any

Json = dict[str, Any]

PLUGINS = (
    "InterPodAffinity",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "PodTopologySpread",
    "SchedulingGates",
    "TaintToleration",
)
TOPOLOGIES = ("zone", "rack", "host")
TAINTS = ("k1", "k2", "node.kubernetes.io/unschedulable")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
REQUESTS = {
    "cpu": ("0", "500m", "1", "2"),
    "memory": ("0", "1Gi", "512Mi"),
    "ephemeral-storage": ("1Gi",),
    "example.org/gpu": ("1", "2"),
    "hugepages-2Mi": ("4Mi",),
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def cases(seed: int, count: int) -> list[Json]:
    """`kind`, `pod` (the refused one), `old` and `new`; None for what is not there."""
    make = _Maker(Random(seed))
    return [make.case() for _ in range(count)]


def digest(made: list[Json]) -> str:
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


class _Maker:
    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def _maybe(self, chance: float) -> bool:
        return self._rng.random() < chance

    def _one(self, *choices: Any) -> Any:
        return self._rng.choice(choices)

    def case(self) -> Json:
        pod = self._pod("p1")
        pod["spec"].pop("nodeName", None)
        kind = self._one("pod", "node")
        if kind == "pod":
            obj = copy.deepcopy(pod) if self._maybe(0.3) else self._pod(self._one("p1", "p2"))
        else:
            obj = self._node()
        what = self._one("created", "deleted", "changed", "changed")
        changed = self._changed_pod(obj) if kind == "pod" else self._changed_node(obj)
        old, new = {"created": (None, obj), "deleted": (obj, None), "changed": (obj, changed)}[what]
        return {"kind": kind, "pod": pod, "old": old, "new": new}

    # Pods

    def _pod(self, uid: str) -> Json:
        spec: Json = {"containers": [self._container("c") for _ in range(self._one(1, 2))]}
        status: Json = {}
        if self._maybe(0.4):
            spec["nodeName"] = self._one("n1", "n2")
        elif self._maybe(0.3):
            status["nominatedNodeName"] = "n1"
        if self._maybe(0.5):
            spec["tolerations"] = [self._toleration() for _ in range(self._one(1, 2))]
        if self._maybe(0.2):
            spec["schedulingGates"] = [{"name": "g"}]
        if self._maybe(0.3):
            spec["nodeSelector"] = {self._one("zone", "rack"): self._one("a", "b")}
        if self._maybe(0.6):
            spec["topologySpreadConstraints"] = [self._spread() for _ in range(self._one(1, 2))]
        if self._maybe(0.15):
            spec["initContainers"] = [self._container("i") | ({"restartPolicy": "Always"} if self._maybe(0.5) else {})]
        if self._maybe(0.15):
            spec["overhead"] = {"cpu": "100m"}
        if self._maybe(0.15):
            spec["resources"] = {"requests": {"cpu": self._one("1", "3")}}
        spec["affinity"] = self._affinity()
        namespace = self._one("default", "default", "other")
        metadata = {"name": uid, "uid": uid, "namespace": namespace, "labels": self._labels()}
        return {"metadata": metadata, "spec": spec, "status": status}

    def _changed_pod(self, pod: Json) -> Json:
        pod = copy.deepcopy(pod)
        for _ in range(self._one(1, 1, 2)):
            match self._rng.randrange(7):
                case 0:
                    pod["metadata"]["labels"] = self._labels()
                case 1:
                    pod["spec"].setdefault("tolerations", []).append(self._toleration())
                case 2:
                    pod["spec"].pop("schedulingGates", None)
                case 3:
                    pod["spec"]["containers"][0]["resources"] = {"requests": self._requests()}
                case 4:
                    pod["status"]["nominatedNodeName"] = self._one("", "n2")
                case 5:
                    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False"}]
                case 6:
                    pod["metadata"]["annotations"] = {"x": "y"}
        return pod

    def _container(self, name: str) -> Json:
        container: Json = {"name": name, "image": "i", "resources": {"requests": self._requests()}}
        if self._maybe(0.5):
            container["ports"] = [self._port() for _ in range(self._one(1, 2))]
        return container

    def _port(self) -> Json:
        address = self._one("", "0.0.0.0", "10.0.0.1", "10.0.0.2")
        protocol = self._one("TCP", "UDP")
        return {"containerPort": 80, "hostPort": self._one(0, 80, 81), "protocol": protocol, "hostIP": address}

    def _requests(self) -> Json:
        return {name: self._one(*amounts) for name, amounts in REQUESTS.items() if self._maybe(0.4)}

    def _labels(self) -> Json:
        values = {"app": ("web", "db"), "tier": ("a", "b")}
        return {key: self._one(*wanted) for key, wanted in values.items() if self._maybe(0.6)}

    def _toleration(self) -> Json:
        operator = self._one("", "Equal", "Exists")
        toleration = {"operator": operator, "effect": self._one("", *EFFECTS)}
        if operator == "Exists":
            return toleration | {"key": self._one("", *TAINTS)}
        return toleration | {"key": self._one(*TAINTS), "value": self._one("", "v")}

    def _selector(self) -> Json:
        """As a field: sometimes it is not there."""
        match self._rng.randrange(10):
            case 0:
                return {}
            case 1:
                return {"labelSelector": {}}
            case 2 | 3 | 4:
                operator = self._one("In", "NotIn", "Exists", "DoesNotExist")
                values = {"values": [self._one("web", "db", "a")]} if operator in ("In", "NotIn") else {}
                expression = {"key": self._one("app", "tier"), "operator": operator} | values
                return {"labelSelector": {"matchExpressions": [expression]}}
        return {"labelSelector": {"matchLabels": self._labels()}}

    def _affinity(self) -> Json:
        affinity: Json = {}
        if self._maybe(0.3):
            terms = [self._node_term() for _ in range(self._one(1, 2))]
            affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
        for kind in ("podAffinity", "podAntiAffinity"):
            if self._maybe(0.5):
                affinity[kind] = {REQUIRED: [self._pod_term() for _ in range(self._one(1, 1, 2))]}
        return affinity

    def _node_term(self) -> Json:
        term: Json = {}
        if self._maybe(0.8):
            operator = self._one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
            wanted = {"In": ["a", "b"], "NotIn": ["a"], "Gt": ["3"], "Lt": ["3"]}.get(operator, [])
            term["matchExpressions"] = [
                {"key": self._one("zone", "rack", "size"), "operator": operator, "values": wanted}
            ]
        if self._maybe(0.2):
            name = self._one("n1", "n2")
            term["matchFields"] = [{"key": "metadata.name", "operator": self._one("In", "NotIn"), "values": [name]}]
        return term

    def _pod_term(self) -> Json:
        term = {"topologyKey": self._one(*TOPOLOGIES)} | self._selector()
        if self._maybe(0.2):
            term["namespaces"] = [self._one("default", "other")]
        if self._maybe(0.2):
            unlike = {"key": "team", "operator": "NotIn", "values": ["x"]}
            term["namespaceSelector"] = self._one({}, {"matchLabels": {"team": "x"}}, {"matchExpressions": [unlike]})
        return term

    def _spread(self) -> Json:
        when = self._one("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")
        rule = {"maxSkew": 1, "topologyKey": self._one(*TOPOLOGIES), "whenUnsatisfiable": when} | self._selector()
        if self._maybe(0.3):
            rule["nodeTaintsPolicy"] = self._one("Honor", "Ignore")
        if "labelSelector" in rule and self._maybe(0.2):
            rule["matchLabelKeys"] = ["tier"]
        return rule

    # Nodes

    def _node(self) -> Json:
        labels = {key: self._one("a", "b") for key in TOPOLOGIES if self._maybe(0.6)}
        if self._maybe(0.3):
            labels["size"] = self._one("1", "5", "x")
        spec: Json = {}
        if self._maybe(0.3):
            spec["unschedulable"] = True
        if self._maybe(0.5):
            spec["taints"] = [self._taint() for _ in range(self._one(1, 2))]
        amounts = {"cpu": ("500m", "1", "2", "4"), "memory": ("512Mi", "2Gi"), "example.org/gpu": ("1", "2")}
        allocatable = {name: self._one(*wanted) for name, wanted in amounts.items() if self._maybe(0.8)}
        allocatable |= {name: REQUESTS[name][0] for name in ("ephemeral-storage", "hugepages-2Mi") if self._maybe(0.8)}
        allocatable["pods"] = self._one("0", "1", "110")
        metadata = {"name": self._one("n1", "n2"), "labels": labels}
        return {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}}

    def _taint(self) -> Json:
        return {"key": self._one(*TAINTS), "value": self._one("", "v"), "effect": self._one(*EFFECTS)}

    def _changed_node(self, node: Json) -> Json:
        node, other = copy.deepcopy(node), self._node()
        for _ in range(self._one(1, 1, 2)):
            match self._rng.randrange(5):
                case 0:
                    node["metadata"]["labels"] = other["metadata"]["labels"]
                case 1:
                    node["spec"] = other["spec"]
                case 2:
                    node["status"]["allocatable"] = other["status"]["allocatable"]
                case 3:
                    node["metadata"]["annotations"] = {"x": self._one("1", "2")}
                case 4:
                    node["status"]["conditions"] = [{"type": "Ready", "status": self._one("True", "False")}]
        return node
