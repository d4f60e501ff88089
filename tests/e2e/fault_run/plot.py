"""A fault run over time, drawn from its record: memory, descriptors and answers, an SVG.

Used by `make faults PLOT=`; needs the extra `plots`. A line is broken where the program was away; grey is when a
fault was at work, red when one excused a gang in part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.fault_run.record import Line, Past, lines

MIB = 2**20
SAMPLE_SECONDS = 10.0  # of memory and descriptors the most in each such piece is drawn
MINUTE = 60.0
DRAWN_VERBS = (
    "filter",
    "prioritize",
)  # calls of bind are held until the rest of a gang is there, which is no time of ours
SHARES = (0.5, 0.99)

Curve = tuple[list[float], list[float]]  # minutes since the beginning; values, NaN where there is a gap


def draw(folder: Path, file: Path) -> None:
    """Raises ImportError where the extra `plots` is not installed, ValueError where the folder has no samples."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    past = Past(folder)
    samples = past.metrics
    if not samples:
        raise ValueError(f"{folder} has no metrics.jsonl: it is no fault run, or one that did not start")
    began = samples[0]["at"]
    rcParams["svg.hashsalt"] = file.name  # the same record makes the same file
    figure: Any = Figure(figsize=(9, 7), layout="constrained")
    memory, files, answers = figure.subplots(3, sharex=True)
    for replica in sorted({sample["replica"] for sample in samples}):
        of_it = [sample for sample in samples if sample["replica"] == replica]
        memory.plot(*peaks(of_it, "process_resident_memory_bytes", began, MIB), label=f"{replica} extender", lw=1)
        files.plot(*peaks(of_it, "process_open_fds", began), label=f"{replica} extender", lw=1)
    calls = [call for call in lines(folder, "calls") if call["status"] == 200]
    for verb in DRAWN_VERBS:
        of_it = [call for call in calls if call["verb"] == verb]
        for share in SHARES:
            answers.plot(*shares(of_it, share, began), label=f"{verb}, {share:.0%} at most", lw=1)
    answers.set_yscale("log")
    for axes, what in ((memory, "resident MiB"), (files, "open descriptors"), (answers, "seconds to an answer")):
        axes.set_ylabel(what)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        axes.margins(x=0.01)
        for fault in lines(folder, "faults"):
            axes.axvspan((fault["began"] - began) / MINUTE, (fault["ended"] - began) / MINUTE, color="0.92", lw=0)
        for since, until in past.excuses.at_work_on_the_leader if past.settings.get("commit") else ():
            axes.axvspan((since - began) / MINUTE, (until - began) / MINUTE, color="tab:red", alpha=0.15, lw=0)
    answers.set_xlabel("minutes")
    figure.savefig(file, format="svg", metadata={"Date": None})


def peaks(samples: Sequence[Line], name: str, began: float, unit: float = 1.0) -> Curve:
    """The most of each piece of time; a gap where there was no sample."""
    most: dict[int, float] = {}
    for sample in samples:
        if name in sample:
            piece = int((sample["at"] - began) / SAMPLE_SECONDS)
            most[piece] = max(sample[name] / unit, most.get(piece, 0.0))
    return _curve(most, SAMPLE_SECONDS)


def shares(calls: Iterable[Line], share: float, began: float) -> Curve:
    """Of each minute, within what time that share of its calls was answered."""
    times: defaultdict[int, list[float]] = defaultdict(list)
    for call in calls:
        times[int((call["began"] - began) / MINUTE)].append(call["ended"] - call["began"])
    found = {minute: sorted(all_of_it) for minute, all_of_it in times.items()}
    return _curve({minute: each[int(share * (len(each) - 1))] for minute, each in found.items()}, MINUTE)


def _curve(values: dict[int, float], seconds: float) -> Curve:
    pieces = range(max(values, default=-1) + 1)
    return [piece * seconds / MINUTE for piece in pieces], [values.get(piece, float("nan")) for piece in pieces]
