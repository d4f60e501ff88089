"""A foreign scheduling gate, as a queue for jobs puts it on: members are no pods for any scheduler until it is off.

Used by `kinds`, which makes such gangs, `load`, which admits them, and `liveness`, for which they do not wait.
"""

from __future__ import annotations

from tests.e2e import api as paths
from tests.e2e.api import Api, Json, Refused

FOREIGN = {"name": "example.com/queued"}
ATTEMPTS = 10


def held_back(pod: Json) -> bool:
    return FOREIGN in pod["spec"].get("schedulingGates", [])


def admit(api: Api, namespace: str, name: str) -> None:
    """Takes the gate off, and leaves the others. The extender writes gates too, so it is tried again."""
    path = f"{paths.PODS.format(namespace=namespace)}/{name}"
    for _ in range(ATTEMPTS):
        try:
            pod = api.get(path)
            if not held_back(pod):
                return
            left = [gate for gate in pod["spec"]["schedulingGates"] if gate != FOREIGN]
            version = pod["metadata"]["resourceVersion"]
            api.patch(path, {"metadata": {"resourceVersion": version}, "spec": {"schedulingGates": left or None}})
            return
        except Refused as refused:
            if refused.code == 404:
                return
            if refused.code != 409:
                raise
    raise AssertionError(f"{namespace}/{name} could not be admitted")
