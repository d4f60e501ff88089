"""A plain JSON client for the tests' own calls: no types, no cache, nothing of the extender's client under test.

Used by cluster, history and the tests. One per user, so that roles can be tried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3

Json = dict[str, Any]

PODS = "/api/v1/namespaces/{namespace}/pods"
NODES = "/api/v1/nodes"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{namespace}/events"
POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/podgroups"
ALL_PODS = "/api/v1/pods"
ALL_POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """The API server said no."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Api:
    """Calls with one bearer token. Thread-safe."""

    def __init__(self, server: str, ca_file: Path, token: str, *, timeout: float = 30) -> None:
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}"}
        self._http = urllib3.PoolManager(ca_certs=str(ca_file), retries=False, timeout=timeout, maxsize=8)

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: Any
    ) -> Json:
        answer = self._http.request(
            method,
            self._server + path,
            fields=query if query and method == "GET" else None,
            body=None if body is None else json.dumps(body).encode(),
            headers={**self._headers, "Content-Type": content_type},
        )
        if answer.status >= 300:
            raise Refused(answer.status, answer.data.decode(errors="replace"))
        decoded: Json = json.loads(answer.data)
        return decoded

    def get(self, path: str, **query: Any) -> Json:
        return self.call("GET", path, **query)

    def text(self, path: str) -> str:
        """What is no JSON, as /metrics."""
        answer = self._http.request("GET", self._server + path, headers=self._headers)
        if answer.status >= 300:
            raise Refused(answer.status, answer.data.decode(errors="replace"))
        return answer.data.decode()

    def items(self, path: str, **query: Any) -> list[Json]:
        found: list[Json] = self.get(path, **query)["items"]
        return found

    def create(self, path: str, body: Mapping[str, Any]) -> Json:
        return self.call("POST", path, body)

    def send(self, path: str, body: bytes) -> int:
        """Creates what Python's own JSON can neither write nor read; the status of the answer."""
        headers = {**self._headers, "Content-Type": "application/json"}
        return self._http.request("POST", self._server + path, body=body, headers=headers).status

    def delete(self, path: str, **options: Any) -> Json:
        return self.call("DELETE", path, {"gracePeriodSeconds": 0, **options})

    def patch(self, path: str, body: Mapping[str, Any]) -> Json:
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def ready(self) -> bool:
        try:
            return self._http.request("GET", self._server + "/readyz", headers=self._headers, timeout=2).status == 200
        except (urllib3.exceptions.HTTPError, OSError):
            return False

    def watch(self, path: str, resource_version: str, **query: str) -> urllib3.BaseHTTPResponse:
        """The open stream of a watch, a JSON event a line; the caller closes it. query: fieldSelector and the like."""
        return self._http.request(
            "GET",
            self._server + path,
            fields={"watch": "true", "resourceVersion": resource_version, **query},
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=None),
        )

    def close(self) -> None:
        self._http.clear()
