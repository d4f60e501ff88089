"""The kinds of gangs that a fault run makes, drawn at random, and the objects that each is made of.

Used by `load`. A gang is several kinds at once: of two sizes, in one rack, with its gate on, from a controller.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from extender.api.schedulingv1alpha1 import GANG_GATE, LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL
from tests.e2e.api import Json
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import SCHEDULER_NAME
from tests.e2e.fault_run.admission import FOREIGN
from tests.e2e.fault_run.kubelets import GRACE_SECONDS
from tests.e2e.fault_run.nodes import TOLERATIONS
from tests.e2e.fault_run.volumes import REACH, make_claim, volume_of, volume_of_its_own
from tests.e2e.fault_run.wishes import (
    GROUPS,
    ONCE_SATISFIED,
    ONLY_WAITING,
    POLICY,
    REQUIRED,
    ROLE,
    ROLES,
    ZONE,
    Wish,
    wish,
)

GATES = [{"name": GANG_GATE}]
MASTER, WORKER = "master", "worker"
TRAITS = ("gated", "lightweight", "apart", "replaced", "stateful", "queued", "tolerant", "port", "spread")
FIRST_PORT = 20_000
OTHER = "other"  # a second namespace


@dataclass
class Gang:
    """min_member of its pods, each with so many cores, start together.

    lightweight: labels say so, no PodGroup. apart: no two on one node. replaced: a member that is gone, or has failed, comes again under
    another name. stateful: so it does under its own, once the one before has gone, and finds its volume.
    """

    name: str
    size: int
    min_member: int
    cpu: int
    gated: bool
    lightweight: bool
    apart: bool
    priority: int
    replaced: bool = False
    stateful: bool = False
    namespace: str = "default"
    level: str = ""
    storage: str = ""  # class of a volume that each member brings
    grace: int = 0  # seconds that the members ask for once they are deleted
    preempts: bool = True
    queued: bool = False  # its members come with a foreign gate
    tolerant: bool = False  # of the fault run's taints
    port: int = 0  # of the node, that each member wants; so no two are on one
    spread: bool = False  # over the zones, as evenly as can be
    scheduler_name: str = SCHEDULER_NAME
    policy: str = ""
    roles: dict[str, int] = field(default_factory=dict)
    master_cpu: int = 1
    groups: list[str] = field(default_factory=list)  # keys of those that it starts together with
    pods: dict[str, str] = field(default_factory=dict)  # name -> role
    made: int = 0
    least: int = 0  # that its minMember ever was
    most: int = 0

    def __post_init__(self) -> None:
        self.least = self.most = self.min_member

    def __str__(self) -> str:
        traits = [name for name in TRAITS if getattr(self, name)]
        asked = [f"{key.rpartition('/')[2]} {text}" for key, text in self.annotations.items()]
        asked += [f"{self.storage} volumes"] if self.storage else []
        asked += [f"by {self.scheduler_name}"] if self.scheduler_name != SCHEDULER_NAME else []
        asked += [*(["slow to go"] if self.grace else []), *([] if self.preempts else ["never preempts"])]
        said = ", ".join([f"priority {self.priority}", *traits, *asked])
        return f"{self.key}, {self.size} for {self.min_member}, {self.cpu} cpu each (masters {self.master_cpu}), {said}"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def annotations(self) -> dict[str, str]:
        asked = {
            REQUIRED: self.level,
            POLICY: self.policy,
            ROLES: ",".join(f"{role}={least}" for role, least in self.roles.items()),
            GROUPS: ",".join(self.groups),
        }
        return {key: text for key, text in asked.items() if text}

    def wish(self) -> Wish:
        """With the least minMember that it ever had, and the most."""
        return replace(wish(self.key, self.least, self.annotations), most=self.most)

    def change_min_member(self, to: int) -> None:
        self.min_member = to
        self.least, self.most = min(self.least, to), max(self.most, to)

    def ask_for_less(self, cluster: Cluster, *, alone: bool) -> None:
        """A wider domain than it asked for, or any; no roles and no policy any more; alone: and no other group to start with."""
        self.level = "zone" if self.level == "rack" else ""
        self.groups = [] if alone else self.groups
        if self.policy:
            self.policy = ONCE_SATISFIED
        self.roles = {}
        asked = dict.fromkeys((REQUIRED, POLICY, ROLES, GROUPS)) | self.annotations
        cluster.annotate_pod_group(self.name, asked, namespace=self.namespace)

    def make_group(self, cluster: Cluster) -> None:
        if not self.lightweight:
            cluster.pod_group(self.name, self.min_member, namespace=self.namespace, annotations=self.annotations)

    def next_role(self) -> str:
        """The masters come first; further members are workers."""
        return "" if not self.roles else MASTER if self.made < self.roles[MASTER] else WORKER

    def make_member(self, cluster: Cluster, role: str, name: str = "") -> None:
        """name: of one that comes again."""
        if not name:
            name = f"{self.name}-{self.made}"
            self.made += 1
        self.pods[name] = role
        if self.storage and self.stateful:
            make_claim(cluster.api, self.namespace, name, self.storage)
        cluster.pod(
            name,
            namespace=self.namespace,
            group="" if self.lightweight else self.name,
            labels=self._labels(role),
            annotations=self.annotations if self.lightweight else {},
            requests={"cpu": str(self.master_cpu if role == MASTER else self.cpu)},
            priority=self.priority,
            preempts=self.preempts,
            terminationGracePeriodSeconds=self.grace,
            schedulingGates=[*(GATES if self.gated else []), *([FOREIGN] if self.queued else [])],
            affinity=_apart(self.name) if self.apart else None,
            host_port=self.port,
            topologySpreadConstraints=_spread(self.name) if self.spread else None,
            tolerations=TOLERATIONS if self.tolerant else None,
            scheduler_name=self.scheduler_name,
            volumes=self._volumes(name),
        )

    def _volumes(self, name: str) -> list[Json]:
        if not self.storage:
            return []
        return [volume_of_its_own(name) if self.stateful else volume_of(self.storage)]

    def _labels(self, role: str) -> dict[str, str]:
        labels = {"gang": self.name, **({ROLE: role} if role else {})}
        if self.lightweight:
            labels |= {LIGHTWEIGHT_NAME_LABEL: self.name, LIGHTWEIGHT_MIN_AVAILABLE_LABEL: str(self.min_member)}
        return labels


def _apart(gang: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"gang": gang}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _spread(gang: str) -> list[Json]:
    selector = {"matchLabels": {"gang": gang}}
    return [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def draw(dice: random.Random, number: int, scheduler_names: Sequence[str]) -> list[Gang]:
    """A gang, or some that start together."""
    name = f"gang{number}"
    names = dice.choice(
        ([name], [name], [name], [name], [f"{name}{letter}" for letter in "abc"[: dice.choice((2, 2, 3))]])
    )
    sizes = (1, 2, 3, 4) if len(names) > 1 else (1, 2, 3, 4, 6, 8, 12)
    gangs = [_one(dice, each, sizes, scheduler_names) for each in names]
    for index, gang in enumerate(gangs):
        if not gang.apart and gang.size <= 4 and dice.random() < 0.15:
            gang.port = FIRST_PORT + 10 * number + index
    if len(gangs) == 1:
        return gangs
    if dice.random() < 0.4:
        gangs[-1].namespace = OTHER
    for gang in gangs:
        gang.lightweight, gang.priority, gang.preempts = False, gangs[0].priority, gangs[0].preempts
        gang.scheduler_name = gangs[0].scheduler_name
        gang.groups = [each.key for each in gangs if each is not gang]
    return gangs


def _one(dice: random.Random, name: str, sizes: Sequence[int], scheduler_names: Sequence[str]) -> Gang:
    size = dice.choice(sizes)
    gang = Gang(
        name,
        size,
        min_member=max(1, size - dice.choice((0, 0, 0, 1, 2))),
        cpu=dice.choice((1, 2, 3, 4)),
        gated=dice.random() < 0.5,
        lightweight=dice.random() < 0.2,
        apart=size <= 4 and dice.random() < 0.3,
        priority=dice.choice((0, 0, 0, 0, 10)),
        replaced=dice.random() < 0.3,
    )
    gang.storage = dice.choice((*[""] * 10, *REACH))
    gang.level = dice.choice(("", "", "", "zone", "rack"))
    gang.grace = dice.choice((0, 0, GRACE_SECONDS))
    gang.preempts = not gang.priority or dice.random() < 0.7
    gang.queued = dice.random() < 0.15
    gang.stateful = gang.replaced and dice.random() < 0.5
    if size >= 3 and dice.random() < 0.25:
        gang.roles = {MASTER: dice.choice((1, 1, 2)), WORKER: dice.randint(1, gang.min_member - 1) if size > 3 else 1}
        gang.min_member = gang.least = gang.most = max(gang.min_member, sum(gang.roles.values()))
        gang.size = max(size, gang.min_member)
        gang.master_cpu = dice.choice((1, 2, 4))
    else:
        gang.policy = dice.choice(("", "", "", ONCE_SATISFIED, ONLY_WAITING))
    gang.tolerant = dice.random() < 0.2
    gang.spread = not gang.level and dice.random() < 0.15
    gang.scheduler_name = dice.choice(scheduler_names)
    return gang
