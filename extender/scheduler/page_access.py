"""Users that may see gangs from beyond loopback: the bearer of a token that the API server knows, as far as it may get PodGroups.

The server asks before it shows a page. Both decisions are the API server's and are kept for some seconds; without one nothing is shown.
kube-scheduler: its secure port delegates likewise (k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go)
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from cachetools import TTLCache

from extender.client.errors import ApiError
from extender.client.interface import API, POD_GROUPS, User
from extender.client.time_limit import within
from extender.scheduler.interface import AccessUnknownError, NotAuthenticatedError, NotAuthorizedError

log = logging.getLogger(__name__)

T = TypeVar("T")

KEPT_SECONDS = 10.0  # as the API server's own components: --authentication-token-webhook-cache-ttl
MOST_KEPT = 1_000  # of each decision; beyond it those that were asked longest ago go
MOST_ASKED = 8  # calls of the API server at a time: a crowd of wrong tokens takes it nothing more
REVIEW_SECONDS = 5.0
GET, LIST = "get", "list"


class PageAccess:
    """Fulfils interface.Access. Thread-safe."""

    def __init__(self, api: API, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._lock = threading.Lock()  # guards both caches; covers no call
        self._users: TTLCache[bytes, User | None] = TTLCache(MOST_KEPT, KEPT_SECONDS, timer=clock)  # by digest
        self._allowed: TTLCache[tuple[bytes, str, str], bool] = TTLCache(MOST_KEPT, KEPT_SECONDS, timer=clock)
        self._asking = threading.BoundedSemaphore(MOST_ASKED)

    def check(self, token: str, namespace: str = "", name: str = "") -> None:
        digest = hashlib.sha256(token.encode()).digest()  # no token is kept
        user = self._user(token, digest)
        if user is None:
            raise NotAuthenticatedError
        if not self._may(user, digest, namespace, name):
            raise NotAuthorizedError(refusal_of(user, namespace, name))

    def _user(self, token: str, digest: bytes) -> User | None:
        with self._lock:
            if digest in self._users:
                return self._users[digest]
        user = self._ask(lambda: self._api.user_of(token))
        with self._lock:
            self._users[digest] = user
        return user

    def _may(self, user: User, digest: bytes, namespace: str, name: str) -> bool:
        """All of a cluster to be listed; gangs of a namespace, or one of them, to be got."""
        asked = digest, namespace, name
        with self._lock:
            if asked in self._allowed:
                return self._allowed[asked]
        verb = GET if namespace else LIST
        may = self._ask(lambda: self._api.user_may(user, verb, POD_GROUPS, namespace=namespace, name=name))
        with self._lock:
            self._allowed[asked] = may
        return may

    def _ask(self, call: Callable[[], T]) -> T:
        if not self._asking.acquire(blocking=False):
            raise AccessUnknownError("too many requests wait for the API server's word; try again")
        try:
            with within(REVIEW_SECONDS):
                return call()
        except ApiError as error:
            log.warning("the rights of a page's viewer cannot be asked for: %s", error)
            raise AccessUnknownError("the API server cannot be asked for the user's rights") from error
        finally:
            self._asking.release()


def refusal_of(user: User, namespace: str, name: str) -> str:
    """In the API server's words. Go: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters (ForbiddenStatusError)"""
    verb = GET if namespace else LIST
    which = f'{POD_GROUPS} "{name}"' if name else str(POD_GROUPS)
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    what = f'resource "{POD_GROUPS.plural}" in API group "{POD_GROUPS.group}"'
    return f'{which} is forbidden: User "{user.name}" cannot {verb} {what} {where}'
