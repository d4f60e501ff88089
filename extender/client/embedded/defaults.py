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
    for kind in ("initContainers", "containers"):
        if isinstance(containers := spec.get(kind), list):
            spec[kind] = [_with_container_defaults(each, bool(spec.get("hostNetwork"))) for each in containers]
    if isinstance(spec.get("resources"), dict):
        spec["resources"] = _with_pod_level_requests(spec)
    pod["status"] = {"phase": "Pending", **(pod.get("status") or {})}


def _with_container_defaults(container: Any, host_network: bool) -> Any:
    """A copy. A limit is a request where there is none, and on the node's own network a port is one of the node."""
    if not isinstance(container, dict):
        return container
    changed: Raw = {}
    resources, ports = container.get("resources"), container.get("ports")
    if isinstance(resources, dict) and isinstance(resources.get("limits"), dict) and _readable(resources):
        changed["resources"] = {**resources, "requests": {**resources["limits"], **_amounts(resources)}}
    if host_network and isinstance(ports, list):
        changed["ports"] = [
            {**port, "hostPort": port.get("hostPort") or port.get("containerPort")} if isinstance(port, dict) else port
            for port in ports
        ]
    return {**container, **changed}


def _with_pod_level_requests(spec: Raw) -> Raw:
    """Of the whole pod: a limit is a request where neither it nor a container has one. Go: defaultPodRequests"""
    resources: Raw = spec["resources"]
    if not isinstance(resources.get("limits"), dict) or not _readable(resources):
        return resources
    asked: set[str] = set()
    for kind in ("initContainers", "containers"):
        containers = spec.get(kind)
        for container in containers if isinstance(containers, list) else ():
            asked |= _amounts(container.get("resources") if isinstance(container, dict) else None).keys()
    limits = {name: amount for name, amount in resources["limits"].items() if name not in asked}
    requests = {**limits, **_amounts(resources)}
    return {**resources, "requests": requests} if requests else resources


def _amounts(resources: Any) -> Raw:
    """The requests, where there are any; what is none of these is left to those that decode the pod."""
    requests = resources.get("requests") if isinstance(resources, dict) else None
    return requests if isinstance(requests, dict) else {}


def _readable(resources: Raw) -> bool:
    return isinstance(resources.get("requests") or {}, dict)
