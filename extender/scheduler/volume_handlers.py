"""Volumes, claims and classes behind a kube-scheduler: what plans are made by, where the extender may read them.

kube-scheduler finds, binds and awaits the volumes itself, before it calls bind. Where one of these kinds is not served, or
not to us, plans are made without volumes, and kube-scheduler's refusals are all that is known of them.
kube-scheduler: pkg/scheduler/eventhandlers.go (addAllEventHandlers)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extender.api import corev1
from extender.client.informer import InformerFactory
from extender.client.interface import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    ResourceType,
)
from extender.plugins.pod_claims import claim_uses
from extender.plugins.volume_binding.matching import fully_bound
from extender.scheduler.actions import bell
from extender.scheduler.event_handlers import Listener, ObjectHandlers

KINDS: tuple[ResourceType[Any], ...] = (
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
)


VolumesChanged = Callable[[object, object], None]
"""Told the object before and after the change; None where there was, or is, none."""


def any_volume(changed: VolumesChanged) -> Listener:
    """Of any of these kinds. The bell alone means nothing."""

    def happened(old: Any, new: Any) -> None:
        if (old if new is None else new).metadata.name != bell.NAME:
            changed(old, new)

    return happened


def watch_volumes(informers: InformerFactory, changed: VolumesChanged) -> None:
    """Before the informers start."""
    for kind in KINDS:
        informers.informer(kind, optional=True, may_be_forbidden=True).add_handler(ObjectHandlers(any_volume(changed)))


def has_unbound_claims(informers: InformerFactory, pod: corev1.Pod) -> bool:
    """Whether kube-scheduler's PreBind has volumes to wait for, as far as we may see claims."""
    claims = informers.informer(PERSISTENT_VOLUME_CLAIMS).store
    found = (claims.get(f"{pod.namespace}/{use.name}") for use in claim_uses(pod))
    return any(claim is not None and not fully_bound(claim) for claim in found)


def volumes_known(informers: InformerFactory) -> bool:
    return all(informer.has_synced and informer.state.served for informer in map(informers.informer, KINDS))
