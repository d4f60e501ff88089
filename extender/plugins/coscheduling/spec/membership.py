"""Which group a pod belongs to.

Groups come from the PodGroup CRD by a label (its names are configuration), from kube-scheduler's own PodGroup by
spec.schedulingGroup where that is configured, and from the sources of `spec/sources`: keys of pods alone, or another system's PodGroup.
scheduler-plugins: pkg/util/podgroup.go, apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from extender.api import corev1
from extender.api.metadata_keys import NAME, AnyOf, Key
from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL
from extender.config.plugin_args import CoschedulingArgs
from extender.plugins.coscheduling.spec.field_errors import invalid
from extender.plugins.coscheduling.spec.keys import group_label
from extender.plugins.coscheduling.spec.named_groups import NAME_WANTED, is_group_name
from extender.plugins.coscheduling.spec.sources.source import KOORDINATOR, LIGHTWEIGHT, OBJECTS, Source, configured

REMEMBERED_PODS = 64


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A pod's membership. lightweight: the pods' keys are all there is, and `min_available` is what this one says of minMember.

    source: how the pod names the group; None for our own PodGroup and kube-scheduler's. invalid: what is wrong with the name. Such a
    group is lightweight, of this pod and of those with the same name; its key is short and printable, whatever the name is, and no
    valid group has it.
    """

    key: str
    lightweight: bool = False
    min_available: str = ""
    source: Source | None = None
    invalid: str = ""


def _every_pod(pod: corev1.Pod) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class GroupLabels:
    """What of a pod names its group; the first that a pod has decides.

    names: labels of PodGroups. in_tree: spec.schedulingGroup counts too. sources: those that are configured; they come after every
    object. ours: whether a pod is of a scheduler that we serve.
    """

    names: tuple[str, ...] = (POD_GROUP_LABEL,)
    in_tree: bool = False
    sources: tuple[Source, ...] = ()
    ours: Callable[[corev1.Pod], bool] = field(default=_every_pod, repr=False, compare=False)
    keys: tuple[Key[str], ...] = field(init=False, repr=False, compare=False)
    _in_order: tuple[Source, ...] = field(init=False, repr=False, compare=False)
    _names_any: AnyOf = field(init=False, repr=False, compare=False)
    _read: dict[int, tuple[corev1.Pod, GroupRef | None]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        by_pods = {source.kind for source in self.sources}  # with a key of minMember for where there is no such object
        objects = (source for source in OBJECTS if source.kind not in by_pods)
        object.__setattr__(self, "_in_order", (*objects, *self.sources, KOORDINATOR))
        object.__setattr__(self, "keys", tuple(group_label(name) for name in self.names))
        object.__setattr__(self, "_names_any", AnyOf(self.group_keys))

    @classmethod
    def of(cls, args: CoschedulingArgs) -> Self:
        return cls(args.pod_group_labels, args.in_tree_pod_groups, tuple(map(configured, args.group_sources)))

    @property
    def group_keys(self) -> tuple[Key[str], ...]:
        """The labels and annotations that may name a pod's group."""
        return (*self.keys, LIGHTWEIGHT.group, *(source.group for source in self._in_order))

    def serving(self, ours: Callable[[corev1.Pod], bool]) -> Self:
        return replace(self, ours=ours)

    def group_of(self, pod: corev1.Pod) -> GroupRef | None:
        """Remembers the pods that it was asked about last: one event, or one call, asks a dozen times about the same. A pod's object
        does not change, and is kept here while its id counts."""
        read = self._read.get(id(pod))
        if read is not None and read[0] is pod:
            return read[1]
        ref = self._group_of(pod)
        if len(self._read) >= REMEMBERED_PODS:
            self._read.clear()
        self._read[id(pod)] = pod, ref
        return ref

    def _group_of(self, pod: corev1.Pod) -> GroupRef | None:
        metadata, in_tree = pod.metadata, self.in_tree and pod.spec.scheduling_group
        if not in_tree and not self._names_any.on(metadata):
            return None
        if metadata.labels:
            for key in self.keys:
                if name := key.text(metadata):
                    return _ref(pod, name, f"label {key}")
            if (ref := self._by(LIGHTWEIGHT, pod)) is not None:
                return ref
        if in_tree and (name := in_tree.pod_group_name or ""):
            return _ref(pod, name[: NAME + 1], "spec.schedulingGroup.podGroupName")
        refs = (self._by(source, pod) for source in self._in_order)
        return next((ref for ref in refs if ref is not None), None)

    def _by(self, source: Source, pod: corev1.Pod) -> GroupRef | None:
        name = source.group.text(pod.metadata)
        if not name or (source.served_only and not self.ours(pod)):
            return None
        minimum = source.minimum.text(pod.metadata) if source.minimum is not None else ""
        if source.pair and not minimum:
            return None
        return _ref(pod, name, f"{source.group.source} {source.group}", source, minimum)


def _ref(pod: corev1.Pod, name: str, where: str, source: Source | None = None, minimum: str = "") -> GroupRef:
    """name, minimum: cut already. where: it is written."""
    if is_group_name(name):
        key = f"{pod.metadata.namespace}/{name}"
        by_pods = source is not None and source.minimum is not None and bool(minimum or not source.kind)
        return GroupRef(key, by_pods, minimum, source)
    stand_in = hashlib.blake2b(name.encode(errors="replace"), digest_size=6).hexdigest()
    wrong = f"{where}: {invalid(name, NAME_WANTED)}"
    return GroupRef(f"{pod.metadata.namespace}/!{stand_in}", lightweight=True, source=source, invalid=wrong)


def foreign_gates(pod: corev1.Pod, own: tuple[str, ...]) -> bool:
    """Whether the pod is held back by a scheduling gate that is not ours to take off."""
    return any(gate.name not in own for gate in pod.spec.scheduling_gates)
