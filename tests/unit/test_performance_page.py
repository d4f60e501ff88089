"""docs/performance.md shows what is kept of the benchmarks: its tables are made of it, and its pictures were."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmark import pictures, results
from tests.benchmark.performance_page import BLOCK, NOT_MEASURED, TABLES, Column, by_pod, table, written
from tests.benchmark.results import Results, Run
from tests.benchmark.table import Table
from tests.documented import PROJECT

PAGE = (PROJECT / "docs" / "performance.md").read_text()
KEPT = PROJECT / "docs" / "performance"
MADE = {file.stem for file in KEPT.glob("*.json")}
DRAWN = [picture for picture in pictures.PICTURES if picture.key in MADE]


def test_it_says_what_is_kept() -> None:
    assert written(PAGE, KEPT) == PAGE, "make plots"


def test_each_benchmark_is_on_it_once() -> None:
    assert sorted(found[2] for found in BLOCK.finditer(PAGE)) == sorted(TABLES)
    assert TABLES.keys() >= MADE


@pytest.mark.parametrize("picture", DRAWN, ids=lambda picture: picture.name)
def test_a_picture_was_drawn_of_what_is_kept(picture: pictures.Picture) -> None:
    said = re.findall(r"<dc:description>([^<]*)</dc:description>", (KEPT / picture.name).read_text())
    assert said == [pictures.drawn_of(KEPT / f"{picture.key}.json")], "make plots"


def test_no_picture_is_left_over() -> None:
    assert {file.name for file in KEPT.glob("*.svg")} == {picture.name for picture in DRAWN}


MEASURED = Results(
    title="gangs",
    day="2026-01-05",
    cores=2,
    load=0.5,
    runs=[
        Run("ours", 1.0, {"seconds": 2.0, "partial": 0}),
        Run("in-tree gangs", 1.5, {"seconds": 4.0, "partial": None}),
        Run("ours", 2.0, {"seconds": 3.0, "partial": 0}),
        Run("in-tree gangs", 2.5, {"seconds": 6.0, "partial": None}),
    ],
)
COLUMNS = (
    Column("seconds", "seconds", span=True),
    Column("of in-tree's", "seconds", than="in-tree gangs"),
    Column("in part", "partial"),
    Column("not measured", "unmeasured"),
)


def test_a_table_has_medians_what_they_are_of_and_no_empty_column() -> None:
    assert list(table(MEASURED, COLUMNS)) == [
        "Gangs: medians, 2 rounds in turn,",
        "2 cores, 2026-01-05; load 0.5 before, 1.0 to 2.5 meanwhile.",
        "",
        "| | seconds | of in-tree's | in part |",
        "|---|---|---|---|",
        "| ours | 2.50 (2 to 3) | 0.50 | 0 |",
        "| in-tree gangs | 5 (4 to 6) | 1.00 | never |",
    ]


def test_cpu_is_shown_by_pod_and_how_busy_the_cores_were() -> None:
    """0.5 s of kube-scheduler, 2 s of the API server, 250 times 2 ms of the extender, and 0.25 s of the benchmark itself; idle for 1 s."""
    values = {"bound": 250, "scheduler_cpu": 0.5, "plane_cpu": 2.0, "cpu_per_pod": 2.0}
    values |= {"machine_cpu": 3.25, "machine_idle": 1.0}
    run = by_pod(Run("ours", 1.0, values))
    assert {what: run.values[what] for what in run.values.keys() - values.keys()} == {
        "scheduler_a_pod": 2.0,
        "plane_a_pod": 8.0,
        "all_a_pod": 12.0,
        "making_a_pod": 1.0,
        "busy": pytest.approx(76.47, abs=0.01),
    }


def test_a_run_in_which_nothing_was_bound_has_no_cpu_by_pod() -> None:
    values = {"bound": None, "scheduler_cpu": 0.5, "plane_cpu": 2.0}
    assert by_pod(Run("ours", 1.0, values)).values == values


def test_what_is_measured_is_kept_run_by_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What never came to be too: JSON has no infinity."""
    monkeypatch.setenv("BENCHMARK_RESULTS", str(tmp_path / "made"))
    measured = Table("gangs", "gangs-512")
    measured.add("ours", seconds=1.25)
    first = results.read(tmp_path / "made" / "gangs-512.json")
    measured.add("ours", seconds=float("inf"))
    second = results.read(tmp_path / "made" / "gangs-512.json")
    assert [first.values("ours", "seconds"), second.values("ours", "seconds")] == [[1.25], [1.25, float("inf")]]
    assert [file.name for file in (tmp_path / "made").iterdir()] == ["gangs-512.json"]


@pytest.mark.parametrize(
    ("folder", "key"),
    [pytest.param("", "gangs-512", id="no folder is named"), pytest.param("kept", "", id="a table without a key")],
)
def test_nothing_is_kept_unasked(folder: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCHMARK_RESULTS", folder)
    Table("gangs", key).add("ours", seconds=1.25)
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_measured_is_named(tmp_path: Path) -> None:
    page = "above\n<!-- results: stream -->\nold\n<!-- end of results -->\nbelow\n"
    made = f"above\n<!-- results: stream -->\n\n{NOT_MEASURED}\n\n<!-- end of results -->\nbelow\n"
    assert written(page, tmp_path) == made
    assert written(made, tmp_path) == made
