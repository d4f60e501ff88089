"""Which group a pod belongs to.

Groups come from the PodGroup CRD by a label (its names are configuration), or, with no CRD at all, from the two
lightweight labels of scheduler-plugins v0.18 or Koordinator's annotations, or from kube-scheduler's own PodGroup by
spec.schedulingGroup where that is configured.
scheduler-plugins: pkg/util/podgroup.go, apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from extender.api import corev1
from extender.api.metadata_keys import NAME, Key
from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL
from extender.plugins.coscheduling.spec.field_errors import invalid
from extender.plugins.coscheduling.spec.keys import (
    KOORDINATOR_MIN_AVAILABLE,
    KOORDINATOR_NAME,
    LIGHTWEIGHT_MIN_AVAILABLE,
    LIGHTWEIGHT_NAME,
    group_label,
)
from extender.plugins.coscheduling.spec.named_groups import NAME_WANTED, is_group_name


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A pod's membership. `min_available` is set for lightweight groups only, where the labels are all there is.

    invalid: what is wrong with the name. Such a group is lightweight, of this pod and of those with the same name; its key
    is short and printable, whatever the name is, and no valid group has it.
    """

    key: str
    lightweight: bool = False
    min_available: str = ""
    of_koordinator: bool = False
    invalid: str = ""


@dataclass(frozen=True, slots=True)
class GroupLabels:
    """The pod labels that name a PodGroup; the first that a pod has decides. in_tree: spec.schedulingGroup counts too."""

    names: tuple[str, ...] = (POD_GROUP_LABEL,)
    in_tree: bool = False
    keys: tuple[Key[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(group_label(name) for name in self.names))

    def group_of(self, pod: corev1.Pod) -> GroupRef | None:
        metadata = pod.metadata
        if metadata.labels:
            for key in self.keys:
                if name := key.text(metadata):
                    return _ref(pod, name, f"label {key}")
            name, minimum = LIGHTWEIGHT_NAME.text(metadata), LIGHTWEIGHT_MIN_AVAILABLE.text(metadata)
            if name and minimum:
                return _ref(pod, name, f"label {LIGHTWEIGHT_NAME}", minimum, lightweight=True)
        if self.in_tree and pod.spec.scheduling_group and (name := pod.spec.scheduling_group.pod_group_name or ""):
            return _ref(pod, name[: NAME + 1], "spec.schedulingGroup.podGroupName")
        if metadata.annotations and (name := KOORDINATOR_NAME.text(metadata)):
            minimum = KOORDINATOR_MIN_AVAILABLE.text(metadata)
            where = f"annotation {KOORDINATOR_NAME}"
            return _ref(pod, name, where, minimum, lightweight=True, of_koordinator=True)
        return None


def _ref(
    pod: corev1.Pod,
    name: str,
    where: str,
    min_available: str = "",
    *,
    lightweight: bool = False,
    of_koordinator: bool = False,
) -> GroupRef:
    """name: cut already. where: it is written."""
    if is_group_name(name):
        return GroupRef(f"{pod.metadata.namespace}/{name}", lightweight, min_available, of_koordinator)
    stand_in = hashlib.blake2b(name.encode(errors="replace"), digest_size=6).hexdigest()
    return GroupRef(
        f"{pod.metadata.namespace}/!{stand_in}",
        lightweight=True,
        of_koordinator=of_koordinator,
        invalid=f"{where}: {invalid(name, NAME_WANTED)}",
    )


def foreign_gates(pod: corev1.Pod, own: tuple[str, ...]) -> bool:
    """Whether the pod is held back by a scheduling gate that is not ours to take off."""
    return any(gate.name not in own for gate in pod.spec.scheduling_gates)
