"""10,000 gangs come, run and go, three times over: how many groups are left, and the memory of the process after each round.

In one process, through the plugin's own event handlers; once with gangs of labels alone, once with PodGroups deleted by cascade.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from extender.api import corev1
from extender.api.schedulingv1alpha1 import LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL, PodGroup
from extender.plugins.coscheduling.state.group_members import GONE_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node

GANGS = 10_000
MEMBERS = 2
ROUNDS = 3
AT_ONCE = 100


def _mib() -> float:
    match = re.search(r"^VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(match[1]) / 1024 if match else 0.0


def _pods(name: str, *, labels_only: bool) -> list[corev1.Pod]:
    pods = [member(f"{name}-{number}", "" if labels_only else name) for number in range(MEMBERS)]
    labels = {LIGHTWEIGHT_NAME_LABEL: name, LIGHTWEIGHT_MIN_AVAILABLE_LABEL: str(MEMBERS)}
    if labels_only:
        return [structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels)) for pod in pods]
    return pods


def come_and_go(world: World, names: Sequence[str], *, labels_only: bool) -> None:
    """As the watch tells it: created, bound, told to go, a last word of the kubelet, gone. The PodGroup goes first."""
    on_pod, stamp = world.plugin.on_pod, group().metadata.creation_timestamp
    objects: list[PodGroup] = [] if labels_only else [group(name, MEMBERS) for name in names]
    pods = [pod for name in names for pod in _pods(name, labels_only=labels_only)]
    for each in objects:
        world.plugin.on_pod_group(None, each)
    for pod in pods:
        on_pod(None, pod)
    for each in objects:
        world.plugin.on_pod_group(each, None)
    for pod in pods:
        running = on_node(pod, "n1")
        going = structs.replace(running, metadata=structs.replace(running.metadata, deletion_timestamp=stamp))
        on_pod(pod, running)
        on_pod(running, going)
        on_pod(going, going)
        on_pod(going, None)
    world.clock.now += 1.0
    world.plugin.tick()
    world.tasks.clear()
    world.verdicts.clear()
    world.woken.clear()


def forget_uids(world: World) -> None:
    """Those of deleted pods are known for a while, against late calls."""
    world.clock.now += GONE_SECONDS + 1.0
    come_and_go(world, ["last"], labels_only=False)


def _rounds(title: str, come_and_go: Callable[[World, Sequence[str]], None]) -> None:
    world = World([node("n1")])
    manager = world.plugin.manager
    gc.collect()
    print(f"{title}: {GANGS} gangs of {MEMBERS} a round; memory before {_mib():.0f} MiB")
    for number in range(ROUNDS):
        for first in range(0, GANGS, AT_ONCE):
            come_and_go(world, [f"r{number}-g{index}" for index in range(first, first + AT_ONCE)])
        forget_uids(world)
        gc.collect()
        seen = len(world.plugin.observer._seen)
        print(f"  round {number + 1}: groups left {len(manager.groups)}, notes of them {seen}, memory {_mib():.0f} MiB")


def run() -> None:
    _rounds("labels alone", lambda world, names: come_and_go(world, names, labels_only=True))
    _rounds("PodGroups, by cascade", lambda world, names: come_and_go(world, names, labels_only=False))


if __name__ == "__main__":
    run()
