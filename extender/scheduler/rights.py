"""The rights that the extender needs of the API server, and which of them it lacks.

The doctor asks for another user; the running extender asks for its own at the start, beside everything else, and says what is missing
as a warning: a right that is wanted an hour later only would be noticed then. They are those of manifests/rbac; a test holds the two
against each other. kube-scheduler has no counterpart: it logs what it is refused.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from extender.api.metav1 import Object, ObjectMeta
from extender.client import interface as kinds
from extender.client.errors import ApiError
from extender.client.interface import API, ResourceType
from extender.config.findings import Finding, Severity
from extender.config.types import ExtenderConfiguration, NamespacedName
from extender.scheduler.actions.leader_endpoint import ENDPOINT_SLICES, slice_name

log = logging.getLogger(__name__)

ERROR, WARNING, INFO = Severity
READ = ("get", "list", "watch")
ASK_AGAIN_SECONDS = 60.0


class _Event(Object, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta("")


EVENTS = ResourceType("events.k8s.io/v1", "events", "Event", _Event)


@dataclass(frozen=True, slots=True)
class Right:
    """One that the extender needs. namespace, name: where it is needed for one object only. lost: what happens without."""

    verbs: tuple[str, ...]
    kind: ResourceType[Any]
    lost: str
    severity: Severity = ERROR
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        """As rules of roles name it."""
        return f"{self.kind}/{self.subresource}" if self.subresource else str(self.kind)

    def missing(self, api: API, user: str = "") -> tuple[str, ...]:
        """The verbs that the user may not; empty: we ourselves. Raises ApiError."""
        where = {"namespace": self.namespace, "name": self.name, "user": user}
        return tuple(verb for verb in self.verbs if not api.may(verb, self.kind, self.subresource, **where))

    def finding(self, source: str, user: str, lost: tuple[str, ...]) -> Finding:
        """source: how the cluster was reached. lost: the verbs that are missing."""
        of = f" {self.namespace}/{self.name}" if self.name else ""
        message = f"{user or 'this user'} may not {', '.join(lost)}{of}: {self.lost}"
        fix = "apply the roles of manifests/rbac, or of the overlay that it is for"
        return Finding(self.severity, "MissingRight", source, 0, str(self), message, fix)


def rights(configuration: ExtenderConfiguration) -> Iterator[Right]:
    kind: ResourceType[Any]
    for kind in (kinds.PODS, kinds.NODES, kinds.NAMESPACES, kinds.SERVICES, kinds.PRIORITY_CLASSES, kinds.POD_GROUPS):
        yield Right(READ, kind, "the extender never gets ready")
    yield Right(READ, kinds.POD_DISRUPTION_BUDGETS, "evictions do not know of budgets", WARNING)
    volumes: tuple[ResourceType[Any], ...] = (
        kinds.PERSISTENT_VOLUMES,
        kinds.PERSISTENT_VOLUME_CLAIMS,
        kinds.STORAGE_CLASSES,
        kinds.CSI_NODES,
        kinds.CSI_DRIVERS,
        kinds.CSI_STORAGE_CAPACITIES,
        kinds.VOLUME_ATTACHMENTS,
    )
    for kind in volumes:
        yield Right(READ, kind, "a gang with volumes is planned as if it had none", WARNING)
    yield Right(("create",), kinds.PODS, "no pod is bound", subresource="binding")
    parked = "members that kube-scheduler has parked are not woken: all but the last wait"
    yield Right(("patch",), kinds.PODS, parked, subresource="status")
    if configuration.wake_by == "annotation":  # by `auto` it is asked for where it turns out to be needed
        yield Right(("patch",), kinds.PODS, parked)
    unwritten = "a gang's conditions are not written"
    yield Right(("patch",), kinds.POD_GROUPS, unwritten, WARNING, subresource="status")
    yield Right(("create", "patch"), EVENTS, "no event says why a gang waits", WARNING)
    if configuration.coscheduling_args.in_tree_pod_groups:
        for kind in (kinds.IN_TREE_POD_GROUPS, kinds.COMPOSITE_POD_GROUPS):
            yield Right(READ, kind, "pods with spec.schedulingGroup wait for a group that is not seen")
        yield Right(("patch",), kinds.IN_TREE_POD_GROUPS, unwritten, WARNING, subresource="status")
    if (lease := configuration.leader_lease) is not None:
        told = "the extender stands by for ever: nothing is scheduled"
        yield Right(READ, kinds.LEASES, told, namespace=lease.namespace, name=lease.name)
        if (service := configuration.leader_service) is not None:
            yield from _of_an_election(lease, service)
    if configuration.gang_preemption:
        lost = "a gang evicts no pod: it waits for room"
        yield Right(("delete",), kinds.PODS, lost, INFO)
        yield Right(("create",), kinds.PODS, lost, INFO, subresource="eviction")


def _of_an_election(lease: NamespacedName, service: NamespacedName) -> Iterator[Right]:
    told = "no extender becomes the leader: nothing is scheduled"
    yield Right(("create",), kinds.LEASES, told, namespace=lease.namespace)
    yield Right(("patch",), kinds.LEASES, told, namespace=lease.namespace, name=lease.name)
    told = "the Service does not lead to the leader: kube-scheduler reaches no extender"
    yield Right(("create",), ENDPOINT_SLICES, told, namespace=service.namespace)
    yield Right(("patch",), ENDPOINT_SLICES, told, namespace=service.namespace, name=slice_name(service))


class OwnRights:
    """Asked for at the first tick, and once a minute while one is missing, or the API server does not say.

    run: has it done on another thread. What evictions need is left to the evictor, which asks for itself.
    """

    def __init__(
        self,
        api: API,
        configuration: ExtenderConfiguration,
        run: Callable[[Callable[[], None]], None],
        clock: Callable[[], float],
    ) -> None:
        self._api, self._run, self._clock = api, run, clock
        self._rights = [each for each in rights(configuration) if each.severity is not INFO]
        self._lock = threading.Lock()  # guards both below
        self._ask_at = -math.inf
        self._missing: dict[Right, tuple[str, ...]] = {}

    def findings(self) -> tuple[Finding, ...]:
        with self._lock:
            missing = dict(self._missing)
        return tuple(right.finding("", "", lost) for right, lost in missing.items())

    def tick(self) -> None:
        """About once a second; returns at once."""
        with self._lock:
            if self._clock() < self._ask_at:
                return
            self._ask_at = self._clock() + ASK_AGAIN_SECONDS
        self._run(self.ask)

    def ask(self) -> None:
        """At once."""
        try:
            missing = {right: lost for right in self._rights if (lost := right.missing(self._api))}
        except ApiError as error:
            log.info("rights could not be asked for error=%s", error)
            return
        with self._lock:
            before, self._missing = self._missing, missing
            if not missing:
                self._ask_at = math.inf
        for right, lost in missing.items():
            if before.get(right) != lost:
                log.warning("right is missing verbs=%s resource=%s lost=%s", ",".join(lost), right, right.lost)
        for right in before.keys() - missing.keys():
            log.info("right is there now verbs=%s resource=%s", ",".join(right.verbs), right)
