"""What VolumeBinding finds out about a pod's claims, and what it decides for them on one node.

kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/binder.go (PodVolumeClaims, PodVolumes, BindingInfo)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.api import corev1


@dataclass(frozen=True, slots=True)
class PodVolumeClaims:
    """The pod's claims by how far they are. volumes: those of the classes that delayed claims ask for, by class."""

    bound: Sequence[corev1.PersistentVolumeClaim] = ()
    delayed: Sequence[corev1.PersistentVolumeClaim] = ()
    immediate: Sequence[corev1.PersistentVolumeClaim] = ()
    volumes: Mapping[str, Sequence[corev1.PersistentVolume]] = field(default_factory=dict)


@dataclass(slots=True)
class BindingInfo:
    """A claim and the volume meant for it; once written to the API, the volume as the API answered it."""

    claim: corev1.PersistentVolumeClaim
    volume: corev1.PersistentVolume


@dataclass(slots=True)
class PodVolumes:
    """Decisions for one node. provisions: claims for which a new volume is to be made; nothing is written to the API
    by Filter, the cache is told by Reserve, the API by PreBind."""

    static_bindings: list[BindingInfo] = field(default_factory=list)
    provisions: list[corev1.PersistentVolumeClaim] = field(default_factory=list)
