"""Takes and renews the Lease by which replicas of the extender elect their leader, where they run apart from kube-scheduler.

Beside a kube-scheduler (manifests/sidecar) the Lease is that one's, and nothing here runs. Whether we lead is for `leadership` to say
in both shapes: it reads the Lease that is written here by its informer, so that a replica whose watch is cut acts no more.
kube-scheduler: k8s.io/client-go/tools/leaderelection
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from extender.api.coordinationv1 import Lease, LeaseSpec
from extender.client.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from extender.client.interface import API, LEASES
from extender.client.time_limit import within
from extender.config.types import NamespacedName
from extender.crash import guarded
from extender.scheduler.leadership import DEFAULT_LEASE_SECONDS, RENEW_DEADLINE

log = logging.getLogger(__name__)

# A share of the Lease's duration, as client-go's default is for 15 s.
RETRY_PERIOD = 2 / 15
JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Fitness:
    """What the Elector asks about its own replica.

    unfit: why it is of no use as a leader; empty where it is. leads: whether it sees that it leads. elected: it has the Lease;
    called after taking it and after each renewal, and must be quick. gives_up: it is about to have it no more, and another may lead from
    then on, whatever our own watch shows.
    """

    unfit: Callable[[], str]
    leads: Callable[[], bool]
    elected: Callable[[], None]
    gives_up: Callable[[], None]


class Elector:
    """One thread, from start to stop. `stop` gives the Lease up, and another replica takes it at once.

    host_name: identities begin with it. In a pod it is the pod's name, so that a Lease of that host name is the one of a process that
    ran in this pod before us: it has ended, and we go on with its Lease. clock: monotonic.
    """

    def __init__(
        self,
        api: API,
        lease: NamespacedName,
        duration_seconds: int,
        host_name: str,
        fitness: Fitness,
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._lease = lease
        self._duration = duration_seconds
        self._prefix = host_name + "_"
        self._identity = f"{self._prefix}{uuid.uuid4()}"
        self._fitness = fitness
        self._clock = clock
        self._changed = threading.Condition()  # guards _stopping and _look
        self._stopping = False
        self._look = False  # the Lease is free: there is no need to wait
        self._thread: threading.Thread | None = None
        # The thread's own:
        self._held: Lease | None = None  # as we have written it last
        self._took_at = 0.0
        self._seen: LeaseSpec | None = None  # of another holder
        self._seen_at = 0.0
        self._abstains_until = 0.0
        self._said = ""  # the last error, for the log

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        guarded("election", self._release)

    def on_lease(self, lease: Lease | None) -> None:
        """As the informer shows it, None where there is none: a free one is asked for without waiting."""
        if lease is None or not lease.spec.holder_identity:
            with self._changed:
                self._look = True
                self._changed.notify()

    def _run(self) -> None:
        while not self._stopping:
            guarded("election", self.step)
            self._wait(self._duration * RETRY_PERIOD * (1 + JITTER * random.random()))

    def _wait(self, seconds: float) -> None:
        with self._changed:
            if not self._look and not self._stopping:
                self._changed.wait(seconds)
            self._look = False

    def step(self) -> None:
        """One attempt to take or to renew the Lease, or to give it up where another replica should have it."""
        if reason := self._reason_to_abstain():
            self._abstain(reason)
            return
        if self._clock() < self._abstains_until:
            return
        try:
            with within(self._duration * (RENEW_DEADLINE - RETRY_PERIOD)):
                held = self._taken() if self._held is None else self._renewed(self._held)
        except ConflictError:  # another was faster, or the Lease was changed by hand: it is read again
            self._held = None
            self.on_lease(None)
        except ApiError as error:
            self._say(f"the Lease could not be written: {error}")
        else:
            self._said = ""
            if held:
                self._fitness.elected()

    def _reason_to_abstain(self) -> str:
        if reason := self._fitness.unfit():
            return reason
        if self._held is not None and self._clock() - self._took_at > self._duration and not self._fitness.leads():
            return "it has the Lease, and does not see it"
        return ""

    def _abstain(self, reason: str) -> None:
        """For as long as another replica may need to take the Lease that we give up. Where there is none we come back."""
        if self._held is not None:
            self._abstains_until = self._clock() + self._duration
            log.warning("Lease given up reason=%r", reason)
            self._release()

    def _renewed(self, held: Lease) -> bool:
        self._held = self._write(held, {"renewTime": _now()})
        return True

    def _taken(self) -> bool:
        try:
            lease = self._api.get(LEASES, self._lease.name, self._lease.namespace)
        except NotFoundError:
            self._took(self._made())
            return True
        if self._is_held_by_another(lease.spec):
            return False
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration,
            "acquireTime": _now(),
            "renewTime": _now(),
            "leaseTransitions": lease.spec.lease_transitions + 1,
        }
        self._took(self._write(lease, spec))
        return True

    def _took(self, lease: Lease) -> None:
        self._held, self._took_at = lease, self._clock()
        log.info("Lease taken lease=%s/%s identity=%s", self._lease.namespace, self._lease.name, self._identity)

    def _is_held_by_another(self, spec: LeaseSpec) -> bool:
        """Until it has not changed for its duration, by our own clock: those of other nodes may differ from ours."""
        if not spec.holder_identity or spec.holder_identity.startswith(self._prefix):
            return False
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock()
        return self._clock() < self._seen_at + (spec.lease_duration_seconds or DEFAULT_LEASE_SECONDS)

    def _made(self) -> Lease:
        spec = {"holderIdentity": self._identity, "leaseDurationSeconds": self._duration}
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._lease.name, "namespace": self._lease.namespace},
            "spec": {**spec, "acquireTime": _now(), "renewTime": _now(), "leaseTransitions": 0},
        }
        try:
            return self._api.create(LEASES, body, self._lease.namespace)
        except AlreadyExistsError as error:
            raise ConflictError(str(error)) from error

    def _release(self) -> None:
        """It has no holder then: the next replica need not wait until it expires."""
        held, self._held = self._held, None
        if held is None:
            return
        self._fitness.gives_up()
        try:
            with within(self._duration * RETRY_PERIOD):
                self._write(held, {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()})
            log.info("Lease given up lease=%s/%s", self._lease.namespace, self._lease.name)
        except ApiError as error:
            self._say(f"the Lease could not be given up, it expires: {error}")

    def _write(self, lease: Lease, spec: dict[str, Any]) -> Lease:
        """Only onto that version of it. Raises ConflictError."""
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        return self._api.patch(LEASES, self._lease.name, body, namespace=self._lease.namespace)

    def _say(self, error: str) -> None:
        """Once, until it works again or is another."""
        if error != self._said:
            self._said = error
            log.warning("election error=%r", error)


def _now() -> str:
    """As Kubernetes writes a MicroTime."""
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
