"""Scenarios of `evaluate` with groups, in a few lines: issue by issue what preemption may do to gangs and for them."""

from __future__ import annotations

from typing import Any

from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL

Json = dict[str, Any]


def node(name: str, cpu: str = "1", **labels: str) -> Json:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": room}}


def pod(name: str, group: str = "", on: str = "", priority: int = 0, cpu: str = "1", **spec: Any) -> Json:
    meta: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if group:
        meta["labels"] = {POD_GROUP_LABEL: group}
    spec |= {"priority": priority, "schedulerName": "default-scheduler"}
    spec["containers"] = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    if not on:
        return {"metadata": meta, "spec": spec}
    return {"metadata": meta, "spec": {**spec, "nodeName": on}, "status": {"startTime": "2026-01-01T00:00:00Z"}}


def pod_group(name: str, min_member: int, **fields: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": min_member, **fields}}


def nodes(count: int) -> list[Json]:
    return [node(f"n{number}") for number in range(1, count + 1)]


def gang(name: str = "train", members: int = 3, priority: int = 10, **spec: Any) -> list[Json]:
    return [pod(f"{name}-{number}", name, priority=priority, **spec) for number in range(members)]


def waiting(name: str, members: list[Json], min_member: int, **scenario: Any) -> Json:
    """The first of the members is the one in question."""
    group = members[0]["metadata"]["labels"][POD_GROUP_LABEL]
    groups = [pod_group(group, min_member), *scenario.pop("podGroups", ())]
    return {"name": name, "pending": members[0], "pendingPods": members, "podGroups": groups, **scenario}


VIP = pod("vip", priority=100)
RUNNING = [pod("run-1", "run", on="n1"), pod("run-2", "run", on="n2")]
