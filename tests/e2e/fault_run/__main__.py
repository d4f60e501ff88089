"""`python -m tests.e2e.fault_run`: fault runs on a control plane of their own, one seed after another."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.build import binaries
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.fault_run.run import fault_run_alone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1, help="one after the other, with the seeds that follow")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fault-run-"))
    plane = ControlPlane(binaries(print), folder / "plane")
    wrong = 0
    try:
        plane.start()
        Cluster(plane).install_crd()
        for seed in range(options.seed, options.seed + options.runs):
            began = time.monotonic()
            say = (lambda line: None) if options.quiet else _saying(began)
            found = fault_run_alone(plane, folder / f"fault-run-{seed}", seed, options.steps, say)
            wrong += bool(found)
            print(
                f"seed {seed}: {time.monotonic() - began:.0f} s, {found or 'all that fits runs'}; logs in {folder}",
                flush=True,
            )
    finally:
        plane.stop()
    return int(wrong > 0)


def _saying(began: float) -> Callable[[str], None]:
    return lambda line: print(f"{time.monotonic() - began:6.2f} {line}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
