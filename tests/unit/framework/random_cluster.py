"""Random clusters in which every in-tree plugin has something to say, and that change step by step."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.client.store import Store
from tests.objects import HOSTNAME, PREFERRED, REQUIRED, ZONE, Json

NAMESPACES = ("default", "team-a", "team-b")
APPS = ("web", "db", "batch")
KEYS = (ZONE, HOSTNAME, "rack", "nowhere")
TAINTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class RandomCluster:
    """A cache and the stores around it; all choices are the random source's."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cache = Cache()
        self.nodes: dict[str, corev1.Node] = {}
        self.pods: dict[str, corev1.Pod] = {}
        self.stores = self._stores()
        self._named = 0
        for _ in range(self.random.randint(18, 40)):
            self.add_node()
        for _ in range(self.random.randint(20, 90)):
            self.add_pod()

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def _name(self, prefix: str) -> str:
        self._named += 1
        return f"{prefix}-{self._named}"

    # Changes

    def step(self) -> None:
        changes = (self.add_pod, self.add_pod, self.remove_pod, self.change_node, self.add_node, self.remove_node)
        self.random.choices(changes, (6, 3, 4, 4, 1, 1))[0]()

    def add_node(self) -> None:
        self._put(self._name("node"))

    def change_node(self) -> None:
        self._put(self.random.choice(sorted(self.nodes)))

    def _put(self, name: str) -> None:
        node = convert(self.node_json(name), corev1.Node)
        self.cache.update_node(self.nodes.get(name), node)
        self.nodes[name] = node

    def remove_node(self) -> None:
        if len(self.nodes) > 18:
            self.cache.remove_node(self.nodes.pop(self.random.choice(sorted(self.nodes))))

    def add_pod(self) -> None:
        pod = convert(self.pod_json(node=self.random.choice(sorted(self.nodes))), corev1.Pod)
        self.cache.add_pod(pod)
        self.pods[pod.uid] = pod

    def remove_pod(self) -> None:
        if self.pods:
            self.cache.remove_pod(self.pods.pop(self.random.choice(sorted(self.pods))))

    def pending(self) -> corev1.Pod:
        return convert(self.pod_json(), corev1.Pod)

    # Objects

    def node_json(self, name: str) -> Json:
        pick = self.random
        labels = {HOSTNAME: name} if self.chance(0.95) else {}
        if self.chance(0.9):
            labels[ZONE] = pick.choice(("z1", "z2", "z3", ""))
        if self.chance(0.6):
            labels["rack"] = str(pick.randint(1, 12))
        resources = {"cpu": pick.choice(("2", "4", "0")), "memory": pick.choice(("4Gi", "8Gi")), "pods": "12"}
        if self.chance(0.4):
            resources["example.com/gpu"] = str(pick.randint(0, 4))
        taints = [{"key": f"k{i}", "value": pick.choice("ab"), "effect": pick.choice(TAINTS)} for i in range(2)]
        images = [{"names": [f"app-{i}:v1"], "sizeBytes": pick.randint(1, 2_000_000_000)} for i in range(4)]
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "taints": taints[: pick.choice((0, 0, 0, 1, 2))],
                "unschedulable": self.chance(0.05),
            },
            "status": {"allocatable": resources, "images": pick.sample(images, pick.randint(0, 4))},
        }

    def pod_json(self, node: str = "") -> Json:
        pick, name = self.random, self._name("pod")
        app = pick.choice(APPS)
        meta: Json = {"name": name, "uid": name, "namespace": pick.choice(NAMESPACES), "labels": {"app": app}}
        if self.chance(0.3):
            meta["labels"]["tier"] = pick.choice(("front", "back"))
        if node and self.chance(0.1):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if self.chance(0.5):
            owner = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": app, "uid": app, "controller": True}
            meta["ownerReferences"] = [owner]
        spec: Json = {"containers": [self._container() for _ in range(pick.randint(1, 2))], "nodeName": node}
        if self.chance(0.5):
            spec["affinity"] = self._affinity()
        if self.chance(0.3):
            spec["topologySpreadConstraints"] = [self._spread() for _ in range(pick.randint(1, 3))]
        if not node:
            self._only_pending(spec)
        return {"metadata": meta, "spec": spec}

    def _only_pending(self, spec: Json) -> None:
        pick = self.random
        if self.chance(0.15):
            spec["nodeSelector"] = {"rack": str(pick.randint(1, 12))} if self.chance(0.5) else {ZONE: "z1"}
        if self.chance(0.05):
            spec["nodeName"] = pick.choice(sorted(self.nodes))
        spec["priority"] = pick.choice((0, 10))
        spec["tolerations"] = [
            {"key": pick.choice(("k0", "k1", "")), "operator": pick.choice(("Exists", "Equal", "")), "value": "a",
             "effect": pick.choice(("", *TAINTS))}
            for _ in range(pick.randint(0, 3))
        ]  # fmt: skip

    def _container(self) -> Json:
        pick = self.random
        requests = {"cpu": pick.choice(("100m", "500m", "1")), "memory": pick.choice(("200Mi", "1Gi"))}
        if self.chance(0.15):
            requests["example.com/gpu"] = "1"
        if self.chance(0.2):
            requests = {}
        ports = [{"containerPort": 80, "hostPort": pick.choice((80, 81)), "hostIP": pick.choice(("", "10.0.0.1"))}]
        return {
            "name": "c",
            "image": f"app-{pick.randint(0, 4)}:v1",
            "resources": {"requests": requests},
            "ports": ports if self.chance(0.1) else [],
        }

    def _selector(self) -> Json | None:
        pick = self.random
        operator = pick.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = list(pick.sample(("front", "back"), 1)) if operator in ("In", "NotIn") else []
        expression = {"key": "tier", "operator": operator, "values": values}
        return pick.choice(
            (
                {"matchLabels": {"app": pick.choice(APPS)}},
                {"matchLabels": {"app": pick.choice(APPS)}},
                {"matchExpressions": [expression]},
                {},
                None,
            )
        )

    def _term(self) -> Json:
        pick = self.random
        term: Json = {"topologyKey": pick.choice(KEYS), "labelSelector": self._selector()}
        if self.chance(0.25):
            term["namespaces"] = pick.sample(NAMESPACES, 2)
        if self.chance(0.25):
            term["namespaceSelector"] = pick.choice(
                (
                    {},
                    {"matchLabels": {"team": "a"}},
                    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                )
            )
        return term

    def _pod_affinity(self, required: float) -> Json:
        pick = self.random
        result: Json = {}
        if self.chance(required):
            result[REQUIRED] = [self._term() for _ in range(pick.randint(1, 2))]
        if self.chance(0.5):
            weights = [pick.randint(1, 100) for _ in range(pick.randint(1, 3))]
            result[PREFERRED] = [{"weight": weight, "podAffinityTerm": self._term()} for weight in weights]
        return result

    def _affinity(self) -> Json:
        result: Json = {}
        if self.chance(0.5):
            result["podAffinity"] = self._pod_affinity(0.3)
        if self.chance(0.5):
            result["podAntiAffinity"] = self._pod_affinity(0.4)
        if self.chance(0.4):
            result["nodeAffinity"] = self._node_affinity()
        return result

    def _node_term(self) -> Json:
        pick = self.random
        operator = pick.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        match operator:
            case "In" | "NotIn":
                values = [str(n) for n in range(1, pick.randint(2, 9))]
            case "Gt" | "Lt":
                values = [pick.choice(("3", "9", "x"))]
            case _:
                values = []
        term: Json = {"matchExpressions": [{"key": "rack", "operator": operator, "values": values}]}
        if self.chance(0.1):
            one = {"key": "metadata.name", "operator": pick.choice(("In", "NotIn")), "values": [min(self.nodes)]}
            term["matchFields"] = [one]
        return term if self.chance(0.95) else {}

    def _node_affinity(self) -> Json:
        pick = self.random
        result: Json = {}
        if self.chance(0.5):
            result[REQUIRED] = {"nodeSelectorTerms": [self._node_term() for _ in range(pick.randint(1, 2))]}
        if self.chance(0.7):
            result[PREFERRED] = [{"weight": pick.randint(1, 100), "preference": self._node_term()} for _ in range(2)]
        return result

    def _spread(self) -> Json:
        pick = self.random
        hard = self.chance(0.5)
        constraint: Json = {
            "maxSkew": pick.randint(1, 3),
            "topologyKey": pick.choice(KEYS),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": self._selector(),
        }
        if hard and self.chance(0.3):
            constraint["minDomains"] = pick.randint(1, 5)
        if self.chance(0.3):
            constraint["nodeAffinityPolicy"] = pick.choice(("Honor", "Ignore"))
        if self.chance(0.3):
            constraint["nodeTaintsPolicy"] = pick.choice(("Honor", "Ignore"))
        if self.chance(0.2):
            constraint["matchLabelKeys"] = ["tier"]
        return constraint

    def _stores(self) -> Mapping[type[Any], Store[Any]]:
        stores: dict[type[Any], Store[Any]] = {
            kind: Store() for kind in (corev1.Service, corev1.ReplicaSet, corev1.Namespace)
        }
        for namespace in NAMESPACES:
            labels = {"team": namespace[-1]} if namespace != "default" else {}
            self._store(stores, corev1.Namespace, {"metadata": {"name": namespace, "labels": labels}})
            for app in APPS:
                meta = {"name": app, "namespace": namespace}
                if self.chance(0.5):
                    self._store(stores, corev1.Service, {"metadata": meta, "spec": {"selector": {"app": app}}})
                selector = {"selector": {"matchLabels": {"app": app}}}
                self._store(stores, corev1.ReplicaSet, {"metadata": meta, "spec": selector})
        return stores

    @staticmethod
    def _store(stores: Mapping[type[Any], Store[Any]], kind: type[Any], value: Json) -> None:
        stores[kind].put(convert(value, kind))
