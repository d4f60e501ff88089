"""What the statuses of PodGroups cost the API server while 64 gangs of 16 start: written as shipped, and not at all, in turn.

The real etcd, API server and kube-scheduler; no kubelet, whose own writes would make the share smaller. A round is from the first pod's
creation to some seconds after the last binding, by when the last counts are written; the API server does nothing else of note then
(`idle`). Target: at most 5 % more CPU. On a busy machine the rounds differ by more than that: so what one patch costs by itself is
measured as well, and the share that the patches make by it. Without Go, or binaries named by KUBEBUILDER_ASSETS, it says so.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial

from tests.benchmark.contenders import (
    GATED,
    PLAIN,
    Contender,
    Running,
    cpu_seconds,
    for_each_round,
    group_body,
    only,
    plane_seconds,
    program_of,
    rival_plane,
)
from tests.benchmark.gang_load import Load, Watcher, clear, create_gangs, create_nodes
from tests.benchmark.table import Table
from tests.e2e.control_plane import ControlPlane

NODES = 1000
LOAD = Load(gangs=64, members=16)
WITHIN = 120.0
PROBES = 200
"""Patches of one status in a row."""
WRITTEN_SECONDS = 8.0
"""After the last binding: a group's counts are written at most once in 5 s."""
SETTLED_SECONDS = 5.0
"""What was cleared after the round before is no longer worked on."""
PATCHES = re.compile(
    r'^apiserver_request_total\{(?=[^}]*resource="podgroups")(?=[^}]*subresource="status")(?=[^}]*verb="PATCH")[^}]*\} (\S+)',
    re.MULTILINE,
)


def _patches(plane: ControlPlane) -> float:
    """Of PodGroups' statuses, that the API server has answered so far."""
    api = plane.api()
    try:
        return sum(float(each) for each in PATCHES.findall(api.text("/metrics")))
    finally:
        api.close()


def _cpu_of_a_patch(plane: ControlPlane) -> float:
    """Of the API server, in seconds: of a status with one condition, as a start writes it."""
    api = plane.api()
    path, body = group_body(PLAIN, "probe", LOAD.members)
    api.create(path, body)
    condition = {"type": "Scheduled", "status": "True", "reason": "GangScheduled", "message": "the gang starts"}
    try:
        began = cpu_seconds(plane.apiserver.pid)
        for number in range(PROBES):
            at = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
            status = {
                "bound": f"{number}/16",
                "scheduled": number,
                "conditions": [{**condition, "lastTransitionTime": at}],
            }
            api.patch(f"{path}/probe/status", {"status": status})
        return (cpu_seconds(plane.apiserver.pid) - began) / PROBES
    finally:
        api.delete(f"{path}/probe")
        api.close()


def _round(plane: ControlPlane, table: Table | None, side: tuple[Contender, bool], number: int) -> None:
    """table: None for a round that is not counted."""
    contender, writes = side
    if not writes:
        contender = replace(contender, program=program_of("tests.benchmark.statusless_extender"))
    with Running(contender, plane, plane.folder / f"{_name(side)}-{number}") as running:
        watcher = Watcher(plane)
        time.sleep(SETTLED_SECONDS)
        patches, server, both, ours = _counters(plane, running)
        create_gangs(plane, contender, LOAD)
        bound = watcher.await_bound(LOAD.expected, WITHIN)
        time.sleep(WRITTEN_SECONDS)
        after = _counters(plane, running)
        watcher.stop()
        began = cpu_seconds(plane.apiserver.pid)
        time.sleep(SETTLED_SECONDS)
        values = {
            "bound": len(bound),
            "patches": after[0] - patches,
            "api_server_cpu": after[1] - server,
            "with_etcd_cpu": after[2] - both,
            "our_cpu": after[3] - ours,
            "idle": (cpu_seconds(plane.apiserver.pid) - began) / SETTLED_SECONDS,
        }
        if table is not None:
            table.add(_name(side), **values)
    clear(plane, contender)


def _counters(plane: ControlPlane, running: Running) -> tuple[float, float, float, float]:
    return _patches(plane), cpu_seconds(plane.apiserver.pid), plane_seconds(plane), running.our_seconds


def _name(side: tuple[Contender, bool]) -> str:
    return f"{side[0].name}, {'statuses' if side[1] else 'no statuses'}"


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "4")
        table = Table(
            f"{LOAD.gangs} gangs of {LOAD.members}, shuffled, on {NODES} nodes, first member created to all written",
            "status-writes",
        )
        patch = _cpu_of_a_patch(plane)
        contenders = only(GATED, PLAIN)
        sides = tuple((contender, writes) for contender in contenders for writes in (True, False))
        _round(plane, None, sides[0], -1)  # an API server does some things once
        for_each_round(sides, partial(_round, plane, table))
        for side in sides:
            table.row(_name(side), "patches", "", "of statuses")
            table.row(_name(side), "api_server_cpu", "s")
            table.row(_name(side), "with_etcd_cpu", "s")
            table.row(_name(side), "our_cpu", "s")
            table.row(_name(side), "idle", "s/s", "of the API server")
        for contender in contenders:
            patches, alone = (
                table.median(_name((contender, True)), "patches"),
                table.median(_name((contender, False)), "api_server_cpu"),
            )
            share = 100 * patches * patch / alone
            print(
                f"  {contender.name}: {patches:.0f} patches of {patch * 1e3:.1f} ms by themselves: {share:.1f} % of {alone:.2f} s",
                flush=True,
            )
            table.ratio("api_server_cpu", _name((contender, True)), _name((contender, False)), "at most 1.05")


if __name__ == "__main__":
    run()
