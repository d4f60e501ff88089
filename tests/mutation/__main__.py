"""`python -m tests.mutation FILE...`: mutates the files in a copy of the tree, prints the mutants that live, and the scores."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutation.results import Score, equivalents, scores, statuses, survivors
from tests.mutation.tree import PROJECT, SOURCE, configure, copy_tree, spell_out_decorators, unit_tests_of

AT_A_TIME = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"under {SOURCE}/; a folder is all files in it")
    parser.add_argument(
        "--tests", nargs="+", default=[], metavar="PATH", help="in place of the unit tests of the files' rooms"
    )
    parser.add_argument(
        "--sample", type=int, metavar="N", help="N mutants of all, drawn by the seed; the others are left"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--mutants", nargs="+", default=[], metavar="NAME", help="these alone, such as those that lived"
    )
    args = parser.parse_args()
    files = _files(args.files)
    tests = args.tests or unit_tests_of(files)
    print(f"{len(files)} files, by {' '.join(tests)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        configure(tree, files, tests)
        for file in files:
            spell_out_decorators(tree / file)
        drawn = _drawn(tree, args.sample, args.seed) if args.sample else args.mutants
        ran = _run(tree, *drawn)
        if ran.returncode:
            print(_without_spinners(ran.stdout))
            return ran.returncode
        return _report(tree, files, drawn)


def _run(tree: Path, *names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(AT_A_TIME), *names]
    return subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def _drawn(tree: Path, count: int, seed: int) -> list[str]:
    """mutmut has no command that makes mutants and tries none: asked for one that is not there, it ends when it has made them."""
    said = _run(tree, "none").stdout
    names = sorted(statuses(tree))
    if not names:
        raise SystemExit(_without_spinners(said))
    return random.Random(seed).sample(names, min(count, len(names)))


def _without_spinners(text: str) -> str:
    """What stands at the beginning of a line of a terminal is written over and over."""
    lines = (line.rpartition("\r")[2].rstrip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)[-5000:]


def _files(arguments: list[str]) -> list[str]:
    found: list[str] = []
    for each in arguments:
        path = (PROJECT / each).resolve()
        paths = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        found += [str(one.relative_to(PROJECT)) for one in paths if one.name != "__init__.py"]
    wrong = [each for each in found if not each.startswith(f"{SOURCE}/") or not (PROJECT / each).is_file()]
    if wrong or not found:
        raise SystemExit(f"not a file under {SOURCE}/: {' '.join(wrong or arguments)}")
    return list(dict.fromkeys(found))


def _report(tree: Path, files: list[str], drawn: list[str]) -> int:
    """drawn: the mutants that were tried, where not all were."""
    found = statuses(tree)
    if drawn:
        print(f"{len(drawn)} of {len(found)} mutants")
        found = {name: found[name] for name in drawn}
    lived = survivors(tree, found)
    listed = [each for each in equivalents() if each.file in files]
    same = [mutant for mutant in lived if any(each.is_of(mutant) for each in listed)]
    left = [mutant for mutant in lived if mutant not in same]
    for mutant in left:
        print(f"\n{mutant.name}: {found[mutant.name]}\n{mutant.diff}")
    stale = [each for each in listed if not drawn and not any(each.is_of(mutant) for mutant in lived)]
    for each in stale:
        print(f"\nequivalent.toml: {each.file}: no such mutant lives: {each.removed} -> {each.added}")
    print()
    for score in scores(files, found, left, same):
        print(score)
    print(Score(f"{len(files)} files", len(found), len(left), len(same)))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
