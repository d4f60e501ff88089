"""Whether a parked pod is woken by a patch of its status, or only by one of its annotations.

kube-scheduler before 1.33 does not look at the status of a pod that it has parked. `wakeBy` in the configuration says
which to use; `auto` goes by the API server's version, kube-scheduler's own being unknown to us and seldom another.
"""

from __future__ import annotations

import logging

from extender.client.errors import ApiError
from extender.client.interface import API

log = logging.getLogger(__name__)

STATUS_WAKES_SINCE = (1, 33)


class WakeBy:
    """Thread-safe: what is learnt is the same whoever learns it. Asks the API server once, in the caller's thread."""

    def __init__(self, api: API, setting: str = "auto") -> None:
        self._api = api
        self._annotation: bool | None = None if setting == "auto" else setting == "annotation"

    def annotation(self) -> bool:
        if self._annotation is None:
            try:
                version = self._api.version()
            except ApiError as error:
                log.info("version of the API server not known yet error=%s", error)
                return False
            self._annotation = (0, 0) < version < STATUS_WAKES_SINCE
            log.info("parked pods are woken by %s", "annotation" if self._annotation else "status")
        return self._annotation
