"""`make benchmark`: runs every benchmark, or those that are named; prints, asserts nothing.

A benchmark is a module here with `run() -> None`. BENCHMARK_ROUNDS: how often the gangs' contenders take turns (5).
"""

from __future__ import annotations

import importlib
import sys
import traceback

BENCHMARKS = (
    "scale",
    "snapshot",
    "scheduling",
    "planner",
    "room_calls",
    "victims",
    "simulate",
    "calls",
    "over_tls",
    "held_binds",
    "filter_beside_plans",
    "questions",
    "contention",
    "beside_hostile",
    "gangs",
    "stream",
    "samples",
    "status_writes",
    "against_base",
    "gathering",
    "parked",
    "waiting_gangs",
    "preemption",
    "memory",
    "gang_churn",
    "gang_sets",
    "member_steps",
    "broken_gangs",
    "real_objects",
    "loop_stalls",
    "page",
)


def main(names: list[str]) -> int:
    """1 if one of them failed; the others run all the same, since all of them take hours."""
    failed = False
    for name in names or BENCHMARKS:
        print(f"== {name}", flush=True)
        try:
            importlib.import_module(f"tests.benchmark.{name}").run()
        except Exception:
            traceback.print_exc()
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
