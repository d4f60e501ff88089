"""When Python's collector of cycles looks: not through everything while the cluster is listed, and later not through what was listed.

`serve` calls both. Left alone it looks through everything whenever a quarter more has come, and nothing is answered meanwhile.
kube-scheduler has no counterpart: Go's collector works beside its goroutines.
"""

from __future__ import annotations

import gc

# How many more containers there are before the cyclic collector looks: nothing is answered meanwhile, for 10 ms and more at 20,000.
# Nearly all that comes with a gang stays for its life or goes by its count: at 700, Python's own, looking cost one twentieth of a
# start's CPU.
YOUNG_OBJECTS = 5_000
LOOKS = 6  # at what is young before one at what has outlived that: some 5 ms
RARE_LOOKS = 60  # at that before one at all
FEW_LOOKS, NO_LOOK = 2, 1_000_000


def expect_lists() -> None:
    """From the start on: what is listed has no cycles, and is looked through once, a little at a time."""
    gc.set_threshold(YOUNG_OBJECTS, FEW_LOOKS, NO_LOOK)


def keep_what_was_listed() -> None:
    """The collector looks through the whole cluster no more: at 50,000 pods that takes some 200 ms without any answer.

    Nor does it once more here, only through what has come lately: cycles that were left before that are few, and stay.
    """
    gc.collect(1)
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, LOOKS, RARE_LOOKS)
