"""Medians beside their targets, a line each; asserts nothing. Used by the benchmarks of gangs."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict


class Table:
    """Values by who and what; `row` prints the median, the range and what it should be."""

    def __init__(self, title: str) -> None:
        load = os.getloadavg()[0]
        print(f"{title}\n  load at the start {load:.1f} on {os.cpu_count()} cores", flush=True)
        self._values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, who: str, **values: float) -> None:
        for what, value in values.items():
            self._values[who, what].append(value)
        shown = "  ".join(f"{what} {value:.2f}" for what, value in values.items())
        print(f"    {who:30s} {shown}", flush=True)

    def median(self, who: str, what: str) -> float:
        values = self._values[who, what]
        return statistics.median(values) if values else float("nan")

    def row(self, who: str, what: str, unit: str, target: str = "") -> None:
        values = self._values[who, what]
        if values:
            span = f"{min(values):.2f} to {max(values):.2f}"
            print(f"  {who:30s} {what:24s} {self.median(who, what):8.2f} {unit:6s} ({span})  {target}", flush=True)

    def ratio(self, what: str, who: str, than: str, target: str = "") -> None:
        """Of medians."""
        over = self.median(than, what)
        value = self.median(who, what) / over if over else float("nan")
        print(f"  {what}: {who} / {than} = {value:.2f}  {target}", flush=True)
