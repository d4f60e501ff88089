"""The one endpoint of the Service by which kube-scheduler reaches the leading extender, where the extender runs apart from it.

The Service has no selector: that would lead to each ready replica, and a replica that is not ready because it does not lead would
keep rollouts and drains waiting for ever (docs/design/0055). The leader writes the EndpointSlice itself.
kube-scheduler has no counterpart: nothing calls it. Kubernetes: k8s.io/api/discovery/v1/types.go
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from typing import Any

from extender.api.metav1 import Object, ObjectMeta
from extender.client.errors import ApiError, NotFoundError
from extender.client.interface import API, ResourceType
from extender.client.time_limit import within
from extender.config.types import NamespacedName

log = logging.getLogger(__name__)

AGAIN_SECONDS = 10.0  # what another has made of it is put right by then
CALL_SECONDS = 1.0
PORT_NAME = "https"  # of the Service
MANAGED_BY = "gang-extender.dev"


class EndpointSlice(Object, frozen=True, gc=False):
    """discovery.k8s.io/v1. What it says is written, and never read."""

    metadata: ObjectMeta


ENDPOINT_SLICES = ResourceType("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", EndpointSlice)


def slice_name(service: NamespacedName) -> str:
    """Fixed, so that the right to change it can name it."""
    return f"{service.name}-leader"


class LeaderEndpoint:
    """service: that without a selector. address, port: where our verbs are reached. leading: whether we lead."""

    def __init__(
        self,
        api: API,
        service: NamespacedName,
        address: str,
        port: int,
        leading: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._service = service
        self._address, self._port = address, port
        self._leading = leading
        self._clock = clock
        self._written_at: float | None = None  # None where we did not lead since

    def elected(self) -> None:
        """The Lease has been taken or renewed: written as soon as we lead by it, and every ten seconds."""
        now = self._clock()
        if not self._leading():
            self._written_at = None
        elif self._written_at is None or now - self._written_at >= AGAIN_SECONDS:
            self._write(first=self._written_at is None)

    def _write(self, *, first: bool) -> None:
        where = {"name": slice_name(self._service), "namespace": self._service.namespace}
        try:
            with within(CALL_SECONDS):
                try:
                    self._api.patch(ENDPOINT_SLICES, where["name"], self._says(), namespace=where["namespace"])
                except NotFoundError:
                    self._api.create(ENDPOINT_SLICES, self._object(), where["namespace"])
        except ApiError as error:
            log.warning("endpoint of the leader not written service=%s error=%s", self._service.name, error)
            return
        self._written_at = self._clock()
        if first:
            log.info("Service leads here service=%s address=%s port=%d", self._service.name, self._address, self._port)

    def _says(self) -> dict[str, Any]:
        return {
            "endpoints": [{"addresses": [self._address], "conditions": {"ready": True}}],
            "ports": [{"name": PORT_NAME, "port": self._port, "protocol": "TCP"}],
        }

    def _object(self) -> dict[str, Any]:
        labels = {
            "kubernetes.io/service-name": self._service.name,
            "endpointslice.kubernetes.io/managed-by": MANAGED_BY,
            "app.kubernetes.io/part-of": "gang-extender",
        }
        return {
            "apiVersion": ENDPOINT_SLICES.api_version,
            "kind": ENDPOINT_SLICES.kind,
            "metadata": {"name": slice_name(self._service), "labels": labels},
            "addressType": f"IPv{ipaddress.ip_address(self._address).version}",
            **self._says(),
        }
