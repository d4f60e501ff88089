"""The extenders themselves: no exception that was not expected, no memory, descriptor or held call that stays, few lists.

What a lack of memory, of descriptors or of threads makes them raise is excused, while it lasts and a moment longer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from tests.e2e.fault_run.record import Past
from tests.e2e.history import Spans, outside

COUNTERS = (
    "gang_extender_unexpected_errors_total",
    "gang_extender_plugin_errors_total",
    "gang_extender_impossible_transitions_total",
)
LACK = ("little memory", "few descriptors", "few threads")
SAMPLE_SECONDS = 3.0  # before it: what is counted at a sample may have been so at any time since the one before
LACK_SECONDS = 30.0  # after it: what failed for it is tried again, and a program that ended starts anew
MEMORY_SHARE, MEMORY_BYTES = 1.5, 64 * 2**20
LONG_SECONDS, LONG_SHARE, LONG_BYTES, LONG_DESCRIPTORS = 900.0, 1.1, 12 * 2**20, 12  # of one that has lived for so long
SETTLED_SECONDS = 60.0  # after its start an extender has read what there is
DESCRIPTORS = 40
# Of one kind of objects, in all namespaces or in one, with one selector: back-off makes seven of them, a start of the program is one,
# and the pods of a namespace that have ended are listed every five seconds while its gangs end.
LISTS_A_MINUTE = 20
LOGGED = re.compile(r"[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{3}) ")
FAILPOINT = "FailpointError"  # a failpoint was to raise
TRACEBACK = "Traceback (most recent call last)"


def errors(past: Past) -> list[str]:
    found = []
    for replica, samples in _by_process(past):
        lack = _lack(past, replica, SAMPLE_SECONDS)
        for before, after in pairwise([{"at": samples[0]["at"]}, *samples]):
            for counter in COUNTERS:
                more = after.get(counter, 0) - before.get(counter, 0)
                if more and outside(lack, before["at"] - 2, after["at"]):
                    found.append(f"the extender of {replica}: {more:g} more of {counter}")
    return found


def tracebacks(past: Past) -> list[str]:
    found = []
    for file in sorted(past.folder.glob("*/extender.log")):
        lack = _lack(past, file.parent.name)
        lines = file.read_text(errors="replace").splitlines()
        times = _times(lines, past.outcome["ended"])
        for number, line in enumerate(lines):
            since, until = times[number]
            raised = _raised(lines[number:])
            if TRACEBACK in line and FAILPOINT not in raised and outside(lack, since - 0.001, until) > until - since:
                found.append(f"{file.parent.name}/{file.name}:{number + 1}: {raised}")
    return found


def _times(lines: list[str], ended: float) -> list[tuple[float, float]]:
    """Between which moments each line was written. What follows a warning or an error belongs to it; else it is the interpreter's own,
    of a program that did not come far enough to log, and was written at any time before the next line."""
    moments = [_moment(line, ended) for line in lines]
    found: list[tuple[float, float]] = []
    until = ended
    for line, moment in zip(reversed(lines), reversed(moments), strict=True):
        found.append((0.0, until) if moment is None else (moment, moment if line[0] in "WEC" else until))
        until = moment or until
    found.reverse()
    for number, moment in enumerate(moments):
        if moment is None and number:
            since, until = found[number - 1]
            own = lines[number].startswith(TRACEBACK)  # the log indents those that belong to its lines
            found[number] = since, found[number][1] if own else until
    return found


def _lack(past: Past, replica: str, early: float = 0.0) -> Spans:
    """early: seconds before it that count as well. What is logged has its own moment, and needs none."""
    lack = past.excuses.lack(replica, LACK, LACK_SECONDS)
    return [(began - early, ended) for began, ended in lack] + _raising(past, replica)


def _raising(past: Past, replica: str) -> list[tuple[float, float]]:
    """When a failpoint raised, as it was asked to."""
    return [
        (fault["began"] - 5, fault["ended"] + 5)  # from one sample to the next
        for fault in past.faults
        if fault["name"] == "failpoint" and fault["target"] == replica and "raise" in fault["detail"] and fault["done"]
    ]


def _moment(line: str, ended: float) -> float | None:
    """Of a line of the log, which has no year; None for one of a traceback."""
    match = LOGGED.match(line)
    year = datetime.fromtimestamp(ended).year
    return datetime.strptime(f"{year}{match[1]}", "%Y%m%d %H:%M:%S.%f").timestamp() if match else None


def growth(past: Past) -> list[str]:
    """Of processes that lived on: the last quarter of their samples against the first after they had settled; less is let
    pass of one that has lived for long."""
    found = []
    for replica, samples in _by_process(past):
        settled = [each for each in samples if each["at"] > samples[0]["at"] + SETTLED_SECONDS]
        if len(settled) < 40:
            continue
        quarter = len(settled) // 4
        first, last = settled[:quarter], settled[-quarter:]
        bytes_then, bytes_now = (_least(each, "process_resident_memory_bytes") for each in (first, last))
        long = settled[-1]["at"] - settled[0]["at"] >= LONG_SECONDS
        share, more, descriptors = (
            (LONG_SHARE, LONG_BYTES, LONG_DESCRIPTORS) if long else (MEMORY_SHARE, MEMORY_BYTES, DESCRIPTORS)
        )
        if bytes_now > share * bytes_then + more:
            found.append(f"the extender of {replica}: {bytes_then / 2**20:.0f} MiB, later {bytes_now / 2**20:.0f} MiB")
        files_then, files_now = (_least(each, "process_open_fds") for each in (first, last))
        most_then = max(each.get("process_open_fds", 0) for each in first)  # a leader has twice a standby's connections
        if files_now > max(files_then + descriptors, most_then):
            found.append(f"the extender of {replica}: {files_then:g} descriptors, later {files_now:g}")
    return [*found, *_still_held(past)]


def _still_held(past: Past) -> Iterator[str]:
    """Calls at the end, when nothing has moved for long."""
    if past.outcome["calm"]:
        last = {each["replica"]: each for each in past.metrics}
        for replica, sample in last.items():
            if held := sample.get("gang_extender_held_binds", 0):
                yield f"the extender of {replica}: {held:g} calls are held in the end"


def frequent_lists(past: Past) -> list[str]:
    lists: defaultdict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for call in past.audit():
        if call["verb"] == "list" and call["writer"].endswith("-extender"):
            namespace = call["name"].partition("/")[0]
            resource = f"{call['resource']}.{call['group']}" if call["group"] else call["resource"]
            lists[call["writer"], resource, namespace, call["selects"]].append(call["at"])
    found = []
    for (lister, resource, namespace, selects), moments in lists.items():
        what = " ".join(filter(None, (resource, namespace and f"of {namespace}", selects and f"with {selects}")))
        moments.sort()
        for first, last in zip(moments, moments[LISTS_A_MINUTE:], strict=False):
            if last - first < 60:
                found.append(f"{lister}: more than {LISTS_A_MINUTE} lists of {what} within {last - first:.0f} s")
                break
    return found


def _by_process(past: Past) -> Iterator[tuple[str, list[dict[str, float]]]]:
    processes: defaultdict[tuple[str, float], list[dict[str, float]]] = defaultdict(list)
    for sample in past.metrics:
        processes[sample["replica"], sample.get("process_start_time_seconds", 0)].append(sample)
    for (replica, _), samples in processes.items():
        yield replica, samples


def _least(samples: list[dict[str, float]], name: str) -> float:
    """What it comes down to between the peaks."""
    return min(each.get(name, 0) for each in samples)


def _raised(lines: list[str]) -> str:
    """The exception at the end of a traceback, which the log indents, and the interpreter does not."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    return next((line.strip() for line in lines[1:] if line and not line[indent:].startswith((" ", "\t"))), "")[:200]
