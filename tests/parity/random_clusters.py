"""Random scenarios for `evaluate`: nodes, running and nominated pods, budgets, configurations and the pod to schedule.

The same seed gives the same scenarios. Used by record_fresh; the pods themselves are made by random_pods.
"""

from __future__ import annotations

import random
from typing import Any

from tests.parity.random_pods import (
    EFFECTS,
    GPU,
    HOSTNAME,
    IMAGES,
    NAMESPACES,
    NODE_LABELS,
    TAINT_KEYS,
    ZONE,
    Breadth,
    Pods,
)
from tests.parity.random_profiles import configuration
from tests.parity.random_volumes import Volumes

Json = dict[str, Any]

KINDS = (
    *("preempt",) * 5,
    *("nodeaff", "podaff", "spread", "preemptaff") * 2,
    *("mixed", "taints", "images", "ports", "services", "config", "resources"),
)
SIZES = {IMAGES[0]: 314572800, IMAGES[1]: 943718400, IMAGES[2]: 125829120, IMAGES[3]: 2621440000, IMAGES[4]: 31457280}
STARTED = ("2026-01-01T06:00:00Z", "2026-01-01T07:00:00Z")
RS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-uid", "controller": True}


def scenarios(seed: int, count: int, breadth: Breadth) -> list[Json]:
    return [_Maker(random.Random(f"{seed}-{index}"), breadth).scenario(index) for index in range(count)]


class _Maker:
    """One scenario."""

    def __init__(self, rng: random.Random, breadth: Breadth) -> None:
        self._rng = rng
        self._wide = breadth >= Breadth.WIDE
        self._make = Pods(rng, breadth)
        self._kind = rng.choice(KINDS)
        self._preempts = self._kind.startswith("preempt")
        self._nodes = rng.randint(3, 9) if self._preempts else rng.randint(4, 12)
        if self._preempts and rng.random() < 0.01:
            self._nodes = 130  # more than are dry-run

    def scenario(self, index: int) -> Json:
        make = self._make
        scenario: Json = {"name": f"{self._kind}-{index}", "kind": self._kind}
        scenario["nodes"] = [self._node(f"n{i}") for i in range(self._nodes)]
        scenario["namespaces"] = self._namespaces()
        scenario["pods"] = [pod for i in range(self._nodes) for pod in self._running(f"n{i}", i)]
        scenario["pending"] = self._pending()
        if make.chance(0.75 if self._preempts else 0.2):
            scenario["pdbs"] = [self._pdb(i) for i in range(self._rng.randint(1, 6))]
        if make.chance(0.2):
            scenario["nominated"] = [self._nominated(f"nom{i}") for i in range(self._rng.randint(1, 2))]
        if self._kind == "services" or make.chance(0.13):
            self._owned(scenario)
        if self._kind == "config" or make.chance(0.3 if self._wide else 0.08):
            scenario["config"] = configuration(self._rng, self._wide)
        if make.odd(0.25):
            Volumes(self._rng, scenario).add()
        for field in ("extenderFailed", "extenderUnresolvable"):
            if make.odd(0.07):
                scenario[field] = {f"n{self._rng.randrange(self._nodes)}": "said the extender" for _ in range(3)}
        return scenario

    def _node(self, name: str) -> Json:
        rng, make = self._rng, self._make
        labels = {HOSTNAME: name} if not make.odd(0.05) else {}
        for key, probability in zip(NODE_LABELS, (0.92, 0.29, 0.5, 0.5)):
            if make.chance(probability):
                labels[key] = "" if make.odd(0.04) else rng.choice(NODE_LABELS[key])
        if make.odd(0.1):
            labels["topology.kubernetes.io/region"] = rng.choice(("a", "b"))
        if make.odd(0.05):
            labels["failure-domain.beta.kubernetes.io/zone"] = "z1"
        spec: Json = {}
        if make.chance(0.5 if self._kind == "taints" else 0.15):
            spec["taints"] = [self._taint() for _ in range(rng.randint(1, 3))]
        if make.chance(0.04):
            spec["unschedulable"] = True
        amounts: Json = {
            "cpu": rng.choice(("2", "4", "4", "8", "16", "7800m")),
            "memory": rng.choice(("2Gi", "4Gi", "8Gi", "8Gi", "16Gi", "15Gi", "32Gi")),
            "ephemeral-storage": rng.choice(("2Gi", "8Gi", "20Gi")),
            "pods": rng.choice(("3", "8", "30", "110", "110", "110")),
        }
        if make.chance(0.4):
            amounts[GPU] = rng.choice(("1", "2", "4"))
        if make.chance(0.03):
            del amounts["memory"]
        if make.odd(0.1):
            amounts |= {
                rng.choice(("hugepages-2Mi", "example.com/fpga", "cpu", "memory")): rng.choice(("0", "8Gi", "3"))
            }
        status: Json = {"allocatable": amounts, "capacity": dict(amounts)}
        if make.chance(0.7 if self._kind == "images" else 0.3):
            status["images"] = [self._image(image) for image in rng.sample(IMAGES, rng.randint(1, 3))]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": status,
        }

    def _image(self, image: str) -> Json:
        size = self._rng.randint(1, 3_000_000_000) if self._make.odd(0.2) else SIZES[image]
        return {"names": [image, f"{image}-too"] if self._make.odd(0.1) else [image], "sizeBytes": size}

    def _taint(self) -> Json:
        rng, taint = (
            self._rng,
            {"key": self._rng.choice(TAINT_KEYS), "effect": self._rng.choice((*EFFECTS, "PreferNoSchedule"))},
        )
        if self._make.chance(0.63):
            taint["value"] = rng.choice(("x", "y", *(("", "3", "7") if self._wide else ())))
        return taint

    def _namespaces(self) -> list[Json]:
        named: list[Json] = [{"metadata": {"name": name}} for name in NAMESPACES]
        named[1]["metadata"]["labels"] = {"team": "a"}
        named[2]["metadata"]["labels"] = {"team": "b"}
        return named[: 2 if self._make.odd(0.05) else 3]

    def _pod(self, name: str) -> Json:
        ports = 0.5 if self._kind == "ports" else 0.1
        metadata = {
            "name": name,
            "namespace": self._rng.choice(NAMESPACES),
            "uid": f"uid-{name}",
            "labels": self._make.labels(),
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self._make.spec(ports), "status": {}}

    def _running(self, node: str, at: int) -> list[Json]:
        few, fill = self._rng.randint(0, 4), self._rng.randint(2, 5)
        pods = [self._assigned(f"p{at}-{i}", node) for i in range(few)]
        if self._preempts:
            pods += [self._assigned(f"f-{node}-{i}", node) for i in range(fill)]
        return pods

    def _assigned(self, name: str, node: str) -> Json:
        rng, make, pod = self._rng, self._make, self._pod(name)
        pod["spec"]["nodeName"] = node
        if make.chance(0.9):
            pod["spec"]["priority"] = rng.choice((0, 0, 0, 10, 10, 100, 1000, -5))
        if make.chance(0.3):
            pod["spec"]["tolerations"] = make.tolerations()
        if make.chance({"podaff": 0.6, "preemptaff": 0.3}.get(self._kind, 0.05)):
            pod["spec"]["affinity"] = {
                rng.choice(("podAffinity", "podAntiAffinity")): make.pod_affinity() for _ in range(2)
            }
        started = rng.choice(
            (*STARTED, f"2026-01-01T{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}Z")
        )
        pod["status"] = {"phase": "Running", "startTime": started}
        self._ending(pod)
        if make.chance(0.11):
            self._resizing(pod)
        return pod

    def _ending(self, pod: Json) -> None:
        status, make = pod["status"], self._make
        if make.chance(0.05):
            pod["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
            if make.chance(0.65):
                reason = "EvictionByEvictionAPI" if make.odd(0.2) else "PreemptionByScheduler"
                status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
        if make.chance(0.05):
            reason = self._rng.choice(("Infeasible", "Deferred", *(("Error",) if self._wide else ())))
            status.setdefault("conditions", []).append({"type": "PodResizePending", "status": "True", "reason": reason})

    def _resizing(self, pod: Json) -> None:
        """What the kubelet reports of containers whose requests change."""
        pod["status"]["containerStatuses"] = [self._reported(each) for each in pod["spec"]["containers"]]
        if inits := pod["spec"].get("initContainers"):
            pod["status"]["initContainerStatuses"] = [self._reported(each) for each in inits if self._make.chance(0.7)]
        if "resources" in pod["spec"] and self._make.chance(0.7):
            pod["status"]["resources"] = {"requests": self._reported_amounts()}
            if self._make.chance(0.5):
                pod["status"]["allocatedResources"] = self._reported_amounts()

    def _reported(self, container: Json) -> Json:
        status = {
            "name": container["name"],
            "ready": True,
            "restartCount": 0,
            "image": container["image"],
            "imageID": "",
        }
        if self._make.chance(0.7):
            status["resources"] = {"requests": self._reported_amounts()} if self._make.chance(0.9) else {}
        if self._make.chance(0.8):
            status["allocatedResources"] = self._reported_amounts()
        return status

    def _reported_amounts(self) -> Json:
        return {"cpu": self._rng.choice(("50m", "400m", "1500m")), "memory": self._rng.choice(("50Mi", "700Mi"))}

    def _pending(self) -> Json:
        rng, make, pod = self._rng, self._make, self._pod("pending")
        spec, kind = pod["spec"], self._kind
        if self._preempts:
            spec["containers"][0]["resources"] = {
                "requests": {"cpu": rng.choice(("1500m", "3500m", "500m")), "memory": rng.choice(("1Gi", "3Gi"))}
            }
        if self._preempts or make.chance(0.8):
            spec["priority"] = rng.choice((500, 2000, 2000) if self._preempts else (0, 50, 500, 2000))
        if make.chance(0.2):
            spec["preemptionPolicy"] = rng.choice((*("PreemptLowerPriority",) * 7, "Never"))
        if make.chance(0.9 if kind == "taints" else 0.3):
            spec["tolerations"] = make.tolerations()
        if make.chance(0.06):
            spec["nodeSelector"] = {key: rng.choice(NODE_LABELS[key]) for key in rng.sample(("disk", ZONE, "gen"), 1)}
        affinity = self._affinity()
        if affinity:
            spec["affinity"] = affinity
        if make.chance({"spread": 1, "preemptaff": 0.5}.get(kind, 0.15)):
            spec["topologySpreadConstraints"] = make.spread_constraints()
        if make.chance(0.2 if self._preempts else 0.0) or make.odd(0.05):
            pod["status"]["nominatedNodeName"] = f"n{rng.randrange(self._nodes)}"
        if make.odd(0.02):
            spec["nodeName"] = f"n{rng.randrange(self._nodes + 1)}"
        return pod

    def _affinity(self) -> Json:
        make, kind, affinity = self._make, self._kind, {}
        if make.chance(0.9 if kind == "nodeaff" else 0.2):
            affinity["nodeAffinity"] = make.node_affinity(self._nodes)
        for field in ("podAffinity", "podAntiAffinity"):
            if make.chance({"podaff": 0.5, "preemptaff": 0.3}.get(kind, 0.1)):
                affinity[field] = make.pod_affinity()
        return affinity

    def _nominated(self, name: str) -> Json:
        rng, make, pod = self._rng, self._make, self._pod(name)
        if make.chance(0.9):
            pod["spec"]["priority"] = rng.choice((0, 50, 500, 2000))
        if affinity := self._affinity():
            pod["spec"]["affinity"] = affinity
        if make.chance(0.3):
            pod["spec"]["tolerations"] = make.tolerations()
        pod["status"]["nominatedNodeName"] = f"n{rng.randrange(self._nodes)}"
        return pod

    def _pdb(self, index: int) -> Json:
        rng, make, spec = self._rng, self._make, {}
        if make.chance(0.98) and (selector := make.selector()) is not None:
            spec["selector"] = selector
        status: Json = {"disruptionsAllowed": -1 if make.odd(0.03) else rng.choice((0, 0, 1, 2))}
        if make.chance(0.17):
            status["disruptedPods"] = {f"p{rng.randrange(self._nodes)}-{rng.randrange(4)}": "2026-01-01T00:00:00Z"}
        return {
            "metadata": {"name": f"pdb{index}", "namespace": rng.choice(NAMESPACES)},
            "spec": spec,
            "status": status,
        }

    def _owned(self, scenario: Json) -> None:
        """A service, and often an owner, that the system's default constraints are made of."""
        rng, make = self._rng, self._make
        pending = scenario["pending"]
        namespace, app = pending["metadata"]["namespace"], pending["metadata"]["labels"].get("app", "web")
        here = namespace if make.chance(0.8) else rng.choice(NAMESPACES)
        selector = {"app": app if make.chance(0.8) else "web"}
        scenario["services"] = [{"metadata": {"name": "svc", "namespace": here}, "spec": {"selector": selector}}]
        if make.chance(0.3):
            labels = {"matchLabels": {"app": app} | ({"team": "a"} if make.chance(0.5) else {})}
            field, owner = "replicaSets", dict(RS)
            if make.odd(0.3):
                field, owner["kind"] = "statefulSets", "StatefulSet"
            elif make.odd(0.3):
                field, owner["kind"], owner["apiVersion"] = "replicationControllers", "ReplicationController", "v1"
            pending["metadata"]["ownerReferences"] = [owner]
            spec = {"selector": {"app": app} if field == "replicationControllers" else labels}
            scenario[field] = [{"metadata": {"name": "rs", "namespace": namespace, "uid": "rs-uid"}, "spec": spec}]
