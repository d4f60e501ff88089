"""What a gang waits for whose members our gate holds: nobody refuses them, so it is said on the PodGroup and in an event.

Noted by Admission, told by the plugin's tick once it has been so for about a second: a gang that is being created says
nothing. kube-scheduler says it of each pod, in the condition PodScheduled.
"""

from __future__ import annotations

from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.collaborators import WAITING, Verdict, Verdicts
from extender.plugins.coscheduling.pod_group_manager import Group, PodGroupManager

TOLD_AFTER_SECONDS = 1.0


class WaitNotes:
    """The manager's lock guards the notes."""

    def __init__(self, manager: PodGroupManager, verdicts: Verdicts) -> None:
        self._manager = manager
        self._verdicts = verdicts
        self._notes: dict[str, tuple[float, str]] = {}  # key -> since when, what

    def note(self, group: Group, pod: corev1.Pod) -> None:
        """The gates are shut for the pod's gang. Lock held."""
        if not group.gated:
            return
        text = self._cause(group, pod)
        known = self._notes.get(group.key)
        if known is None or known[1] != text:
            self._notes[group.key] = (self._manager.clock(), text)

    def drop(self, key: str) -> None:
        """It was planned or denied. Lock held."""
        self._notes.pop(key, None)

    def _cause(self, group: Group, pod: corev1.Pod) -> str:
        """Constant while the cause is the same: no count of members."""
        spec = self._manager.spec(group)
        if spec is None:
            return messages.POD_GROUP_NOT_FOUND
        if spec.invalid:
            return spec.invalid
        if len(self._manager.siblings(group, pod.spec.scheduler_name)) < spec.min_member:
            return messages.waiting_for_members(spec.min_member)
        return messages.waiting_for_gates(spec.min_member)

    def tell(self) -> None:
        """Those that have stood for a while. About once a second."""
        manager = self._manager
        told: list[tuple[Group, str, corev1.Pod]] = []
        with manager.lock:
            until = manager.clock() - TOLD_AFTER_SECONDS
            for key, (since, text) in list(self._notes.items()):
                group = manager.groups.get(key)
                if group is None or not group.gated:
                    del self._notes[key]
                elif since <= until:
                    del self._notes[key]
                    told.append((group, text, min((group.members[uid].pod for uid in group.gated), key=_name)))
        for group, text, member in told:
            self._verdicts.decided(group.pod_group, group.key, Verdict(False, WAITING, text), member)


def _name(pod: corev1.Pod) -> str:
    return pod.name
