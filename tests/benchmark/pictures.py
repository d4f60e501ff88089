"""`make plots`: the pictures of docs/performance.md, an SVG for each, drawn from the results that are kept in docs/performance.

`python -m tests.benchmark.pictures FOLDER` draws what results there are in the folder, and writes beside them. Bars are medians; where a
bar is one value, a line through its end goes from the least to the most of the runs. Needs the extra `plots`. A picture says of which
results it is, so that a test finds one that is older than its results.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmark.results import Results, digest, read

OURS, OTHERS = "#3465a4", "#9a9996"  # a bar of one value
PARTS = ("#9a9996", "#3465a4", "#e9b96e", "#8f5902")


@dataclass(frozen=True)
class Picture:
    """key: of the results. parts: what was measured, each with its word in the legend, one after the other in each bar."""

    key: str
    axis: str
    parts: Mapping[str, str]
    suffix: str = ""

    @property
    def name(self) -> str:
        return f"{self.key}{self.suffix}.svg"


BOTH = {"scheduler_cpu": "kube-scheduler", "our_cpu": "gang-extender"}
ALL = {
    "scheduler_cpu": "kube-scheduler",
    "ours_cpu": "gang-extender",
    "apiserver_cpu": "kube-apiserver",
    "etcd_cpu": "etcd",
}
LAST_TO_BOUND = "seconds from the last creation until all are bound"
PICTURES = (
    Picture("gangs-512", LAST_TO_BOUND, {"seconds": ""}),
    Picture("gangs-64x16", LAST_TO_BOUND, {"seconds": ""}),
    Picture("contention", "seconds from a gang's last creation until it is bound, the slowest", {"slowest": ""}),
    Picture("contention", "CPU until 12 gangs are bound, s", BOTH, "-cpu"),
    Picture("stream", "bound pods a second", {"bound_a_second": ""}),
    Picture("stream", "CPU for a bound pod, ms", ALL, "-cpu"),
    Picture("gathering", "time until a single pod is bound, p95, ms", {"p95": ""}),
    *(Picture(f"samples-{nodes}", "CPU for a member, ms", BOTH) for nodes in (100, 1000, 5000)),
)


def drawn_of(file: Path) -> str:
    """What a picture of these results says of itself."""
    return f"{file.name} {digest(file)}"


def draw(folder: Path) -> Iterator[Path]:
    """The files that were written."""
    for picture in PICTURES:
        file = folder / f"{picture.key}.json"
        if file.exists():
            yield _draw(picture, read(file), drawn_of(file), folder / picture.name)


def _draw(picture: Picture, results: Results, source: str, file: Path) -> Path:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = file.name  # the same numbers make the same file
    rcParams["svg.fonttype"] = "none"
    names = [name for name in reversed(results.names()) if _totals(results, name, picture.parts)]
    figure: Any = Figure(figsize=(8, 0.42 * len(names) + 1.3), layout="constrained")
    axes = figure.subplots()
    ends = _bars(axes, results, names, picture.parts)
    for index, name in enumerate(names):
        totals = _totals(results, name, picture.parts)
        if len(picture.parts) == 1 and len(totals) > 1:
            axes.plot([totals[0], totals[-1]], [index, index], color="black", linewidth=1)
        axes.text(
            max(ends[index], totals[-1] if len(picture.parts) == 1 else 0), index, f"  {ends[index]:.3g}", va="center"
        )
    axes.margins(x=0.1)
    axes.set_xlim(left=0)
    axes.set_xlabel(picture.axis)
    axes.set_title(results.title, fontsize=10)
    if len(picture.parts) > 1:
        figure.legend(loc="outside lower center", ncols=len(picture.parts), fontsize=8)
    figure.savefig(file, metadata={"Date": None, "Creator": None, "Description": source})
    return file


def _bars(axes: Any, results: Results, names: Sequence[str], parts: Mapping[str, str]) -> Sequence[float]:
    """Where each bar ends."""
    ends = [0.0] * len(names)
    colours: Sequence[Any] = PARTS
    if len(parts) == 1:
        colours = ([OURS if name.startswith(("ours", "plain", "gated")) else OTHERS for name in names],)
    for (what, label), colour in zip(parts.items(), colours, strict=False):
        widths = [results.median(name, what) or 0.0 for name in names]
        axes.barh(names, widths, left=ends, label=label, color=colour, height=0.7)
        ends = [start + width for start, width in zip(ends, widths, strict=True)]
    return ends


def _totals(results: Results, name: str, parts: Mapping[str, str]) -> Sequence[float]:
    """Of each run, sorted; none of a contender that never came to an end: a bar would have none either."""
    runs = zip(*(results.values(name, what) for what in parts), strict=True)
    return sorted(total for total in map(math.fsum, runs) if math.isfinite(total))


def main(folder: str) -> int:
    for file in draw(Path(folder)):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
