"""What happens to the nodes of a fault run: they come and go, are cordoned, get taints, and lose room to the system.

Used by `load`; what they are worth in the end is read from the API server by `liveness`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

from tests.e2e import api as paths
from tests.e2e.api import Refused
from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.volumes import Provisioner
from tests.e2e.fault_run.wishes import RACK, ZONE
from tests.e2e.history import Amounts, amounts

NODE_CPU = 8
LESS_CPU = (3, 5, NODE_CPU, NODE_CPU)  # what a kubelet says that it has, after it was configured anew
WHERE = ({ZONE: "a", RACK: "r1"}, {ZONE: "a", RACK: "r2"}, {ZONE: "b", RACK: "r1"})  # two racks of one name
FEWEST, MOST = 3, 30
TAINT = {"key": "fault-run", "effect": "NoSchedule"}
TOLERATIONS = [{"key": TAINT["key"], "operator": "Exists"}]


class Nodes:
    """labels: of every node that there ever was."""

    def __init__(
        self, cluster: Cluster, provisioner: Provisioner, dice: random.Random, say: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._provisioner = provisioner
        self._dice = dice
        self._say = say
        self._names: list[str] = []
        self._made = 0
        self.labels: dict[str, dict[str, str]] = {}

    def most(self) -> dict[str, Amounts]:
        """What each ever had: pods bound before its kubelet said that it has less stay."""
        resources = {"cpu": str(NODE_CPU), "memory": "256Gi", "pods": "110"}
        return dict.fromkeys(self._names, amounts(resources))

    def add(self) -> None:
        """A new one, or one that has gone comes again; where there are MOST, one goes."""
        if len(self._names) >= MOST:
            return self.remove()
        gone = [name for name in self.labels if name not in self._names]
        again, which = self._dice.random() < 0.3, self._dice.random()
        labels = dict(self._dice.choice(WHERE)) if self._dice.random() < 0.9 else {ZONE: "b"}
        if gone and again:
            name = gone[int(which * len(gone))]
            labels = self.labels[name]
        else:
            self._made += 1
            name = f"node{self._made}"
            self._provisioner.reach(name)
        self._say(f"add {name} in {'/'.join(labels.values())}")
        self.labels[name] = labels
        self._cluster.node(name, cpu=str(NODE_CPU), labels=labels)
        self._names.append(name)
        return None

    def put_right(self) -> None:
        """After etcd was restored: a kubelet registers its node again; one that was removed is there, and stays."""
        there = {node["metadata"]["name"] for node in self._cluster.api.items(paths.NODES)}
        for name in self._names:
            if name not in there:
                self._cluster.node(name, cpu=str(NODE_CPU), labels=self.labels[name])
        self._names += sorted(there - set(self._names))
        for name in self._names:
            with suppress(Refused):  # they are there
                self._provisioner.reach(name)

    def remove(self) -> None:
        """One that no pod uses; what is drawn does not depend on how many are."""
        which = self._dice.random()
        used = {pod["spec"].get("nodeName") for pod in self._cluster.all_pods()}
        free = [name for name in self._names if name not in used]
        if free and len(self._names) > FEWEST:
            name = free[int(which * len(free))]
            self._say(f"remove {name}")
            self._names.remove(name)
            self._cluster.api.delete(f"{paths.NODES}/{name}")

    def cordon(self) -> None:
        name = self._dice.choice(self._names)
        off = self._dice.random() < 0.4
        self._say(f"{'cordon' if off else 'uncordon'} {name}")
        self._cluster.api.patch(f"{paths.NODES}/{name}", {"spec": {"unschedulable": off or None}})

    def taint(self) -> None:
        """That few tolerate, and that evicts no pod."""
        name = self._dice.choice(self._names)
        on = self._dice.random() < 0.4
        self._say(f"{'taint' if on else 'no taint on'} {name}")
        self._cluster.api.patch(f"{paths.NODES}/{name}", {"spec": {"taints": [TAINT] if on else None}})

    def resize(self) -> None:
        name, cpu = self._dice.choice(self._names), self._dice.choice(LESS_CPU)
        self._say(f"{name} has {cpu} cpu")
        self._cluster.api.patch(f"{paths.NODES}/{name}/status", {"status": {"allocatable": {"cpu": str(cpu)}}})
