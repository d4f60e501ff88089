"""The faults: gangs, single pods, nodes and the programs themselves come and go at random; then it calms down.

`inject` makes it, a seed gives the same acts again, though not at the same moments. `calm` and `violations` ask the judges.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.e2e import api as paths
from tests.e2e.api import Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.budgets import KEPT, Budget
from tests.e2e.fault_run.describe import describe
from tests.e2e.fault_run.drawn_configuration import DrawnConfiguration
from tests.e2e.fault_run.kinds import OTHER, Gang, draw
from tests.e2e.fault_run.kubelets import GRACE_SECONDS, leaves
from tests.e2e.fault_run.liveness import waits_although_it_fits
from tests.e2e.fault_run.nodes import TOLERATIONS, Nodes
from tests.e2e.fault_run.owners import Owners
from tests.e2e.fault_run.preemption_check import PreemptionCheck
from tests.e2e.fault_run.promises import Story, broken_promises
from tests.e2e.fault_run.volumes import Provisioner, Volumes
from tests.e2e.fault_run.wishes import ONCE_SATISFIED, Wish
from tests.e2e.faulty_connection import FaultyConnection
from tests.e2e.pair import Pair

QUIET_SECONDS = 12.0  # longer than kube-scheduler's longest back-off, and than a denial
CALM_SECONDS = 90.0
STILL_SECONDS = 2.0
RECOVERED_SECONDS = 40.0


class FaultRun:
    def __init__(
        self,
        cluster: Cluster,
        pair: Pair,
        line: FaultyConnection,
        provisioner: Provisioner,
        seed: int,
        configuration: DrawnConfiguration,
        *,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._cluster = cluster
        self._pair = pair
        self._line = line
        self._provisioner = provisioner
        self._random = random.Random(seed)
        self._configuration = configuration
        self._say = say
        self._ground = Nodes(cluster, provisioner, self._random, say)
        self._gangs: list[Gang] = []
        self._number = 0
        self._pause = threading.Event()
        self._over: list[Gang] = []
        self._owners = Owners(cluster, self._gangs, self._over, self._random, say)
        cluster.killed = True  # it may happen at any time, and again before all is well
        cluster.recovery = RECOVERED_SECONDS
        self._budgets: list[Budget] = []
        self._add_budget(Budget("default", "kept", KEPT))
        cluster.namespace(OTHER)
        for _ in range(6):
            self._ground.add()

    def inject(self, steps: int) -> None:
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
            (2, self._kill_extender),
            (2, self._end_extender),
            (2, self._kill_scheduler),
            (2, self._stop_the_clock_of_the_api_server),
            (6, self._owners.change_min_member),
            (3, self._owners.make_the_group_anew),
            (4, self._owners.ask_for_less),
            (6, self._owners.admit),
            (4, self._trouble_on_the_line),
            (2, self._cut_the_watches),
        )
        for _ in range(steps):
            act = self._random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
            act()
            self._pause.wait(self._random.choice((0.0, 0.0, 0.05, 0.3, 1.0)))
        self._line.quiet()
        self._provisioner.calm()
        self._owners.admit_all()

    def settle(self) -> None:
        """Waits until nothing moves any more."""
        self._cluster.recorder.settle(QUIET_SECONDS, within=CALM_SECONDS)

    def calm(self) -> list[str]:
        """What waits although it fits, when nothing moves any more."""
        deadline = time.monotonic() + CALM_SECONDS
        while True:
            self.settle()
            read = self._cluster.api.items
            volumes = Volumes.read(self._cluster.api)
            found = waits_although_it_fits(
                read(paths.ALL_PODS), read(paths.NODES), read(paths.ALL_POD_GROUPS), volumes, self._spares
            )
            if not found or time.monotonic() > deadline:
                describe(found, self._cluster, self._pair, self._say)
                return found
            self._say(f"still waiting: {found}")

    def _spares(self, pod: Json, waiting: Sequence[Json]) -> bool:
        return self._configuration.spares(pod, waiting, lambda pod: any(budget.covers(pod) for budget in self._budgets))

    def check_preemption(self, rounds: int) -> list[str]:
        """Needless victims of the important pods that come in the end."""
        check = PreemptionCheck(self._cluster, self._gangs, self._budgets, self._configuration, self._random, self._say)
        return check.run(rounds)

    def violations(self) -> list[str]:
        """What no history may show, of gangs that are over too."""
        known: dict[str, Wish] = {gang.key: gang.wish() for gang in (*self._over, *self._gangs)}
        loose = [key for key, wish in known.items() if wish.policy == ONCE_SATISFIED]
        least = {key: wish.min_member for key, wish in known.items()}
        found = self._cluster.violations(least, loose, self._ground.most())
        history, excused = self._cluster.recorder.history(), frozenset(self._cluster.excused)
        return found + broken_promises(
            Story(history, self._ground.labels, excused, RECOVERED_SECONDS, time.monotonic()), known
        )

    # What happens

    def _start_gang(self) -> None:
        """One gang, or those that start together. Of some a pod is missing, of some the PodGroup comes last."""
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
        self._cluster.pod(
            f"single{self._number}",
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

    def _kill_extender(self) -> None:
        self._say("kill the extender")
        self._pair.extender.kill()
        self._pair.extender.start(wait=self._random.random() < 0.5)

    def _end_extender(self) -> None:
        self._say("SIGTERM to the extender")
        self._pair.extender.stop()
        self._pair.extender.start()

    def _kill_scheduler(self) -> None:
        self._say("kill kube-scheduler")
        self._pair.scheduler.kill()
        self._pair.scheduler.start()

    def _stop_the_clock_of_the_api_server(self) -> None:
        self._say("the API server stands still")
        self._cluster.plane.apiserver.signal(signal.SIGSTOP)
        try:
            self._pause.wait(STILL_SECONDS)
        finally:
            self._cluster.plane.apiserver.signal(signal.SIGCONT)

    def _trouble_on_the_line(self) -> None:
        """Until the next time."""
        share = self._random.choice((0.0, 0.1, 0.3, 0.6))
        self._say(f"{share:.0%} of the extender's calls fail from now on")
        self._line.trouble(share)

    def _cut_the_watches(self) -> None:
        self._say("all watches are cut")
        self._line.cut()
