"""The last part of a fault run: when all is calm, pods and gangs of the highest priority come, and find little room.

Nothing else happens meanwhile, so that what was there before each is known, and `needless` can say whether the right ones
had to go for it. Used by `run`; the rules are those of docs/preemption.md.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field

from tests.e2e import api as paths
from tests.e2e.api import Json
from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.budgets import KEPT, Budget
from tests.e2e.fault_run.drawn_configuration import AS_SHIPPED, DrawnConfiguration
from tests.e2e.fault_run.kinds import Gang
from tests.e2e.fault_run.kubelets import GRACE_SECONDS
from tests.e2e.fault_run.liveness import cpu_left, domains_of, waits_although_it_fits
from tests.e2e.fault_run.room import Demand, fit
from tests.e2e.fault_run.wishes import priority_of
from tests.e2e.history import seen

ABOVE_ALL = 20
QUIET_SECONDS = 3.0
WITHIN_SECONDS = 60.0

Chosen = Callable[[Json], bool]


@dataclass(frozen=True)
class Before:
    """The cluster as it was when the pod, or the gang, came. minimums: group -> how many of it have to run."""

    pods: Sequence[Json]
    nodes: Sequence[Json]
    minimums: dict[str, int] = field(default_factory=dict)
    budgets: Sequence[Budget] = ()
    configuration: DrawnConfiguration = AS_SHIPPED

    def kept(self, pod: Json) -> bool:
        return any(budget.covers(pod) for budget in self.budgets)

    def spares(self, pod: Json, waiting: Sequence[Json]) -> bool:
        return self.configuration.spares(pod, waiting, self.kept)


@dataclass(frozen=True)
class Comer:
    """A single pod, or a gang that needs all of its pods. level: one domain of it has to hold them."""

    name: str
    cpu: int
    count: int = 1
    gang: bool = False
    level: str = ""


def needless(comer: Comer, before: Before, victims: Collection[str]) -> list[str]:
    """What went for it and need not have, a sentence each; victims: UIDs."""
    gone = [pod for pod in before.pods if pod["metadata"]["uid"] in victims]
    if not gone:
        return []
    said = f"{comer.name} came, and {', '.join(sorted(pod['metadata']['name'] for pod in gone))} went"
    if _fits(comer, before, lambda pod: False):
        return [f"{said}, though there was room"]
    if not _fits(comer, before, lambda pod: priority_of([pod]) < ABOVE_ALL):
        return [f"{said}, and even with all others gone there is no room"]
    return [f"{said}, {why}" for why in _others_would_do(comer, before, gone)]


def _others_would_do(comer: Comer, before: Before, gone: Sequence[Json]) -> list[str]:
    """Budgets are spared first, then important pods, then gangs."""
    found = []
    if comer.gang and before.configuration.keeps_budgets and any(map(before.kept, gone)):
        found.append("some of which a budget protects that an eviction has to keep")
    if not before.configuration.breaks_gangs and (broken := _broken(before, gone)):
        found.append(f"which breaks {', '.join(broken)}, though no gang may be broken")
    if any(map(before.kept, gone)) and _fits(comer, before, lambda pod: _lone(pod) and not before.kept(pod)):
        found.append("some of which a budget protects, though others would do")
    most = max(priority_of([pod]) for pod in gone)

    def spared_less(pod: Json) -> bool:
        return _lone(pod) and not before.kept(pod) and priority_of([pod]) <= most

    if (broken := _broken(before, gone)) and _fits(comer, before, spared_less):
        found.append(f"which breaks {', '.join(broken)}, though pods of no gang would do")
    return found


def _lone(pod: Json) -> bool:
    return not seen(pod).group and priority_of([pod]) < ABOVE_ALL


def _broken(before: Before, gone: Sequence[Json]) -> list[str]:
    """Gangs that ran, and have fewer than they need. One that needs one is none."""
    ran = Counter(seen(pod).group for pod in before.pods if pod["spec"].get("nodeName"))
    went = Counter(seen(pod).group for pod in gone)
    needed = {group: count for group in went if group and (count := before.minimums.get(group, 1)) > 1}
    return sorted(group for group, count in needed.items() if ran[group] >= count > ran[group] - went[group])


def _fits(comer: Comer, before: Before, may_go: Chosen) -> bool:
    staying = [pod for pod in before.pods if not may_go(pod)]
    free = cpu_left(staying, before.nodes)
    demand = [Demand(comer.cpu * 1000, comer.count)]
    return any(fit(demand, within) for within in domains_of(comer.level, free, before.nodes, set()))


class PreemptionCheck:
    def __init__(
        self,
        cluster: Cluster,
        gangs: Sequence[Gang],
        budgets: Sequence[Budget],
        configuration: DrawnConfiguration,
        dice: random.Random,
        say: Callable[[str], None],
        note: Callable[[Json], None],
    ) -> None:
        self._cluster = cluster
        self._minimums = {gang.key: gang.wish().minimum for gang in gangs}
        self._budgets = budgets
        self._configuration = configuration
        self._dice = dice
        self._say = say
        self._note = note

    def run(self, rounds: int) -> None:
        """Each round is noted: what there was, what came, what went, and what waits in the end."""
        self._delete_waiting_pods()
        self._fill()
        for number in range(rounds):
            self._delete_waiting_pods()
            before = self._now()
            comer = self._comer(f"important{number}")
            self._say(f"{comer}")
            self._make(comer)
            waits = self._waits_although_it_fits(comer)
            there = {pod["metadata"]["uid"] for pod in self._cluster.all_pods()}
            victims = sorted({pod["metadata"]["uid"] for pod in before.pods} - there)
            state = {"pods": before.pods, "nodes": before.nodes, "minimums": before.minimums}
            budgets = [asdict(budget) for budget in before.budgets]
            self._note({**state, "budgets": budgets, "comer": asdict(comer), "victims": victims, "waits": waits})

    def _waits_although_it_fits(self, comer: Comer) -> list[str]:
        """Once nothing moves any more."""
        deadline = time.monotonic() + WITHIN_SECONDS
        while True:
            self._cluster.recorder.settle(QUIET_SECONDS, within=WITHIN_SECONDS)
            now, groups = self._now(), self._cluster.api.items(paths.ALL_POD_GROUPS)
            judged = waits_although_it_fits(now.pods, now.nodes, groups, spares=now.spares)
            found = [line for line in judged if f"default/{comer.name}:" in line]
            if not found or time.monotonic() > deadline:
                return found

    def _delete_waiting_pods(self) -> None:
        """Else the room that one leaves would be another's."""
        for pod in self._cluster.all_pods():
            if not pod["spec"].get("nodeName"):
                self._cluster.delete_pod(pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
        self._cluster.recorder.settle(QUIET_SECONDS, within=WITHIN_SECONDS)

    def _fill(self) -> None:
        """With single pods, so that there is a choice of victims: small ones, important ones, some under the budget."""
        before = self._now()
        for node, cpu in cpu_left(before.pods, before.nodes).items():
            for number in range(cpu // 1000):
                labels = self._dice.choice(({}, KEPT))
                priority = self._dice.choice((0, 0, 10))
                self._cluster.pod(
                    f"fill-{node}-{number}",
                    labels=labels,
                    requests={"cpu": "1"},
                    priority=priority,
                    nodeName=node,
                    terminationGracePeriodSeconds=self._dice.choice((0, GRACE_SECONDS)),
                )

    def _now(self) -> Before:
        pods = [pod for pod in self._cluster.all_pods() if not seen(pod).finished]
        return Before(pods, self._cluster.api.items(paths.NODES), self._minimums, self._budgets, self._configuration)

    def _comer(self, name: str) -> Comer:
        if self._dice.random() < 0.5:
            return Comer(name, self._dice.choice((2, 3, 4, 6)))
        count, level = self._dice.choice((2, 3, 4)), self._dice.choice(("", "", "zone", "rack"))
        return Comer(name, self._dice.choice((2, 3, 4)), count, gang=True, level=level)

    def _make(self, comer: Comer) -> None:
        gated = comer.gang and self._dice.random() < 0.5
        gang = Gang(comer.name, comer.count, comer.count, comer.cpu, gated, False, False, ABOVE_ALL, level=comer.level)
        if not comer.gang:
            self._cluster.pod(comer.name, requests={"cpu": str(comer.cpu)}, priority=ABOVE_ALL)
            return
        gang.make_group(self._cluster)
        for _ in range(comer.count):
            gang.make_member(self._cluster, "")
