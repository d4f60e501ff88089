"""What a benchmark has measured, kept as JSON, a file for each table: `make benchmark NAME RESULTS=folder` writes them.

Table notes each run here as it ends. pictures and performance_page make the pictures and the tables of docs/performance.md of these files.
"""

from __future__ import annotations

import hashlib
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec


class Run(msgspec.Struct, frozen=True):
    """name: of the contender. load: of the machine in the minute before the run's end. values: what was measured; None for what never came
    to be, as the seconds until all of a gang is bound that never was."""

    name: str
    load: float
    values: Mapping[str, float | None]


class Results(msgspec.Struct, frozen=True):
    """Of one table. day: when the first run began. load: then, of all processes of the machine."""

    title: str
    day: str
    cores: int
    load: float
    runs: Sequence[Run] = ()

    def names(self) -> list[str]:
        """Contenders, in the order of their first runs."""
        return list(dict.fromkeys(run.name for run in self.runs))

    def values(self, name: str, what: str) -> list[float]:
        """Of all runs of a contender in which it was measured."""
        found = (run.values[what] for run in self.runs if run.name == name and what in run.values)
        return [math.inf if value is None else value for value in found]

    def median(self, name: str, what: str) -> float | None:
        """None where it was not measured."""
        values = self.values(name, what)
        return statistics.median(values) if values else None


@dataclass
class Notes:
    """Results that are being made; the file is whole after each run. Nothing is kept without a folder."""

    file: Path | None
    title: str
    _runs: list[Run] = field(default_factory=list)
    _day: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    _load: float = field(default_factory=lambda: round(os.getloadavg()[0], 2))

    def add(self, name: str, values: Mapping[str, float]) -> None:
        finite = {what: round(value, 4) if math.isfinite(value) else None for what, value in values.items()}
        self._runs.append(Run(name, round(os.getloadavg()[0], 2), finite))
        if self.file is None:
            return
        results = Results(self.title, self._day, os.cpu_count() or 1, self._load, self._runs)
        whole = self.file.with_suffix(".new")
        whole.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
        whole.rename(self.file)


def notes(key: str, title: str) -> Notes:
    """key: the file's name without its ending, under the folder that BENCHMARK_RESULTS names; nothing is kept where either is empty."""
    folder = os.environ.get("BENCHMARK_RESULTS", "")
    if not (key and folder):
        return Notes(None, title)
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Notes(Path(folder) / f"{key}.json", title)


def read(file: Path) -> Results:
    """Raises msgspec.ValidationError if the file is not of this form."""
    return msgspec.json.decode(file.read_bytes(), type=Results)


def digest(file: Path) -> str:
    """What a picture says of the results that it was drawn from."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
