"""Medians beside their targets, a line each; asserts nothing. Used by the benchmarks of gangs.

With BENCHMARK_RESULTS each run is kept as well: results.
"""

from __future__ import annotations

import os
import statistics
from collections import defaultdict

from tests.benchmark.results import notes


class Table:
    """Values by name and what was measured; `row` prints the median, the range and what it should be. key: the results' file."""

    def __init__(self, title: str, key: str = "") -> None:
        load = os.getloadavg()[0]
        print(f"{title}\n  load at the start {load:.1f} on {os.cpu_count()} cores", flush=True)
        self._values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._notes = notes(key, title)

    def add(self, name: str, **values: float) -> None:
        for what, value in values.items():
            self._values[name, what].append(value)
        self._notes.add(name, values)
        shown = "  ".join(f"{what} {value:.2f}" for what, value in values.items())
        print(f"    {name:30s} {shown}", flush=True)

    def median(self, name: str, what: str) -> float:
        values = self._values[name, what]
        return statistics.median(values) if values else float("nan")

    def row(self, name: str, what: str, unit: str, target: str = "") -> None:
        values = self._values[name, what]
        if values:
            span = f"{min(values):.2f} to {max(values):.2f}"
            print(f"  {name:30s} {what:24s} {self.median(name, what):8.2f} {unit:6s} ({span})  {target}", flush=True)

    def ratio(self, what: str, name: str, than: str, target: str = "") -> None:
        """Of medians."""
        over = self.median(than, what)
        value = self.median(name, what) / over if over else float("nan")
        print(f"  {what}: {name} / {than} = {value:.2f}  {target}", flush=True)
