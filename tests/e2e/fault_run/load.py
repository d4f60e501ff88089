"""What a fault run loads the cluster with: gangs, single pods and nodes come and go at random; then it calms down.

`inject` makes it, a seed gives the same acts again, though not at the same moments. What befalls the programs meanwhile is `nemesis`'.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from tests.e2e import api as paths
from tests.e2e.api import Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.budgets import KEPT, Budget
from tests.e2e.fault_run.describe import describe
from tests.e2e.fault_run.drawn_configuration import DrawnConfiguration
from tests.e2e.fault_run.hostile_tenant import HostileTenant
from tests.e2e.fault_run.kinds import OTHER, Gang, draw
from tests.e2e.fault_run.kubelets import GRACE_SECONDS, leaves
from tests.e2e.fault_run.liveness import waits_although_it_fits
from tests.e2e.fault_run.nodes import TOLERATIONS, Nodes
from tests.e2e.fault_run.owners import Owners
from tests.e2e.fault_run.preemption_check import PreemptionCheck
from tests.e2e.fault_run.put_right import put_right
from tests.e2e.fault_run.rig import Rig
from tests.e2e.fault_run.volumes import Provisioner, Volumes, remove_unused

QUIET_SECONDS = 12.0  # longer than kube-scheduler's longest back-off, and than a denial
CALM_SECONDS = 120.0
MOST_GANGS = 30
SINGLE, MOST_SINGLES = "single", 30


def too_many_singles(pods: Sequence[Json]) -> list[str]:
    """The oldest, so that there is room for one more: also those that a restored etcd has back."""
    singles = [
        pod["metadata"]
        for pod in pods
        if pod["metadata"]["name"].startswith(SINGLE) and pod["metadata"]["namespace"] == "default" and not leaves(pod)
    ]
    singles.sort(key=lambda metadata: str(metadata["creationTimestamp"]))
    return [metadata["name"] for metadata in singles[: max(0, len(singles) - MOST_SINGLES + 1)]]


class Load:
    """hostile: a tenant of that kind makes pods and groups too."""

    def __init__(
        self,
        rig: Rig,
        provisioner: Provisioner,
        seed: int,
        configuration: DrawnConfiguration,
        *,
        hostile: bool = False,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._rig = rig
        self._cluster: Cluster = rig.cluster
        self._provisioner = provisioner
        self._random = random.Random(seed)
        self._configuration = configuration
        self._say = say
        self._ground = Nodes(self._cluster, provisioner, self._random, say)
        self._gangs: list[Gang] = []
        self._number = 0
        self._pause = threading.Event()
        self._over: list[Gang] = []
        self._owners = Owners(self._cluster, self._gangs, self._over, self._random, say)
        self._hostile = HostileTenant(self._cluster, seed) if hostile else None
        self._budgets: list[Budget] = []
        self._add_budget(Budget("default", "kept", KEPT))
        self._cluster.namespace(OTHER)
        for _ in range(6):
            self._ground.add()

    def inject(self, seconds: float) -> None:
        acts: Sequence[tuple[int, Callable[[], None]]] = (
            (30, self._start_gang),
            (8, self._add_members),
            (8, self._single_pod),
            (14, self._end_gang),
            (8, self._delete_member),
            (6, self._replace_members),
            (5, self._finish_member),
            (4, self._ground.add),
            (4, self._ground.remove),
            (6, self._ground.cordon),
            (4, self._ground.taint),
            (4, self._ground.resize),
            (6, self._owners.change_min_member),
            (3, self._owners.make_the_group_anew),
            (4, self._owners.ask_for_less),
            (6, self._owners.admit),
            (2, lambda: remove_unused(self._cluster.api)),
            *([(20, self._hostile.act)] if self._hostile else []),
        )
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            act = self._random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
            self._put_right()
            try:
                act()
            except Refused as refused:  # while no PodGroups are served
                self._say(f"refused: {refused}")
            self._pause.wait(self._random.choice((0.0, 0.0, 0.05, 0.3, 1.0)))

    def calm(self) -> None:
        """Returns when nothing moves any more, and nothing waits although it fits, or after so long; what there is then is recorded."""
        self._provisioner.calm()
        self._put_right()
        self._owners.admit_all()
        if self._hostile:
            self._hostile.go()
        deadline = time.monotonic() + CALM_SECONDS
        while True:
            with suppress(AssertionError):  # it does not get quiet: it is judged as it is
                self._cluster.recorder.settle(QUIET_SECONDS, within=CALM_SECONDS)
            found = self._note_state()
            if not found or time.monotonic() > deadline:
                describe(found, self._cluster, self._rig.page, self._say)
                return
            self._say(f"still waiting: {found}")

    def _put_right(self) -> None:
        if self._rig.rolled_back.is_set():
            self._rig.rolled_back.clear()
            self._say("what the restored etcd does not know is made again")
            put_right(self._cluster, self._ground, self._gangs, self._over, self._budgets)

    def _note_state(self) -> list[str]:
        read = self._cluster.api.items
        pods, nodes, groups = read(paths.ALL_PODS), read(paths.NODES), read(paths.ALL_POD_GROUPS)
        volumes = Volumes.read(self._cluster.api)
        budgets = [asdict(each) for each in self._budgets]
        self._rig.record.note(
            "calm",
            pods=pods,
            nodes=nodes,
            groups=groups,
            budgets=budgets,
            claims=volumes.claims,
            volumes=volumes.volumes,
        )
        return waits_although_it_fits(pods, nodes, groups, volumes, self._spares)

    def _spares(self, pod: Json, waiting: Sequence[Json]) -> bool:
        return self._configuration.spares(pod, waiting, lambda pod: any(budget.covers(pod) for budget in self._budgets))

    def check_preemption(self, rounds: int) -> None:
        """Important pods come in the end; what goes for them is recorded."""
        PreemptionCheck(
            self._cluster,
            self._gangs,
            self._budgets,
            self._configuration,
            self._random,
            self._say,
            note=lambda line: self._rig.record.note("evictions", **line),
        ).run(rounds)

    def outcome(self) -> dict[str, Any]:
        """What the judges have to know of it: gangs that are over too."""
        wishes = {gang.key: asdict(gang.wish()) for gang in (*self._over, *self._gangs)}
        for wish in wishes.values():
            wish["groups"] = sorted(wish["groups"])
        return {"wishes": wishes, "labels": self._ground.labels, "excused": sorted(self._cluster.excused)}

    # What happens

    def _start_gang(self) -> None:
        """One gang, or those that start together. Of some a pod is missing, of some the PodGroup comes last."""
        if len(self._gangs) >= MOST_GANGS:
            return self._end_gang()
        self._number += 1
        gangs = draw(self._random, self._number, self._configuration.scheduler_names)
        for gang in gangs:
            self._say(f"start {gang}")
            late = self._random.random() < 0.2
            missing = self._random.choice((0, 0, 0, 1))
            if not late:
                gang.make_group(self._cluster)
            for _ in range(gang.size - missing):
                gang.make_member(self._cluster, gang.next_role())
            if late:
                gang.make_group(self._cluster)
            if self._random.random() < 0.2:
                self._add_budget(Budget(gang.namespace, gang.name, {"gang": gang.name}))
        self._gangs += gangs
        return None

    def _add_budget(self, budget: Budget) -> None:
        self._say(f"no pod of {budget.name} may be disrupted")
        self._budgets.append(budget)
        budget.make(self._cluster.api)

    def _add_members(self) -> None:
        if self._gangs:
            gang = self._random.choice(self._gangs)
            self._say(f"one more member of {gang.name}")
            gang.make_member(self._cluster, gang.next_role())

    def _single_pod(self) -> None:
        self._number += 1
        for name in too_many_singles(self._cluster.all_pods()):
            with suppress(Refused):  # it was a victim meanwhile
                self._cluster.delete_pod(name)
        self._cluster.pod(
            f"{SINGLE}{self._number}",
            labels=self._random.choice(({}, KEPT)),
            requests={"cpu": str(self._random.choice((1, 2)))},
            priority=self._random.choice((0, 0, 10)),
            preempts=self._random.random() < 0.7,
            terminationGracePeriodSeconds=self._random.choice((0, GRACE_SECONDS)),
            scheduler_name=self._random.choice(self._configuration.scheduler_names),
            tolerations=self._random.choice((None, None, TOLERATIONS)),
        )

    def _end_gang(self) -> None:
        if not self._gangs:
            return
        gang = self._gangs.pop(self._random.randrange(len(self._gangs)))
        self._say(f"end {gang.name}")
        self._over.append(gang)
        for name in gang.pods:
            self._delete_pod(gang, name)
        if not gang.lightweight:  # last, as owners do it: a fraction of a deleted group has no owner
            self._cluster.delete_pod_group(gang.name, namespace=gang.namespace)
        self._remove_budget(gang)

    def _remove_budget(self, gang: Gang) -> None:
        for budget in [each for each in self._budgets if (each.namespace, each.name) == (gang.namespace, gang.name)]:
            self._budgets.remove(budget)
            budget.remove(self._cluster.api)

    def _delete_pod(self, gang: Gang, name: str) -> None:
        with suppress(Refused):
            self._cluster.delete_pod(name, namespace=gang.namespace, grace=gang.grace)

    def _delete_member(self) -> None:
        able = [gang for gang in self._gangs if gang.pods]
        if able:
            gang = self._random.choice(able)
            name = self._random.choice(list(gang.pods))
            self._say(f"delete {name}{', which is replaced' if gang.replaced else ''}")
            self._delete_pod(gang, name)
            self._has_gone(gang, name)

    def _finish_member(self) -> None:
        """Failed members are replaced, if any are; members that succeeded are not. What is drawn does not depend on which run."""
        which, phase = self._random.random(), self._random.choice(("Succeeded", "Failed"))
        running = {
            (pod["metadata"]["namespace"], pod["metadata"]["name"])
            for pod in self._cluster.all_pods()
            if pod["spec"].get("nodeName") and not leaves(pod)
        }
        able = [(gang, name) for gang in self._gangs for name in gang.pods if (gang.namespace, name) in running]
        if not able:
            return
        gang, name = able[int(which * len(able))]
        self._say(f"{name} has {phase.lower()}")
        with suppress(Refused):  # it was a victim meanwhile
            self._cluster.api.patch(
                f"{paths.PODS.format(namespace=gang.namespace)}/{name}/status", {"status": {"phase": phase}}
            )
        if phase == "Failed" and gang.stateful:
            self._delete_pod(gang, name)  # as its controller does, which has one pod of a name
        self._has_gone(gang, name, replaced=phase == "Failed")

    def _has_gone(self, gang: Gang, name: str, *, replaced: bool = True) -> None:
        """One that comes again under its name does so later, when there is no other of it."""
        if gang.stateful and replaced:
            return
        role = gang.pods.pop(name)
        if gang.replaced and replaced:
            gang.make_member(self._cluster, role)

    def _replace_members(self) -> None:
        """What controllers do for those that were preempted, or that keep their names."""
        there = {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in self._cluster.all_pods()}
        for gang in self._gangs:
            gone = [name for name in gang.pods if (gang.namespace, name) not in there] if gang.replaced else []
            for name in gone:
                self._say(f"{name} is replaced")
                role = gang.pods.pop(name)
                gang.make_member(self._cluster, role, name if gang.stateful else "")
