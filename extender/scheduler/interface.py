"""What the server asks of the scheduler, and what the scheduler asks of the server.

The server knows nothing else of this room; the scheduler knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.api.extenderv1 import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)


class Caller(Protocol):
    """The other end of one held call."""

    def on_gone(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls back once, from any thread, when the caller has hung up. Returns what cancels the watch."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """One line of /readyz or /livez: `[+]name ok`, or `[-]name failed: reason`."""

    name: str
    ok: bool
    reason: str = ""


GANGS = "/gangs"
GANG = "/gangs/NAMESPACE/NAME"
CONFIGURATION = "/configuration"
POD = "/pods/NAMESPACE/NAME"
DRAIN = "/drain/NODE"
WHAT_IF = "/whatif"
DEBUG_CACHE = "/debug/cache"
DEBUG_GANGS = "/debug/gangs"
DEBUG_GANG = "/debug/gangs/NAMESPACE/NAME"

Page = Callable[..., object]
"""What to show as JSON. GANG and POD are called with `namespace/name`, DRAIN with a node's name: they answer None for what is not there.
WHAT_IF is called with the bytes of a question, and, of a caller that may see one namespace only, with that; DEBUG_CACHE with whether the
API server is asked. Raises NotSyncedError, QuestionError, BusyError."""


class QuestionError(Exception):
    """What is asked makes no sense. The text names the place."""


class BusyError(Exception):
    """Other questions are being answered, and take their time."""


class FeedClosedError(Exception):
    """Nothing more comes: the extender ends, or the viewer is closed."""


class TooManyViewersError(Exception):
    """As many look at the page as may at a time."""


class Viewer(Protocol):
    """One page that is open. Belongs to one thread."""

    def next(self, seconds: float) -> bytes:
        """The next message, at most so much later; empty where nothing has changed. JSON in one line, whole at first and where the
        viewer was too slow, else what has changed since the last. Raises FeedClosedError."""
        ...

    def close(self) -> None:
        """From any thread: `next` raises FeedClosedError from then on. Harmless a second time."""
        ...


class Feed(Protocol):
    """What the page shows, as it changes. Nothing is computed while there is no viewer, and each change once for all of them."""

    def open(self, namespace: str = "") -> Viewer:
        """namespace: shows its gangs alone, and no nodes; empty: the whole cluster. Raises TooManyViewersError."""
        ...


class NotAuthenticatedError(Exception):
    """The API server knows no user by that token."""


class NotAuthorizedError(Exception):
    """The user may not see that; the text is the API server's."""


class AccessUnknownError(Exception):
    """Whether the user may cannot be found out now."""


class Access(Protocol):
    """Which users may look at the pages from elsewhere."""

    def check(self, token: str, namespace: str = "", name: str = "") -> None:
        """Whether the bearer of the token may see the gangs of the namespace, one of them, or, without a namespace, all. Raises
        NotAuthenticatedError, NotAuthorizedError, AccessUnknownError."""
        ...


class NotSyncedError(Exception):
    """There is nothing to show yet: the whole cluster has not been seen since the start. missing: the informers, with the reason."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(f"the extender has not seen the whole cluster yet: {'; '.join(missing)}")


class NotCacheCapableError(Exception):
    """kube-scheduler's entry for the extender lacks `nodeCacheCapable: true`. missing: the field of the request that then is null."""

    def __init__(self, missing: str) -> None:
        super().__init__(f"the extender needs nodeCacheCapable: true, and got no {missing}")


class Verbs(Protocol):
    """The extender's four verbs. No call raises for an outcome of scheduling: the answers carry it.

    prioritize and preempt, whose answers have no place for an error, raise NotCacheCapableError.
    """

    def filter(self, args: ExtenderArgs) -> ExtenderFilterResult: ...

    def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]: ...

    def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult: ...

    def bind(self, args: ExtenderBindingArgs, caller: Caller) -> ExtenderBindingResult:
        """Blocks while the pod is held. Ends early when the caller is gone, at its deadline, or on drain."""
        ...

    def keeps_connections(self) -> bool:
        """Whether further calls are for this replica. Else a connection ends with its answer: a new one leads to the replica that leads."""
        ...

    def readiness(self) -> Sequence[Check]: ...

    def liveness(self) -> Sequence[Check]:
        """What only a new process can mend; nothing that the API server or another kube-scheduler may be the cause of.

        But for the check `kube-scheduler`: that the one that asks has an extender that can answer.
        """
        ...

    def pages(self) -> Mapping[str, Page]:
        """What operators may look at and ask, by path: those above."""
        ...

    def debug(self) -> Mapping[str, Page]:
        """What is looked at where the extender itself is in doubt, by path: DEBUG_CACHE, DEBUG_GANGS, DEBUG_GANG."""
        ...

    def feed(self) -> Feed:
        """What the page shows."""
        ...

    def access(self) -> Access:
        """Which users may see pages, by the API server's word."""
        ...

    def start(self) -> None:
        """Starts informers and timers; returns at once."""
        ...

    def drain(self, message: str) -> None:
        """Answers every held bind that has not begun to commit, at once, with `message`; refuses new ones.

        Returns when an eviction that has begun is at its end.
        """
        ...

    def stop(self) -> None:
        """Ends every thread that start made."""
        ...
