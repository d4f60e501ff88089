"""The demo's story, in four acts, told as it happens on an embedded cluster: gangs that start, wait, preempt, and want one rack.

The pods are scheduled by the in-process kube-scheduler, which calls the real service over HTTP, as a real one does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from extender.api import corev1
from extender.api.extenderv1 import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)
from extender.client.interface import API, PODS
from extender.config.types import TopologyLevel
from extender.scheduler.interface import Access, Caller, Check, Feed, Page, Verbs

CLUSTER = Path(__file__).with_name("demo.yaml")
GROUP = "scheduling.x-k8s.io/pod-group"
RACK = TopologyLevel("rack", "example.com/rack")
RACKS = {"node-1": "a", "node-2": "a", "node-3": "b", "node-4": "b"}
STEP_SECONDS = 20.0
LOOK_SECONDS = 0.02

Say = Callable[[str], None]


class StoryError(Exception):
    """What should have happened did not, in time."""


class Narrator:
    """Verbs that tell what they are asked and answer. Fulfils interface.Verbs around the real ones."""

    def __init__(self, verbs: Verbs, say: Say, began: Callable[[], None], ends: Callable[[], None]) -> None:
        """began: called when the verbs have started; ends: when they are told to go."""
        self._verbs = verbs
        self._say = say
        self._began = began
        self._ends = ends

    def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        answer = self._verbs.filter(args)
        refused = next(iter(answer.failed_and_unresolvable_nodes.values()), answer.error)
        text = f"-> {', '.join(answer.node_names)}" if answer.node_names else f"-> refused: {refused}"
        self._say(f"  POST /filter      {args.pod.name} {text}")
        return answer

    def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        answer = self._verbs.prioritize(args)
        scores = ", ".join(f"{entry.host}={entry.score}" for entry in answer)
        self._say(f"  POST /prioritize  {args.pod.name} -> {scores}")
        return answer

    def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        answer = self._verbs.preempt(args)
        nodes = ", ".join(answer.node_name_to_meta_victims)
        self._say(
            f"  POST /preempt     {args.pod.name} -> {nodes or 'no candidate: it is for the gang as a whole to evict'}"
        )
        return answer

    def bind(self, args: ExtenderBindingArgs, caller: Caller) -> ExtenderBindingResult:
        self._say(f"  POST /bind        {args.pod_name} to {args.node}: held until its gang is complete")
        started = time.monotonic()
        answer = self._verbs.bind(args, caller)
        ended = f"failed: {answer.error}" if answer.error else "bound"
        self._say(f"  POST /bind        {args.pod_name} {ended} after {1000 * (time.monotonic() - started):.0f} ms")
        return answer

    def keeps_connections(self) -> bool:
        return self._verbs.keeps_connections()

    def readiness(self) -> Sequence[Check]:
        return self._verbs.readiness()

    def liveness(self) -> Sequence[Check]:
        return self._verbs.liveness()

    def pages(self) -> Mapping[str, Page]:
        return self._verbs.pages()

    def debug(self) -> Mapping[str, Page]:
        return self._verbs.debug()

    def feed(self) -> Feed:
        return self._verbs.feed()

    def access(self) -> Access:
        return self._verbs.access()

    def start(self) -> None:
        self._verbs.start()
        self._began()

    def drain(self, message: str) -> None:
        self._ends()
        self._verbs.drain(message)

    def stop(self) -> None:
        self._verbs.stop()


class Story:
    """Creates the pods, awaits what has to happen, says it. `tell` raises StoryError."""

    def __init__(self, api: API, say: Say) -> None:
        self._api = api
        self._say = say

    def tell(self) -> None:
        self._say("Four nodes of 2 CPU, two in each of the racks a and b, and a PodGroup nginx with minMember 3.")
        self._assembles()
        self._waits_for_room()
        self._preempts()
        self._waits_for_its_rack()

    def _assembles(self) -> None:
        self._say("\nTwo of its pods are created:")
        self._create("nginx", 0, 2)
        self._await(lambda pods: sum(bool(_message(pod)) for pod in pods) == 2, "both are refused")
        for pod in self._pods():
            self._say(f"  {pod.name} is Pending: {_message(pod)}")
        self._say("\nThe third is created:")
        created = time.monotonic()
        self._create("nginx", 2, 3)
        self._await_bound("nginx", 3)
        self._say(f"\nAll three run, {1000 * (time.monotonic() - created):.0f} ms after the third was created:")
        self._show("nginx")

    def _waits_for_room(self) -> None:
        self._say("\nA second gang wants six places, and there are five left:")
        self._create("batch", 0, 6)
        self._await_refused("batch", 6, "does not fit")
        self._say("\nA pod of the first gang is deleted, and there is room for all six:")
        self._delete("nginx-0")
        self._await_bound("batch", 6)
        self._show("batch")

    def _preempts(self) -> None:
        self._say("\nThe cluster is full. A gang of a higher priority wants three places in one rack:")
        self._create("urgent", 0, 3, priority=1000)
        self._await(lambda pods: not _of("batch", pods), "the second gang is evicted whole")
        self._say("  the gang batch is evicted, all of it: a part of it would be of no use")
        self._await_bound("urgent", 3)
        self._show("urgent")

    def _waits_for_its_rack(self) -> None:
        self._say("\nThree places are left, in two racks. A gang wants three in one rack:")
        self._create("solver", 0, 3)
        self._await_refused("solver", 3, "no single rack")
        self._say("\nThe rest of the first gang ends, and a rack has room for all three:")
        for pod in _of("nginx", self._pods()):
            self._delete(pod.name)
        self._await_bound("solver", 3)
        self._show("solver")

    def _show(self, group: str) -> None:
        for pod in _of(group, self._pods()):
            rack = RACKS[pod.node_name]
            self._say(f"  {pod.name} on {pod.node_name} (rack {rack})")

    def _await_bound(self, group: str, count: int) -> None:
        self._await(
            lambda pods: sum(bool(pod.node_name) for pod in _of(group, pods)) == count, f"{group} is bound whole"
        )

    def _await_refused(self, group: str, count: int, because: str) -> None:
        self._await(
            lambda pods: sum(because in _message(pod) for pod in _of(group, pods)) == count, f"{group} is refused whole"
        )
        self._say(f"  none of it starts: {_message(_of(group, self._pods())[0])}")

    def _delete(self, name: str) -> None:
        self._say(f"  pod {name} deleted")
        self._api.delete(PODS, name, "default")

    def _create(self, group: str, first: int, end: int, priority: int = 0) -> None:
        """Its members with these numbers."""
        for number in range(first, end):
            name = f"{group}-{number}"
            self._say(f"  pod {name} created")
            container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}
            pod = {
                "metadata": {"name": name, "labels": {GROUP: group}},
                "spec": {"containers": [container], "priority": priority},
            }
            self._api.create(PODS, pod, "default")

    def _pods(self) -> Sequence[corev1.Pod]:
        return self._api.list_page(PODS).items

    def _await(self, happened: Callable[[Sequence[corev1.Pod]], bool], what: str) -> None:
        deadline = time.monotonic() + STEP_SECONDS
        pause = threading.Event()
        while not happened(self._pods()):
            if time.monotonic() > deadline:
                raise StoryError(f"not seen within {STEP_SECONDS:g} s: {what}")
            pause.wait(LOOK_SECONDS)


def _of(group: str, pods: Sequence[corev1.Pod]) -> list[corev1.Pod]:
    """Its members, in order of their names."""
    return sorted((pod for pod in pods if pod.metadata.labels.get(GROUP) == group), key=lambda pod: pod.name)


def _message(pod: corev1.Pod) -> str:
    return next((c.message for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"), "")
