"""Pods that wait although they fit: the check at a fault run's end, by arithmetic that knows nothing of plans, leases and denials.

A group waits in vain where its pods are enough for what its PodGroup asks for, and there is room for what it lacks, or would be
if those of lower priority went: in one domain where it has to be one, for all groups at once where they start together.
Where a group's past decides (had it been whole?), the judge is mild: it takes the reading by which more has to fit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.e2e.api import Json
from tests.e2e.fault_run.admission import held_back
from tests.e2e.fault_run.room import Demand, fit
from tests.e2e.fault_run.volumes import NO_VOLUMES, Volumes
from tests.e2e.fault_run.wishes import ONLY_WAITING, Wish, domain, narrowest, priority_of, role_of, units, wishes
from tests.e2e.history import amounts, seen

Spares = Callable[[Json, Sequence[Json]], bool]  # a pod, for those that wait


@dataclass
class Standing:
    """Of one group: its members that wait, those that run, and what it asks for. Without a wish it is a single pod."""

    wish: Wish
    waiting: list[Json] = field(default_factory=list)
    running: list[Json] = field(default_factory=list)
    tied: Mapping[str, frozenset[str]] = field(default_factory=dict)  # UID -> nodes that its volume is reachable from

    def missing(self) -> Counter[str]:
        """Role -> how many more have to run."""
        have = Counter(map(role_of, self.running))
        return Counter({role: least - have[role] for role, least in self.wish.roles.items() if least > have[role]})

    def whole(self) -> bool:
        return len(self.running) >= self.wish.minimum and not self.missing()

    def lacks(self) -> int:
        """How many have to start at once for the group to be whole; of one that is, for any to start."""
        if not self.whole():
            return max(self.wish.minimum - len(self.running), self.missing().total())
        return self.wish.minimum if self.wish.policy == ONLY_WAITING else 1

    def demands(self) -> list[Demand] | None:
        """What has to fit; None where too few wait, or where that takes more than counting (a spread). Beyond the roles'
        minima it takes the member that is the hardest to place."""
        if any(pod["spec"].get("topologySpreadConstraints") for pod in self.waiting):
            return None
        chosen: list[Json] = []
        rest = sorted(self.waiting, key=lambda pod: (pod["metadata"]["uid"] in self.tied, _cpu(pod)))
        for role, number in self.missing().items():
            of_it = [pod for pod in rest if role_of(pod) == role][-number:]
            if len(of_it) < number:
                return None
            chosen += of_it
            rest = [pod for pod in rest if not any(pod is each for each in of_it)]
        more = self.lacks() - len(chosen)
        if more > len(rest):
            return None
        chosen += rest[len(rest) - more :]
        taken = frozenset(pod["spec"]["nodeName"] for pod in self.running)
        alike = Counter(
            (_cpu(pod), self.wish.key if _apart(pod) else "", self.tied.get(pod["metadata"]["uid"])) for pod in chosen
        )
        return [
            Demand(cpu, number, apart, taken if apart else frozenset(), only)
            for (cpu, apart, only), number in alike.items()
        ]


def waits_although_it_fits(
    all_pods: Sequence[Json],
    nodes: Sequence[Json],
    groups: Sequence[Json],
    volumes: Volumes = NO_VOLUMES,
    spares: Spares = lambda pod, waiting: False,
) -> list[str]:
    """A sentence each; groups: the PodGroups; spares: the pods that the configuration protects. Finished pods hold no room any
    more."""
    pods = [pod for pod in all_pods if not seen(pod).finished]
    known = wishes(groups, pods)
    tied = {pod["metadata"]["uid"]: only for pod in pods if (only := volumes.nodes_for(pod, nodes)) is not None}
    standings = _standings(pods, known, tied)
    found = []
    for unit in sorted(set(units(known).values())):
        if any(key not in known for key in unit):
            continue
        together = [standings.get(key) or Standing(known[key]) for key in unit]
        for at_once in [[each] for each in together] if all(each.whole() for each in together) else [together]:
            found += _judged(at_once, pods, nodes, spares)
    for standing in standings.values():
        if standing.wish.key not in known:
            found += _judged([standing], pods, nodes, spares)
    return sorted(found)


def _standings(
    pods: Sequence[Json], known: Mapping[str, Wish], tied: Mapping[str, frozenset[str]]
) -> dict[str, Standing]:
    found: dict[str, Standing] = {}
    for pod in pods:
        now = seen(pod)
        if now.group and now.group not in known:
            continue  # its PodGroup is not there
        key = now.group or f"pod {now.name}"
        standing = found.setdefault(key, Standing(known.get(key) or Wish(key, 1), tied=tied))
        if now.node:
            standing.running.append(pod)
        elif not held_back(pod):
            standing.waiting.append(pod)
    return found


def _judged(unit: Sequence[Standing], pods: Sequence[Json], nodes: Sequence[Json], spares: Spares) -> list[str]:
    """Groups that have to start at once, or one that is on its own."""
    waiting = [pod for each in unit for pod in each.waiting]
    demands: list[Demand] = []
    for each in unit:
        of_it = [] if len(unit) > 1 and each.whole() else each.demands()
        if of_it is None or not waiting:
            return []
        demands += of_it
    level = narrowest(each.wish.level for each in unit)
    staying = [pod for pod in pods if not _may_go(pod, waiting) or spares(pod, waiting)]
    free = cpu_left(staying, nodes)
    running = {pod["spec"]["nodeName"] for each in unit for pod in each.running}
    if not any(fit(demands, within) for within in domains_of(level, free, nodes, running)):
        return []
    said = "; ".join(
        f"{each.wish.key}: {len(each.waiting)} wait, {len(each.running)} run of {each.wish.minimum}" for each in unit
    )
    lacks = sum(demand.count for demand in demands)
    return [f"{said}; there is room for the {lacks} that have to start{f' in one {level}' if level else ''}"]


def domains_of(
    level: str, free: Mapping[str, int], nodes: Sequence[Json], running: set[str]
) -> Sequence[Mapping[str, int]]:
    """Each place where the whole group may be, as node -> CPU: that of its running members, if there are any."""
    if not level:
        return [free]
    where = {node["metadata"]["name"]: domain(node["metadata"].get("labels", {}), level) for node in nodes}
    if any(where.get(node) is None for node in running):
        return []
    bound = {where[node] for node in running}
    found: defaultdict[object, dict[str, int]] = defaultdict(dict)
    for node, cpu in free.items():
        if where[node] is not None and bound <= {where[node]}:
            found[where[node]][node] = cpu
    return list(found.values())


def _may_go(pod: Json, waiting: Sequence[Json]) -> bool:
    """Whether they may preempt it: all of them, and none of their own importance."""
    may_preempt = all(each["spec"].get("preemptionPolicy") != "Never" for each in waiting)
    return may_preempt and priority_of([pod]) < priority_of(waiting)


def cpu_left(pods: Sequence[Json], nodes: Sequence[Json]) -> dict[str, int]:
    """CPU in milli on each node that takes pods, beside these; less than none where the node has been given less."""
    left = {
        node["metadata"]["name"]: amounts(node["status"]["allocatable"])["cpu"]
        for node in nodes
        if not node["spec"].get("unschedulable") and not node["spec"].get("taints")
    }
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        if node in left and not seen(pod).finished:
            left[node] -= _cpu(pod)
    return left


def _apart(pod: Json) -> bool:
    """Whether no two of its group are on one node."""
    ports = [port for each in pod["spec"]["containers"] for port in each.get("ports", ()) if port.get("hostPort")]
    return bool(pod["spec"].get("affinity") or ports)


def _cpu(pod: Json) -> int:
    return seen(pod).requests["cpu"]
