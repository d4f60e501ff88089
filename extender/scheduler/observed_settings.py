"""What the calls of kube-scheduler show of its configuration: settings that the running extender sees to be wrong.

Scheduler tells of calls, the watch of pods that were bound. `/readyz?verbose` (check `configuration`), a metric, the page
/configuration and the doctor say what follows. Each finding says what was seen, never what a file holds, and goes as soon as a call denies
it, or an hour after it was last seen. No counterpart upstream.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cachetools import LRUCache

from extender.api import corev1
from extender.config.durations import go_duration
from extender.config.findings import Finding, Severity
from extender.config.types import ExtenderConfiguration
from extender.framework.node_sample import num_feasible_nodes_to_find
from extender.scheduler.hang_ups import HangUps

ERROR, WARNING = Severity.ERROR, Severity.WARNING
FORGOTTEN_SECONDS = 3600.0
SAMPLES, BOUND = 3, 2
"""Pods that show it: one may have been nominated, or bound by hand."""
REMEMBERED = 10_000
SHOWN = 63  # characters of a name


@dataclass(slots=True)
class _Seen:
    """at: seconds of the clock, of the last time. pods: UIDs of the last that showed it. what: in words, for the message."""

    at: float
    pods: deque[str] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    what: str = ""


class ObservedSettings:
    """Told by many threads; each call costs a comparison or two. serves: whether a scheduler's name is ours.

    bound_by_us: whether a binding that the watch has shown is one of ours, or may be one of a leader before us.
    """

    def __init__(
        self,
        configuration: ExtenderConfiguration,
        bound_by_us: Callable[[corev1.Pod], bool],
        clock: Callable[[], float],
    ) -> None:
        self._configuration, self._bound_by_us, self._clock = configuration, bound_by_us, clock
        self._lock = threading.Lock()  # guards both below; the innermost
        self._seen: dict[str, _Seen] = {}
        self._asked: LRUCache[str, bool] = LRUCache(REMEMBERED)  # UIDs that filter calls were about
        self._hang_ups = HangUps()

    def whole_nodes(self, verb: str) -> None:
        """A call brought nodes, or victims, in place of their names."""
        self._note("NotNodeCacheCapable", what=verb)

    def filtered(self, pod: corev1.Pod, offered: int, nodes: int) -> None:
        """A filter call for a pod of ours: how many of so many nodes it was about."""
        self._deny("NotNodeCacheCapable")
        with self._lock:
            self._asked[pod.uid] = True
        sample = num_feasible_nodes_to_find(0, nodes)
        if offered > sample:
            self._deny("SampleOfNodes")
        elif offered == sample < nodes and not self._is_told_of(offered, nodes):
            self._note("SampleOfNodes", pod.uid, f"{offered} of {nodes}")

    def _is_told_of(self, sample: int, nodes: int) -> bool:
        """Whether the extender's own file has the percentage, so that it is as small as it is wanted."""
        percentage = self._configuration.percentage_of_nodes_to_score
        return bool(percentage) and sample == num_feasible_nodes_to_find(percentage, nodes)

    def bind_came(self, pod: corev1.Pod) -> None:
        """A bind call for a pod, ours or not."""
        self._deny("NoBindVerb" if self._was_asked(pod) else "NotAsked")
        if not self._configuration.serves(pod.spec.scheduler_name):
            self._note("SchedulerNotServed", what=pod.spec.scheduler_name[:SHOWN])

    def bind_ended(self, seconds: float, *, hung_up: bool) -> None:
        """After how long, and whether by the caller's hanging up."""
        self._hang_ups.ended(seconds, self._clock(), hung_up=hung_up)

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """The watch shows a binding of a pod that names a scheduler of ours; or that a pod is gone, which is remembered no longer."""
        if old is not None and new is None:
            with self._lock:
                self._asked.pop(old.uid, None)
            return
        if old is None or new is None or old.node_name or not new.node_name:
            return
        if self._configuration.serves(new.spec.scheduler_name) and not self._bound_by_us(new):
            self._note("NoBindVerb" if self._was_asked(new) else "NotAsked", new.uid, new.key[: 2 * SHOWN])

    def _was_asked(self, pod: corev1.Pod) -> bool:
        with self._lock:
            return pod.uid in self._asked

    def _note(self, code: str, uid: str = "", what: str = "") -> None:
        with self._lock:
            seen = self._seen.setdefault(code, _Seen(0.0))
            seen.at, seen.what = self._clock(), what
            if uid and uid not in seen.pods:
                seen.pods.append(uid)

    def _deny(self, code: str) -> None:
        if code in self._seen:
            with self._lock:
                self._seen.pop(code, None)

    def findings(self) -> tuple[Finding, ...]:
        """What is seen now, the worst first."""
        since = self._clock() - FORGOTTEN_SECONDS
        with self._lock:
            seen = {code: each for code, each in self._seen.items() if each.at >= since}
        found = [*self._of_calls(seen), *self._of_hang_ups(since)]
        return tuple(sorted(found, key=lambda each: (each.severity is not ERROR, each.code)))

    def _of_calls(self, seen: dict[str, _Seen]) -> Iterator[Finding]:
        if whole := seen.get("NotNodeCacheCapable"):
            message = f"kube-scheduler sends whole nodes in place of names ({whole.what}): every pod waits"
            fix = "write `nodeCacheCapable: true` in each entry of the extender"
            yield _finding(ERROR, "NotNodeCacheCapable", "extenders[].nodeCacheCapable", message, fix)
        if (bound := seen.get("NoBindVerb")) and len(bound.pods) >= BOUND:
            message = f"pods that filter was asked about were bound without a bind call, as {bound.what}: members start singly"
            fix = "write an entry of the extender with `bindVerb: bind`, and let nothing else bind its pods"
            yield _finding(ERROR, "NoBindVerb", "extenders[].bindVerb", message, fix)
        if (bound := seen.get("NotAsked")) and len(bound.pods) >= BOUND:
            message = f"pods of our scheduler were bound without the extender being asked, as {bound.what}: members start singly"
            fix = "write the entries of the manifests into `extenders`, each with `ignorable: false`"
            yield _finding(ERROR, "NotAsked", "extenders", message, fix)
        if other := seen.get("SchedulerNotServed"):
            message = (
                f"kube-scheduler asks about pods of {other.what!r}, which the extender refuses: none of them starts"
            )
            fix = f"add {other.what!r} to schedulerNames in the extender's configuration"
            yield _finding(ERROR, "SchedulerNotServed", "schedulerNames", message, fix)
        if (sample := seen.get("SampleOfNodes")) and len(sample.pods) >= SAMPLES:
            message = (
                f"kube-scheduler offers a sample of the nodes, {sample.what}: a member's planned node may not be in it"
            )
            fix = "write `percentageOfNodesToScore: 10`, or more, in both configurations"
            yield _finding(WARNING, "SampleOfNodes", "percentageOfNodesToScore", message, fix)

    def _of_hang_ups(self, since: float) -> Iterator[Finding]:
        timeout = self._hang_ups.timeout(since)
        believed = self._configuration.bind_timeout_seconds
        if timeout is None or timeout > 0.95 * believed:
            return
        shown = go_duration(round(timeout, 3 if timeout < 1 else 1))
        message = (
            f"kube-scheduler hangs up on bind calls after {shown}, and the extender would hold them {believed:g} s"
        )
        fix = f"write `httpTimeout: {go_duration(believed)}` in the entry that binds, or a shorter bindTimeoutSeconds here"
        yield _finding(ERROR, "BindTimeoutDiffers", "extenders[].httpTimeout", message, fix)


def _finding(severity: Severity, code: str, place: str, message: str, fix: str) -> Finding:
    return Finding(severity, code, "", 0, place, message, fix)
