"""`python -m tests.e2e.fault_run`: fault runs on rigs of their own, one seed after another; or what the judges say of an earlier one."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.e2e.build import binaries
from tests.e2e.fault_run.acts import ALIVE, KINDS, Act
from tests.e2e.fault_run.judges.judge import judge, judges_of, told_shares
from tests.e2e.fault_run.minimise import minimise
from tests.e2e.fault_run.plot import draw
from tests.e2e.fault_run.record import Past
from tests.e2e.fault_run.run import Settings, fault_run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--runs", type=int, default=1, help="one after the other, with the seeds that follow")
    parser.add_argument(
        "--kinds",
        default="",
        help=f"of acts, with commas; `alive`: by which no extender ends; all: {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--hostile", action="store_true", help="a hostile tenant is part of the load (else the seed says)"
    )
    parser.add_argument("--check", type=Path, help="the folder of an earlier run, which is judged again")
    parser.add_argument(
        "--minimise", type=Path, help="the folder of a run that failed: with fewer and fewer of its acts"
    )
    parser.add_argument("--plot", type=Path, help="the folder of an earlier run, which is drawn over time")
    parser.add_argument("--output", type=Path, default=Path("docs/fault-run.svg"), help="where that is drawn")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    if options.check:
        past = Past(options.check)
        print(told_shares(past))
        return _told(judge(past))
    if options.plot:
        draw(options.plot, options.output)
        return 0
    kinds = [kind.strip() for kind in options.kinds.split(",") if kind.strip()]
    if kinds == ["alive"]:
        kinds = list(ALIVE)
    if unknown := set(kinds) - KINDS.keys():
        parser.error(f"--kinds: {', '.join(sorted(unknown))}")
    settings = Settings(options.seed, 60 * options.minutes, hostile=options.hostile or None, kinds=kinds)
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    if options.minimise:
        return _minimise(Past(options.minimise), folder)
    found = [
        line
        for seed in range(options.seed, options.seed + options.runs)
        for line in _one(replace(settings, seed=seed), folder / f"seed-{seed}", options.quiet)
    ]
    return int(bool(found))


def _one(settings: Settings, folder: Path, quiet: bool) -> list[str]:
    began = time.monotonic()
    found = fault_run(binaries(print), folder, settings, (lambda line: None) if quiet else _saying(began))
    print(f"seed {settings.seed}: {time.monotonic() - began:.0f} s; the record is in {folder}", flush=True)
    _told(found)
    return found


def _told(found: Sequence[str]) -> int:
    print("\n".join(found) or "nothing was wrong", flush=True)
    return int(bool(found))


def _minimise(failed: Past, folder: Path) -> int:
    """All is as it was in that run, and it counts what the same judge says."""
    settings, judges, tried = Settings.of(failed), judges_of(judge(failed)), iter(range(1000))
    if not judges:
        return _told([])

    def fails(acts: Sequence[Act]) -> bool:
        found = _one(replace(settings, acts=acts), folder / f"try-{next(tried)}", quiet=True)
        return bool(judges & judges_of(found))

    left = minimise(settings.acts or [], fails)
    print(f"{' and '.join(sorted(judges))}: acts {[act.number for act in left]}: {[str(act) for act in left]}")
    return 1


def _saying(began: float) -> Callable[[str], None]:
    return lambda line: print(f"{time.monotonic() - began:6.2f} {line}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
