"""Random pods for fresh scenarios: requests, affinity, spread constraints, tolerations, ports. Used by random_clusters.

As likely as in the parity corpus; the wide ones add values and fields that the corpus does not come to: empty and missing
topology values, label keys to match and to mismatch, odd quantities; the broken ones what no API server would take.
"""

from __future__ import annotations

import random
from enum import IntEnum
from typing import Any

Json = dict[str, Any]

ZONE, HOSTNAME, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"
NODE_LABELS = {
    ZONE: ("z1", "z2", "z3"),
    RACK: ("r1", "r2"),
    "disk": ("ssd", "hdd"),
    "gen": ("1", "2", "3", "10", "5"),
}
POD_LABELS = {"app": ("web", "db", "cache", "batch"), "team": ("a", "b"), "rev": ("r1", "r2")}
NAMESPACES = ("default", "team-a", "team-b")
IMAGES = ("reg.io/web:v1", "reg.io/db:v2", "reg.io/batch:latest", "reg.io/big:v3", "reg.io/sidecar:v1")
TAINT_KEYS = ("dedicated", "spot", "maint", "node.kubernetes.io/unschedulable")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
GPU = "example.com/gpu"
CPU = ("50m", "100m", "250m", "500m", "1000m", "2000m", "3500m")
MEMORY = ("64Mi", "128Mi", "256Mi", "512Mi", "1024Mi", "2048Mi", "6000Mi")
ODD_CPU = ("0", "1", "0.5", "1.5", "2e0", "1m", "100", "0.123")
ODD_MEMORY = ("0", "1", "1500", "128974848", "129e6", "129M", "1.5Gi", "1Ti", "500m", "123456789012")


class Breadth(IntEnum):
    """How far scenarios go: what the corpus has, what an API server takes, what it would refuse."""

    CORPUS = 0
    WIDE = 1
    BROKEN = 2


class Pods:
    """Makes pods from one source of chance."""

    def __init__(self, rng: random.Random, breadth: Breadth) -> None:
        self._rng = rng
        self._breadth = breadth
        self._wide = breadth >= Breadth.WIDE

    def chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def odd(self, probability: float) -> bool:
        """Something that the corpus does not have."""
        return self._wide and self.chance(probability)

    def broken(self, probability: float) -> bool:
        """Something that no API server would have let in."""
        return self._breadth is Breadth.BROKEN and self.chance(probability)

    def labels(self) -> Json:
        rng, labels = self._rng, {}
        for key, probability in (("app", 0.95), ("team", 0.58), ("rev", 0.28)):
            if self.chance(probability):
                labels[key] = "" if self.odd(0.03) else rng.choice(POD_LABELS[key])
        return labels

    def quantities(self, gpu: float = 0.1) -> Json:
        rng, requests = self._rng, {}
        if self.chance(0.88):
            requests["cpu"] = rng.choice(ODD_CPU if self.odd(0.15) else CPU)
        if self.chance(0.88):
            requests["memory"] = rng.choice(ODD_MEMORY if self.odd(0.15) else MEMORY)
        if self.chance(0.09):
            requests["ephemeral-storage"] = rng.choice(("100Mi", "500Mi", "2000Mi"))
        if self.chance(gpu):
            requests[GPU] = "0" if self.odd(0.2) else rng.choice(("1", "2"))
        if self.odd(0.05):
            requests[rng.choice(("hugepages-2Mi", "example.com/fpga", "attachable-volumes-x", "kubernetes.io/odd"))] = (
                "2"
            )
        return requests

    def container(self, name: str, ports: float = 0.1) -> Json:
        rng, requests = self._rng, self.quantities()
        container: Json = {"name": name, "image": rng.choice(IMAGES)}
        container["resources"] = {"requests": requests} if requests else {}
        if self.odd(0.1):
            container["resources"]["limits"] = self.quantities()
        if self.odd(0.03):
            container["image"] = rng.choice(("reg.io/web", "web", "reg.io:5000/web", "reg.io/web@sha256:12", ""))
        if self.chance(ports):
            container["ports"] = [self.port() for _ in range(rng.randint(1, 2))]
        return container

    def port(self) -> Json:
        rng, number = self._rng, self._rng.choice((80, 443, 9000, 9001))
        port: Json = {"containerPort": number}
        if not self.odd(0.1):
            port["protocol"] = "SCTP" if self.odd(0.05) else rng.choice(("TCP", "TCP", "UDP"))
        if self.chance(0.85):
            port["hostPort"] = number
        if self.chance(0.33):
            port["hostIP"] = rng.choice(
                ("0.0.0.0", "127.0.0.1", "10.0.0.5", *(("", "::1", "::") if self._wide else ()))
            )
        return port

    def spec(self, ports: float = 0.1) -> Json:
        rng = self._rng
        containers = [self.container(f"c{i}", ports) for i in range(2 if self.chance(0.23) else 1)]
        spec: Json = {"schedulerName": "default-scheduler", "containers": containers}
        if self.chance(0.18):
            spec["initContainers"] = [self._init_container(f"i{i}", ports) for i in range(rng.randint(1, 3))]
        if self.chance(0.06):
            spec["overhead"] = {"cpu": "120m", "memory": "64Mi"}
        if self.odd(0.03):
            spec["overhead"] = {GPU: "1", "cpu": "0"}
        if self.chance(0.08):
            spec["resources"] = {"requests": self._pod_level()}
        if self.odd(0.02):
            spec["hostNetwork"] = True
        return spec

    def _init_container(self, name: str, ports: float) -> Json:
        container = self.container(name, ports)
        if self.chance(0.42):
            container["restartPolicy"] = "Always"
        return container

    def _pod_level(self) -> Json:
        rng, requests = self._rng, {}
        if self.chance(0.55):
            requests["cpu"] = rng.choice(("300m", "1200m", "2500m"))
        if self.chance(0.6) or not requests:
            requests["memory"] = rng.choice(("300Mi", "1500Mi"))
        if self.odd(0.2):
            requests["hugepages-2Mi"] = "4Mi"
        return requests

    def tolerations(self) -> list[Json]:
        return [self._toleration() for _ in range(self._rng.randint(1, 3))]

    def _toleration(self) -> Json:
        rng, toleration = self._rng, Json()
        if self.chance(0.85):
            toleration["key"] = rng.choice(TAINT_KEYS)
        operator = rng.choice(("Exists", "Exists", "Equal")) if toleration or self._wide else "Exists"
        if not self.odd(0.1):
            toleration["operator"] = rng.choice(("Lt", "Gt")) if self.odd(0.05) else operator
        if operator == "Equal" or self.odd(0.1):
            toleration["value"] = rng.choice(("x", "y", *(("", "5") if self._wide else ())))
        if self.chance(0.7):
            toleration["effect"] = rng.choice(EFFECTS)
        if self.odd(0.1):
            toleration["tolerationSeconds"] = 30
        return toleration

    def node_affinity(self, nodes: int, required: float = 0.4, preferred: float = 0.6) -> Json:
        rng, affinity = self._rng, Json()
        if self.chance(required):
            terms = [self._node_term(nodes) for _ in range(rng.randint(0 if self.odd(0.05) else 1, 3))]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.chance(preferred):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.choice((1, 5, 20, 60, 100)), "preference": self._node_term(nodes)}
                for _ in range(rng.randint(1, 5))
            ]
        return affinity

    def _node_term(self, nodes: int) -> Json:
        rng, term = self._rng, Json()
        if self.odd(0.05):
            return term
        if self.chance(0.25):
            values = [f"n{rng.randrange(nodes)}"]
            if self.broken(0.05):
                return {
                    "matchFields": [{"key": "spec.x", "operator": rng.choice(("In", "NotIn", "Is")), "values": values}]
                }
            if self.broken(0.1):
                values.append(f"n{rng.randrange(nodes + 2)}")
            term["matchFields"] = [
                {"key": "metadata.name", "operator": rng.choice(("In", "In", "NotIn")), "values": values}
            ]
            if self.odd(0.3):
                return term
        term["matchExpressions"] = [self.node_requirement() for _ in range(rng.randint(1, 2))]
        return term

    def node_requirement(self) -> Json:
        rng = self._rng
        key = "absent" if self.odd(0.03) else rng.choice(tuple(NODE_LABELS))
        operators = ["In", "In", "NotIn", "Exists", "DoesNotExist"]
        if key == "gen" or self.odd(0.1):
            operators += ["Gt", "Lt", "Gt", "Lt"]
        operator = rng.choice(operators)
        requirement: Json = {"key": key, "operator": operator}
        known = NODE_LABELS.get(key, ("x",))
        if operator in ("In", "NotIn"):
            requirement["values"] = rng.sample(known, rng.randint(1, min(3, len(known))))
        if self.broken(0.03):
            requirement |= rng.choice(
                ({"operator": "Wrong"}, {"values": ["not valid"]}, {"key": "a/b/c"}, {"key": "-"})
            )
        elif operator in ("Gt", "Lt"):
            broken = ("abc", "", "-1", "+2", "1_0", "0x2", " 2", "99999999999999999999", "2.5")
            requirement["values"] = [rng.choice(broken if self.broken(0.15) else ("1", "2", "5"))]
        return requirement

    def selector(self) -> Json | None:
        rng = self._rng
        if self.odd(0.04):
            return None
        if self.broken(0.02):
            return {"matchExpressions": [{"key": "app", "operator": "Wrong", "values": ["web"]}]}
        if self.broken(0.02):
            return {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
        kind = rng.random()
        if kind < 0.05:
            return {}
        if kind < 0.75:
            return {"matchLabels": {"app": rng.choice(POD_LABELS["app"])}}
        expressions = [self._label_requirement() for _ in range(2 if self.odd(0.3) else 1)]
        return {"matchExpressions": expressions}

    def _label_requirement(self) -> Json:
        rng, key = self._rng, self._rng.choice(tuple(POD_LABELS))
        requirement: Json = {"key": key, "operator": rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))}
        if requirement["operator"] in ("In", "NotIn"):
            requirement["values"] = rng.sample(POD_LABELS[key], rng.randint(1, len(POD_LABELS[key])))
        return requirement

    def pod_term(self) -> Json:
        rng = self._rng
        term: Json = {"topologyKey": rng.choice((ZONE, HOSTNAME, RACK, *(("disk", "absent") if self.odd(0.2) else ())))}
        if (selector := self.selector()) is not None:
            term["labelSelector"] = selector
        if self.chance(0.2):
            term["namespaces"] = rng.sample(NAMESPACES, rng.randint(1, 2))
        if self.chance(0.35):
            term["namespaceSelector"] = self._namespace_selector()
        for field in ("matchLabelKeys", "mismatchLabelKeys"):
            if self.odd(0.1):
                term[field] = rng.sample(("app", "rev", "team", "absent"), rng.randint(1, 2))
        return term

    def _namespace_selector(self) -> Json:
        rng, kind = self._rng, self._rng.random()
        if self.broken(0.03):
            return {"matchExpressions": [{"key": "team", "operator": "In"}]}
        if kind < 0.15:
            return {}
        if kind < 0.45:
            return {"matchLabels": {"team": rng.choice(("a", "b"))}}
        operator = rng.choice(("Exists", "DoesNotExist", "NotIn"))
        return {
            "matchExpressions": [
                {"key": "team", "operator": operator} | ({"values": ["a"]} if operator == "NotIn" else {})
            ]
        }

    def pod_affinity(self, required: float = 0.3, preferred: float = 0.7) -> Json:
        rng, affinity = self._rng, Json()
        if self.chance(required):
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [
                self.pod_term() for _ in range(rng.randint(1, 2))
            ]
        if self.chance(preferred):
            weights = (1, 10, 50, 100)
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.choice(weights), "podAffinityTerm": self.pod_term()} for _ in range(rng.randint(1, 2))
            ]
        return affinity

    def spread_constraints(self) -> list[Json]:
        return [self._spread_constraint() for _ in range(self._rng.choice((1, 1, 1, 2, 2, 3)))]

    def _spread_constraint(self) -> Json:
        rng = self._rng
        constraint: Json = {
            "topologyKey": rng.choice((ZONE, HOSTNAME, RACK, *(("disk", "absent") if self.odd(0.2) else ()))),
            "maxSkew": rng.choice((1, 1, 2, 5)),
            "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
        }
        if (selector := self.selector()) is not None and self.chance(0.96):
            constraint["labelSelector"] = selector
        if (constraint["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.2)) or self.odd(0.03):
            constraint["minDomains"] = rng.choice((1, 2, 3, *((10,) if self._wide else ())))
        if self.chance(0.35):
            constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
        if self.chance(0.3):
            constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
        if self.chance(0.15):
            constraint["matchLabelKeys"] = rng.sample(("rev", "team", *(("app", "no") if self._wide else ())), 1)
        return constraint
