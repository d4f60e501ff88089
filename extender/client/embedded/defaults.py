"""What the real API server fills in when an object is created: names, priorities, phases.

Kubernetes: pkg/apis/core/v1/defaults.go, plugin/pkg/admission/priority
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from extender.client.errors import ForbiddenError, InvalidError

Raw = dict[str, Any]

BUILT_IN_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def with_metadata(body: Mapping[str, Any], namespace: str, namespaced: bool, counter: int, now: str) -> Raw:
    """A copy with name, namespace, UID and time. The UID depends on nothing but the order of creation."""
    obj = dict(body)
    meta = obj["metadata"] = dict(obj.get("metadata") or {})
    if not meta.get("name"):
        if not meta.get("generateName"):
            raise InvalidError("metadata.name: Required value: name or generateName is required")
        meta["name"] = meta["generateName"] + suffix(str(counter))
    if namespaced:
        meta["namespace"] = namespace or meta.get("namespace") or "default"
    else:
        meta.pop("namespace", None)
    digest = hashlib.sha256(f"uid-{counter}".encode()).hexdigest()
    meta.setdefault("uid", f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}")
    meta.setdefault("creationTimestamp", now)
    return obj


def suffix(seed: str) -> str:
    """Five letters, as generateName gives them."""
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
    letters = []
    for _ in range(5):
        number, rest = divmod(number, len(alphabet))
        letters.append(alphabet[rest])
    return "".join(letters)


def with_group_priority(group: Raw, classes: Mapping[str, Raw]) -> None:
    """In place: the priority of a PodGroup's class. One that does not exist is the scheduler's to refuse."""
    spec = group.get("spec")
    found = classes.get(str(spec.get("priorityClassName"))) if isinstance(spec, dict) else None
    if isinstance(spec, dict) and found is not None and spec.get("priority") is None:
        policy = found.get("preemptionPolicy")
        defaults = {"preemptionPolicy": policy} if policy else {}
        group["spec"] = {**defaults, **spec, "priority": found.get("value", 0)}


def with_pod_defaults(pod: Raw, classes: Mapping[str, Raw]) -> None:
    """In place. Raises ForbiddenError for a priority class that does not exist."""
    spec = pod["spec"] = dict(pod.get("spec") or {})
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"
    name = spec.get("priorityClassName", "")
    if name in BUILT_IN_PRIORITIES:
        spec.setdefault("priority", BUILT_IN_PRIORITIES[name])
    elif name:
        if name not in classes:
            raise ForbiddenError(
                f'pods "{pod["metadata"]["name"]}" is forbidden: no PriorityClass with name {name} was found'
            )
        spec.setdefault("priority", classes[name].get("value", 0))
        if policy := classes[name].get("preemptionPolicy"):
            spec.setdefault("preemptionPolicy", policy)
    else:
        spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    pod["status"] = {"phase": "Pending", **(pod.get("status") or {})}
