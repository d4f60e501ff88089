"""Fresh scenarios and what the real plugins say of them: `python -m tests.parity.record_fresh`, with Go.

Without arguments it records data/fresh.json.gz. With `--compare SEED COUNT` it holds `evaluate` against the oracle on other
scenarios, prints where they differ and keeps nothing. The oracle is tests/e2e/parityoracle, built from the modules that
tests/e2e/go.mod pins; a run of it on the corpus gives the corpus' answers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator

from extender.plugins.registry import new_in_tree_registry
from extender.scheduler.in_process.schedule_one import NoNodesAvailableError
from extender.simulation.evaluation import EvaluationError, evaluate
from extender.simulation.scenario import BuiltScenario
from tests.parity.corpus import DATA, Json, comparable
from tests.parity.random_clusters import scenarios
from tests.parity.random_pods import Breadth

E2E = DATA.parent.parent / "e2e"
RECORDED = {Breadth.CORPUS: 80, Breadth.WIDE: 140, Breadth.BROKEN: 80}
SEED = 20260101


def asked(made: list[Json]) -> list[Json]:
    """What the oracle answers, in order."""
    lines = "\n".join(json.dumps(scenario) for scenario in made)
    oracle = subprocess.run(
        ["go", "run", "./parityoracle"], cwd=E2E, input=lines, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in oracle.stdout.splitlines()]


def answered(scenario: Json) -> Json:
    """What `evaluate` answers, with a broken promise's text where there is one."""
    name = scenario["name"]
    try:
        return {"name": name, **evaluate(BuiltScenario(scenario, new_in_tree_registry()))}
    except (EvaluationError, NoNodesAvailableError) as error:
        return {"name": name, "error": str(error)}


def differences(ours: object, theirs: object, path: str = "$") -> Iterator[str]:
    """A line for each place in which the answers differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            yield from differences(ours.get(key), theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs)):
            yield from differences(*pair, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: ours {ours!r}, theirs {theirs!r}"


def compare(seed: int, count: int, breadth: Breadth) -> int:
    made = scenarios(seed, count, breadth)
    differ = 0
    for scenario, theirs in zip(made, asked(made), strict=True):
        found = list(differences(comparable(answered(scenario)), comparable(theirs)))
        differ += bool(found)
        for line in found[:5]:
            print(f"{scenario['name']} {line[:400]}")
    print(f"{breadth.name.lower()}, seed {seed}: {differ} of {count} differ")
    return differ


def record() -> None:
    pairs = [pair for breadth, count in RECORDED.items() for pair in _recorded(breadth, count)]
    text = json.dumps(pairs, separators=(",", ":"))
    (DATA / "fresh.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _recorded(breadth: Breadth, count: int) -> list[Json]:
    """Of broken ones, those first that are an error to the scheduler: few are."""
    made = scenarios(SEED, count * 10 if breadth is Breadth.BROKEN else count, breadth)
    pairs = [{"scenario": s, "expected": e} for s, e in zip(made, asked(made), strict=True)]
    return sorted(pairs, key=lambda pair: "error" not in pair["expected"])[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compare", nargs=2, type=int, metavar=("SEED", "COUNT"))
    args = parser.parse_args()
    if args.compare is None:
        record()
        return 0
    seed, count = args.compare
    return 1 if sum([compare(seed, count, breadth) for breadth in Breadth]) else 0


if __name__ == "__main__":
    sys.exit(main())
