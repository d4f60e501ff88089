"""The demo's story: a gang of three, told as it happens on an embedded cluster.

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
from extender.scheduler.interface import Caller, Check, Page, Verbs

CLUSTER = Path(__file__).with_name("demo.yaml")
GROUP = "scheduling.x-k8s.io/pod-group"
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
        return self._verbs.preempt(args)

    def bind(self, args: ExtenderBindingArgs, caller: Caller) -> ExtenderBindingResult:
        self._say(f"  POST /bind        {args.pod_name} to {args.node}: held until its gang is complete")
        started = time.monotonic()
        answer = self._verbs.bind(args, caller)
        ended = f"failed: {answer.error}" if answer.error else "bound"
        self._say(f"  POST /bind        {args.pod_name} {ended} after {1000 * (time.monotonic() - started):.0f} ms")
        return answer

    def readiness(self) -> Sequence[Check]:
        return self._verbs.readiness()

    def liveness(self) -> Sequence[Check]:
        return self._verbs.liveness()

    def pages(self) -> Mapping[str, Page]:
        return self._verbs.pages()

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
        self._say("Three nodes of 2 CPU, and a PodGroup nginx with minMember 3.")
        self._say("\nTwo of its pods are created:")
        self._create("nginx-0", "nginx-1")
        self._await(lambda pods: sum(bool(_message(pod)) for pod in pods) == 2, "both are refused")
        for pod in self._pods():
            self._say(f"  {pod.name} is Pending: {_message(pod)}")
        self._say("\nThe third is created:")
        created = time.monotonic()
        self._create("nginx-2")
        self._await(lambda pods: all(pod.node_name for pod in pods), "all three are bound")
        self._say(f"\nAll three run, {1000 * (time.monotonic() - created):.0f} ms after the third was created:")
        for pod in self._pods():
            self._say(f"  {pod.name} on {pod.node_name}")
        self._say("\nA second gang wants four places, and there are three left:")
        self._create("batch-0", "batch-1", "batch-2", "batch-3", group="batch")
        self._await(
            lambda pods: sum("does not fit" in _message(pod) for pod in pods if pod.name.startswith("batch")) == 4,
            "the second gang is refused whole",
        )
        waiting = next(pod for pod in self._pods() if pod.name.startswith("batch"))
        self._say(f"  none of it starts: {_message(waiting)}")
        self._say("\nA pod of the first gang is deleted, and there is room for all four:")
        self._api.delete(PODS, "nginx-0", "default")
        self._await(
            lambda pods: sum(bool(pod.node_name) for pod in pods if pod.name.startswith("batch")) == 4,
            "the second gang is bound whole",
        )
        for pod in self._pods():
            self._say(f"  {pod.name} on {pod.node_name}")

    def _create(self, *names: str, group: str = "nginx") -> None:
        for name in names:
            self._say(f"  pod {name} created")
            container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}
            self._api.create(
                PODS,
                {"metadata": {"name": name, "labels": {GROUP: group}}, "spec": {"containers": [container]}},
                "default",
            )

    def _pods(self) -> Sequence[corev1.Pod]:
        return self._api.list_page(PODS).items

    def _await(self, happened: Callable[[Sequence[corev1.Pod]], bool], what: str) -> None:
        deadline = time.monotonic() + STEP_SECONDS
        pause = threading.Event()
        while not happened(self._pods()):
            if time.monotonic() > deadline:
                raise StoryError(f"not seen within {STEP_SECONDS:g} s: {what}")
            pause.wait(LOOK_SECONDS)


def _message(pod: corev1.Pod) -> str:
    return next((c.message for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "False"), "")
