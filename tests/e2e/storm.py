"""A storm: gangs, single pods, nodes and the programs themselves come and go at random; then it calms down, and is judged.

`python -m tests.e2e.storm --seed 7 --steps 200` for a long one; test_storm.py has a short one. While it blows, no history may
show what tests/e2e/history.py forbids. When it is over, nobody may wait who fits: `waits_in_vain` says who, by arithmetic
that knows nothing of plans, leases and denials.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from extender.api.schedulingv1alpha1 import GANG_GATE, LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL
from tests.e2e import api as paths
from tests.e2e.api import Json, Refused
from tests.e2e.bad_line import BadLine
from tests.e2e.build import binaries
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.history import Seen, amounts, seen
from tests.e2e.pair import Pair

NODE_CPU = 8
QUIET_SECONDS = 12.0  # longer than kube-scheduler's longest back-off, and than a denial
CALM_SECONDS = 90.0
STILL_SECONDS = 2.0
RECOVERED_SECONDS = 40.0
GATES = [{"name": GANG_GATE}]


@dataclass
class Gang:
    """min_member of its pods, each with so many cores, start together.

    lightweight: labels say so, no PodGroup. apart: no two on one node.
    """

    name: str
    min_member: int
    cpu: int
    gated: bool
    lightweight: bool
    apart: bool
    priority: int
    pods: list[str] = field(default_factory=list)
    made: int = 0


class Storm:
    def __init__(
        self, cluster: Cluster, pair: Pair, line: BadLine, seed: int, *, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self._cluster = cluster
        self._pair = pair
        self._line = line
        self._random = random.Random(seed)
        self._say = say
        self._gangs: list[Gang] = []
        self._number = 0
        self._nodes: list[str] = []
        self._pause = threading.Event()
        self._ended: dict[str, int] = {}  # gangs that are over -> the least minMember that they had
        cluster.killed = True  # it may happen at any time, and again before all is well
        cluster.recovery = RECOVERED_SECONDS
        for _ in range(6):
            self._add_node()

    def blow(self, steps: int) -> None:
        acts: Sequence[tuple[int, Callable[[], None]]] = (
            (30, self._start_gang),
            (8, self._add_members),
            (8, self._single_pod),
            (14, self._end_gang),
            (6, self._delete_member),
            (4, self._add_node),
            (4, self._remove_node),
            (6, self._cordon),
            (2, self._kill_extender),
            (2, self._end_extender),
            (2, self._kill_scheduler),
            (2, self._stop_the_clock_of_the_api_server),
            (4, self._lower_min_member),
            (4, self._trouble_on_the_line),
            (2, self._cut_the_watches),
        )
        for _ in range(steps):
            act = self._random.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
            act()
            self._pause.wait(self._random.choice((0.0, 0.0, 0.05, 0.3, 1.0)))
        self._line.quiet()

    def calm(self) -> list[str]:
        """Waits until nothing moves any more; who waits then although he fits."""
        deadline = time.monotonic() + CALM_SECONDS
        while True:
            self._cluster.recorder.settle(QUIET_SECONDS, within=CALM_SECONDS)
            nodes = self._cluster.api.items(paths.NODES)
            found = waits_in_vain(self._cluster.all_pods(), nodes, self._cluster.min_members())
            if not found or time.monotonic() > deadline:
                return found
            self._say(f"still waiting: {found}")

    def violations(self) -> list[str]:
        """What no history may show, of gangs that are over too."""
        return self._cluster.violations(self._ended)

    # What happens

    def _start_gang(self) -> None:
        self._number += 1
        size = self._random.choice((1, 2, 3, 4, 6, 8, 12))
        gang = Gang(
            name=f"gang{self._number}",
            min_member=max(1, size - self._random.choice((0, 0, 0, 1, 2))),
            cpu=self._random.choice((1, 2, 3, 4)),
            gated=self._random.random() < 0.5,
            lightweight=self._random.random() < 0.2,
            apart=size <= 4 and self._random.random() < 0.3,
            priority=self._random.choice((0, 0, 0, 0, 10)),
        )
        self._say(f"start {gang} of {size}")
        late = self._random.random() < 0.2
        if not gang.lightweight and not late:
            self._cluster.pod_group(gang.name, gang.min_member)
        missing = self._random.choice((0, 0, 0, 1))
        self._members(gang, size - missing)
        if not gang.lightweight and late:
            self._cluster.pod_group(gang.name, gang.min_member)
        self._gangs.append(gang)

    def _members(self, gang: Gang, count: int) -> None:
        for _ in range(count):
            name = f"{gang.name}-{gang.made}"
            gang.made += 1
            labels = {
                LIGHTWEIGHT_NAME_LABEL: gang.name,
                LIGHTWEIGHT_MIN_AVAILABLE_LABEL: str(gang.min_member),
            }
            self._cluster.pod(
                name,
                group="" if gang.lightweight else gang.name,
                labels={"gang": gang.name, **(labels if gang.lightweight else {})},
                requests={"cpu": str(gang.cpu)},
                priority=gang.priority,
                schedulingGates=GATES if gang.gated else [],
                affinity=_apart(gang.name) if gang.apart else None,
            )
            gang.pods.append(name)

    def _add_members(self) -> None:
        if self._gangs:
            gang = self._random.choice(self._gangs)
            self._say(f"one more member of {gang.name}")
            self._members(gang, 1)

    def _single_pod(self) -> None:
        self._number += 1
        self._cluster.pod(
            f"single{self._number}",
            requests={"cpu": str(self._random.choice((1, 2)))},
            priority=self._random.choice((0, 0, 10)),
        )

    def _end_gang(self) -> None:
        if not self._gangs:
            return
        gang = self._gangs.pop(self._random.randrange(len(self._gangs)))
        self._say(f"end {gang.name}")
        for name in gang.pods:
            self._delete_pod(name)
        if not gang.lightweight:
            self._cluster.delete_pod_group(
                gang.name
            )  # last, as owners do it: a fraction of a deleted group is nobody's
            self._ended[f"default/{gang.name}"] = gang.min_member

    def _delete_pod(self, name: str) -> None:
        with suppress(Refused):
            self._cluster.delete_pod(name)

    def _delete_member(self) -> None:
        if self._gangs:
            gang = self._random.choice(self._gangs)
            if gang.pods:
                name = gang.pods.pop(self._random.randrange(len(gang.pods)))
                self._say(f"delete {name}")
                self._delete_pod(name)

    def _add_node(self) -> None:
        self._number += 1
        name = f"node{self._number}"
        self._say(f"add {name}")
        self._cluster.node(name, cpu=str(NODE_CPU))
        self._nodes.append(name)

    def _remove_node(self) -> None:
        used = {pod["spec"].get("nodeName") for pod in self._cluster.all_pods()}
        free = [name for name in self._nodes if name not in used]
        if free and len(self._nodes) > 3:
            name = self._random.choice(free)
            self._say(f"remove {name}")
            self._nodes.remove(name)
            self._cluster.api.delete(f"{paths.NODES}/{name}")

    def _cordon(self) -> None:
        name = self._random.choice(self._nodes)
        off = self._random.random() < 0.4
        self._say(f"{'cordon' if off else 'uncordon'} {name}")
        self._cluster.api.patch(f"{paths.NODES}/{name}", {"spec": {"unschedulable": off or None}})

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

    def _lower_min_member(self) -> None:
        able = [gang for gang in self._gangs if not gang.lightweight and gang.min_member > 1]
        if able:
            gang = self._random.choice(able)
            gang.min_member -= 1
            self._say(f"minMember {gang.min_member} for {gang.name}")
            self._cluster.change_min_member(gang.name, gang.min_member)


def waits_in_vain(pods: Sequence[Json], nodes: Sequence[Json], min_members: Mapping[str, int]) -> list[str]:
    """Gangs and single pods that wait although there is room for what they lack, or would be if those of lower priority went.
    Members of a gang are alike, in priority too."""
    waiting: defaultdict[str, list[Json]] = defaultdict(list)
    running: defaultdict[str, list[str]] = defaultdict(list)  # gang -> the nodes of its members
    for pod in pods:
        now = seen(pod)
        if now.node:
            running[now.group].append(now.node)
        elif not _unheard(pod):
            waiting[now.group or f"pod {now.name}"].append(pod)
    found = []
    for name, members in sorted(waiting.items()):
        wanted = _wanted(seen(members[0]), min_members)
        if wanted is None:
            continue  # its PodGroup is not there
        lacks = max(1, wanted - len(running[name]))
        room = _room(members[0], _left(pods, nodes, _priority(members[0])), running[name])
        if lacks <= len(members) and lacks <= room:
            found.append(f"{name}: {len(members)} wait, {len(running[name])} run of {wanted}, room for {room}")
    return found


def _unheard(pod: Json) -> bool:
    """Whether it was tried last when the extender was away, and wanted to preempt: in kube-scheduler that waits for something to
    change, or five minutes, and no patch of the pod is such a thing."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any('preemption: Post "' in condition.get("message", "") for condition in conditions)


def _left(pods: Sequence[Json], nodes: Sequence[Json], priority: int) -> dict[str, int]:
    """CPU in milli on each node that takes pods, beside those of this priority and above."""
    left = {
        node["metadata"]["name"]: amounts(node["status"]["allocatable"])["cpu"]
        for node in nodes
        if not node["spec"].get("unschedulable")
    }
    for pod in pods:
        now = seen(pod)
        if now.node in left and _priority(pod) >= priority:
            left[now.node] -= now.requests["cpu"]
    return left


def _priority(pod: Json) -> int:
    return int(pod["spec"].get("priority") or 0)


def _wanted(member: Seen, min_members: Mapping[str, int]) -> int | None:
    return member.min_member or min_members.get(member.group) if member.group else 1


def _room(member: Json, free: Mapping[str, int], taken: Sequence[str]) -> int:
    """For how many like it."""
    cpu = seen(member).requests["cpu"]
    if member["spec"].get("affinity"):
        return sum(left >= cpu for node, left in free.items() if node not in taken)
    return sum(left // cpu for left in free.values() if left > 0)


def _apart(gang: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"gang": gang}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def storm(
    cluster: Cluster, folder: Path, seed: int, steps: int, say: Callable[[str], None] = lambda line: None
) -> list[str]:
    """What was wrong, a sentence each. The programs' logs are in the folder."""
    line = BadLine(cluster.plane.server, cluster.plane.ca_file, seed).start()
    try:
        with Pair.of(cluster.plane, folder, server=line.url).running() as pair:
            blown = Storm(cluster, pair, line, seed, say=say)
            blown.blow(steps)
            return [*blown.calm(), *blown.violations()]
    finally:
        line.stop()
        say(f"on the line: {', '.join(f'{count} {fault.value}' for fault, count in line.faults.items())}")


def _run(plane: ControlPlane, folder: Path, seed: int, steps: int, say: Callable[[str], None]) -> list[str]:
    """On a cluster of its own; the programs' logs stay in the folder."""
    cluster = Cluster(plane)
    cluster.recorder.start()
    try:
        return storm(cluster, folder, seed, steps, say)
    finally:
        cluster.recorder.stop()
        cluster.clean()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--storms", type=int, default=1, help="one after the other, with the seeds that follow")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    plane = ControlPlane(binaries(print), folder / "plane")
    wrong = 0
    try:
        plane.start()
        Cluster(plane).install_crd()
        for seed in range(options.seed, options.seed + options.storms):
            began = time.monotonic()
            say: Callable[[str], None] = (
                (lambda line: None)
                if options.quiet
                else (
                    lambda line: print(f"{time.monotonic() - began:6.2f} {line}", flush=True)  # noqa: B023 - said at once
                )
            )
            found = _run(plane, folder / f"storm-{seed}", seed, options.steps, say)
            wrong += bool(found)
            print(f"seed {seed}: {time.monotonic() - began:.0f} s, {found or 'nobody waits in vain'}; logs in {folder}")
    finally:
        plane.stop()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
