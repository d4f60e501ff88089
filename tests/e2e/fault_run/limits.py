"""Limits of what an extender may have, put on its processes and taken off again: descriptors, memory, threads.

Used by `nemesis`. Threads are counted by the kernel's pids controller, as a kubelet's podPidsLimit is; RLIMIT_NPROC does not bind root.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

Undo = Callable[[], None]
Pids = Sequence[int]

FEW = 8  # more descriptors than there are
LITTLE = 8 * 2**20  # more bytes of address space than there are
FEW_THREADS = 1  # more than there are
CONTROLLERS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # of version 1, and of version 2


def few_descriptors(pids: Pids) -> Undo:
    return _limit(pids, resource.RLIMIT_NOFILE, lambda pid: len(list(Path(f"/proc/{pid}/fd").iterdir())) + FEW)


def little_memory(pids: Pids) -> Undo:
    def bytes_now(pid: int) -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize() + LITTLE

    return _limit(pids, resource.RLIMIT_AS, bytes_now)


def _limit(pids: Pids, what: int, most: Callable[[int], int]) -> Undo:
    before: list[tuple[int, tuple[int, int]]] = []
    for pid in pids:
        with suppress(OSError):
            was = resource.prlimit(pid, what)
            resource.prlimit(pid, what, (most(pid), was[1]))
            before.append((pid, was))

    def give_back() -> None:
        for pid, was in before:
            with suppress(OSError):
                resource.prlimit(pid, what, was)

    return give_back


def few_threads(pids: Pids, name: str) -> Undo | None:
    """In a group of their own, of that name; None where this machine has no such controller, or none that may be written."""
    for controller in CONTROLLERS:
        group = controller / f"gang-extender-fault-run-{name}"
        with suppress(OSError):
            group.mkdir(exist_ok=True)
            if (group / "pids.max").exists():
                return _few_in(group, pids)
            group.rmdir()
    return None


def _few_in(group: Path, pids: Pids) -> Undo:
    for pid in pids:
        _move(pid, group)
    (group / "pids.max").write_text(str(int((group / "pids.current").read_text()) + FEW_THREADS))

    def give_back() -> None:
        (group / "pids.max").write_text("max")
        for pid in (group / "cgroup.procs").read_text().split():
            _move(int(pid), group.parent)
        with suppress(OSError):  # one was made meanwhile: its group stays, without a limit
            group.rmdir()

    return give_back


def _move(pid: int, group: Path) -> None:
    with suppress(OSError):  # it has ended
        (group / "cgroup.procs").write_text(str(pid))
