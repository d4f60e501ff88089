"""The fault run's own calls: to the one API server or the other, and again until one of them can answer.

What is done to the programs must not end the run; a 4xx is an answer as ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import urllib3

from tests.e2e.api import Api, Json, Refused

PATIENCE_SECONDS = 90.0
AGAIN_SECONDS = 0.3
TIMEOUT_SECONDS = 10.0


class PatientApi(Api):
    """Goes to the next server after each failure."""

    def __init__(self, servers: Sequence[str], ca_file: Path, token: str) -> None:
        super().__init__(servers[0], ca_file, token, timeout=TIMEOUT_SECONDS)
        self._servers = servers
        self._turn = 0
        self.watches: Callable[[str, int], None] = lambda path, server: None  # is told which server each watch is of

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: Any
    ) -> Json:
        """Where an answer was lost, what is there already was made by us, and what is gone was deleted by us."""
        deadline, again = time.monotonic() + PATIENCE_SECONDS, False
        while True:
            try:
                return super().call(method, path, body, content_type, **query)
            except Refused as refused:
                if again and (method, refused.code) == ("DELETE", 404):
                    return {}
                if again and (method, refused.code) == ("POST", 409):
                    return self.call("GET", f"{path}/{body['metadata']['name']}")
                if refused.code < 500 and refused.code != 429:
                    raise
                error: Exception = refused
            except (urllib3.exceptions.HTTPError, OSError) as broken:
                error = broken
            if time.monotonic() > deadline:
                raise error
            again = True
            self._next()
            time.sleep(AGAIN_SECONDS)

    def watch(self, path: str, resource_version: str, **query: str) -> urllib3.BaseHTTPResponse:
        while True:
            try:
                server = self._turn % len(self._servers)
                stream = super().watch(path, resource_version, **query)
                self.watches(path, server)
                return stream
            except (urllib3.exceptions.HTTPError, OSError):
                self._next()
                time.sleep(AGAIN_SECONDS)

    def _next(self) -> None:
        self._turn += 1
        self._server = self._servers[self._turn % len(self._servers)]
