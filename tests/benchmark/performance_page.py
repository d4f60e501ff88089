"""Pictures and tables of docs/performance.md, by the results that are kept in docs/performance: `make plots` writes them anew.

Those of a benchmark stand between two comments, `<!-- results: stream -->` and `<!-- end of results -->`; what is around them is written by
hand.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.benchmark.pictures import PICTURES
from tests.benchmark.results import Results, Run, read

BLOCK = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
NOT_MEASURED = "Not measured yet: `make performance`."
IN_TREE = "in-tree gangs"


@dataclass(frozen=True)
class Column:
    """what: was measured. than: the contender whose median is 1, where a ratio is shown in place of the value. span: with the least and the
    most of the runs."""

    head: str
    what: str
    than: str = ""
    span: bool = False

    def cell(self, results: Results, name: str) -> str:
        value = results.median(name, self.what)
        if self.than:
            over = results.median(self.than, self.what)
            return f"{value / over:.2f}" if value is not None and over and math.isfinite(value + over) else ""
        if value is None:
            return ""
        values = results.values(name, self.what)
        spread = f" ({number(min(values))} to {number(max(values))})" if self.span and len(values) > 1 else ""
        return number(value) + spread


def number(value: float) -> str:
    """With as many digits as a benchmark's are worth."""
    if not math.isfinite(value):
        return "never"
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


SECONDS = (
    Column("from the last creation, s", "seconds", span=True),
    Column("of in-tree's", "seconds", than=IN_TREE),
    Column("from the first, s", "from_first"),
    Column("of in-tree's", "from_first", than=IN_TREE),
)
CPU = (
    Column("CPU for a pod: kube-scheduler, ms", "scheduler_a_pod"),
    Column("API server and etcd", "plane_a_pod"),
    Column("extender", "cpu_per_pod"),
    Column("all", "all_a_pod"),
    Column("creating and watching", "making_a_pod"),
    Column("of the cores' time, %", "busy"),
)
SAMPLES = (
    Column("seconds", "seconds", span=True),
    Column("kube-scheduler, ms a member", "scheduler_cpu"),
    Column("extender, ms a member", "our_cpu"),
    Column("single pods on a preferred node, %", "preferred"),
    Column("zones differ by, pods", "skew"),
)
TABLES: Mapping[str, Sequence[Column]] = {
    "gangs-512": (*SECONDS, *CPU),
    "gangs-64x16": (
        *SECONDS,
        Column("slowest gang, s", "slowest"),
        Column("of in-tree's", "slowest", than=IN_TREE),
        Column("median gang, s", "median"),
        Column("of in-tree's", "median", than=IN_TREE),
        *CPU,
    ),
    "contention": (
        Column("gangs whole", "whole"),
        Column("in part", "partial"),
        Column("slowest, s", "slowest", span=True),
        Column("of in-tree's", "slowest", than=IN_TREE),
        Column("CPU of kube-scheduler, s", "scheduler_cpu"),
        Column("of the extender, s", "our_cpu"),
        Column("both, of in-tree's", "both_cpu", than=IN_TREE),
        Column("kube-scheduler then rests after, s", "rested"),
        Column("and takes CPU until then, s", "scheduler_settling"),
    ),
    "stream": (
        Column("bound pods a second", "bound_a_second", span=True),
        Column("of in-tree's", "bound_a_second", than=IN_TREE),
        Column("p50, s", "p50"),
        Column("p99, s", "p99"),
        Column("kube-scheduler, ms a pod", "scheduler_cpu"),
        Column("extender", "ours_cpu"),
        Column("API server", "apiserver_cpu"),
        Column("etcd", "etcd_cpu"),
    ),
    "gathering": (
        Column("median, ms", "p50"),
        Column("p95, ms", "p95", span=True),
        Column("the longest, ms", "worst"),
        Column("CPU of kube-scheduler, s", "scheduler_cpu"),
        Column("of the extender, s", "our_cpu"),
    ),
    **{f"samples-{nodes}": SAMPLES for nodes in (100, 1000, 5000)},
    "status-writes": (
        Column("patches of statuses", "patches", span=True),
        Column("CPU of the API server, s", "api_server_cpu", span=True),
        Column("with etcd, s", "with_etcd_cpu"),
        Column("of the extender, s", "our_cpu"),
    ),
    "size": (
        Column("ready, s", "ready"),
        Column("CPU until then, s", "ready_cpu"),
        Column("a gang that waited has places, s", "first_gang"),
        Column("memory, MiB", "memory"),
        Column("the highest, MiB", "highest"),
        Column("listed again, the highest, MiB", "highest_again"),
        Column("filter about all nodes, ms", "filter"),
    ),
    "stalls": (
        Column("longest piece, ms of CPU", "cpu"),
        Column("by the clock, ms", "clock"),
        Column("of it the collector of cycles, ms", "collected"),
    ),
}


def by_pod(run: Run) -> Run:
    """With the CPU of each program in ms for a bound pod, and of what makes and watches them; how busy the cores were, in percent."""
    values = run.values
    bound = values.get("bound")
    if not bound:
        return run
    scheduler, plane = ((values.get(what) or 0.0) * 1000 / bound for what in ("scheduler_cpu", "plane_cpu"))
    everything = scheduler + plane + (values.get("cpu_per_pod") or 0.0)
    more = {"scheduler_a_pod": scheduler, "plane_a_pod": plane, "all_a_pod": everything}
    machine, idle = values.get("machine_cpu"), values.get("machine_idle")
    if machine is not None and idle is not None:
        more |= {"making_a_pod": machine * 1000 / bound - everything, "busy": 100 * machine / (machine + idle)}
    return msgspec.structs.replace(run, values={**values, **more})


def table(results: Results, columns: Sequence[Column]) -> Iterator[str]:
    """The lines of one, in Markdown. Columns that no contender was measured by are left out."""
    results = msgspec.structs.replace(results, runs=[by_pod(run) for run in results.runs])
    names = results.names()
    shown = [column for column in columns if any(column.cell(results, name) for name in names)]
    runs = max(sum(run.name == name for run in results.runs) for name in names)
    loads = sorted(run.load for run in results.runs)
    yield f"{results.title[0].upper()}{results.title[1:]}: medians, {'one round' if runs == 1 else f'{runs} rounds in turn'},"
    yield f"{results.cores} cores, {results.day}; load {results.load:.1f} before, {loads[0]:.1f} to {loads[-1]:.1f} meanwhile."
    yield ""
    yield f"| | {' | '.join(column.head for column in shown)} |"
    yield f"|---|{'---|' * len(shown)}"
    for name in names:
        yield f"| {name} | {' | '.join(column.cell(results, name) for column in shown)} |"


def written(page: str, folder: Path) -> str:
    """The page with what the results of the folder say."""

    def block(found: re.Match[str]) -> str:
        file = folder / f"{found[2]}.json"
        lines = "\n".join(_lines(found[2], read(file)) if file.exists() else (NOT_MEASURED,))
        return f"{found[1]}\n{lines}\n\n{found[3]}"

    return BLOCK.sub(block, page)


def _lines(key: str, results: Results) -> Iterator[str]:
    for picture in PICTURES:
        if picture.key == key:
            yield f"![{picture.axis[0].upper()}{picture.axis[1:]}, by contender](performance/{picture.name})"
            yield ""
    yield from table(results, TABLES[key])


def main(page: str) -> int:
    file = Path(page)
    file.write_text(written(file.read_text(), file.with_suffix("")))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
