"""What a nemesis can do: a name, what it is done to, for how long; drawn by a seed beforehand, so that a run can be done again.

Each entry of KINDS says how it is drawn; what it excuses is in `excuses`. Two hands act side by side, each with
kinds of its own, so that two faults overlap at times. Used by `nemesis`, which does it, and by `minimise`, which leaves some out.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from extender.failpoints import POINTS

REPLICAS, SERVERS = ("first", "second"), ("kube-apiserver-first", "kube-apiserver-second")
OF_A_REPLICA = ("extender", "kube-scheduler")
PROGRAMS = (*(f"{replica} {each}" for replica in REPLICAS for each in OF_A_REPLICA), *SERVERS, "etcd")
LINKS = (
    *(f"{replica} {each}" for replica in REPLICAS for each in ("verbs", "extender's API", "kube-scheduler's API")),
    *(f"{replica} API server's etcd" for replica in REPLICAS),
)
LINE_MODES = (
    ("REFUSE", 0), ("RESET", 0), ("BLACKHOLE_OUT", 0), ("BLACKHOLE_BACK", 0), ("BLACKHOLE", 0), ("HALF_CLOSE", 0),
    ("DELAY", 0.2), ("DELAY", 2), ("THROTTLE", 20_000), ("TRUNCATE", 3000),
)  # fmt: skip
CODES = ("UNAUTHORIZED", "FORBIDDEN", "GONE", "TOO_MANY", "TIMEOUT", "")
FAILPOINTS = tuple((f"{point}={action}", 0.0) for point in POINTS for action in ("exit", "sleep(4)", "raise"))
HANDS = 2
PAUSES = (0.5, 2.0, 5.0, 20.0)
QUIET_SHARE, QUIET_SECONDS = (
    1 / 3,
    (45.0, 90.0),
)  # of the pauses so many are that long: what is wrong then has no excuse


@dataclass(frozen=True)
class Kind:
    """weight: how often it is drawn. seconds: from, to."""

    weight: int
    targets: Sequence[str]
    seconds: tuple[float, float]
    details: Sequence[tuple[str, float]] = (("", 0),)


KINDS: dict[str, Kind] = {
    "kill": Kind(6, PROGRAMS, (0, 0)),
    "terminate": Kind(4, PROGRAMS, (0, 0)),
    "freeze": Kind(6, PROGRAMS, (1, 30)),
    "line": Kind(8, LINKS, (2, 20), LINE_MODES),
    "partition": Kind(3, REPLICAS, (3, 20), (("BLACKHOLE", 0), ("RESET", 0))),
    "failing writes": Kind(5, REPLICAS, (3, 15), (("", 0.1), ("", 0.3), ("", 0.6))),
    "failing reads": Kind(3, REPLICAS, (3, 15), tuple((code, 0.5) for code in CODES)),
    "disturbed watches": Kind(4, REPLICAS, (5, 20), (("", 0.1), ("", 0.5))),
    "cut watches": Kind(3, REPLICAS, (0, 0)),
    "compact etcd": Kind(2, ("etcd",), (0, 0)),
    "full etcd": Kind(1, ("etcd",), (3, 10)),
    "restored etcd": Kind(1, ("etcd",), (2, 15)),
    "role without a rule": Kind(2, ("pods", "pods/binding", "nodes", "podgroups"), (2, 15)),
    "no PodGroups": Kind(1, ("podgroups",), (2, 10)),
    "new tokens": Kind(2, REPLICAS, (0, 0)),
    "new certificates": Kind(2, REPLICAS, (3, 10)),
    "few descriptors": Kind(1, REPLICAS, (2, 8)),
    "little memory": Kind(1, REPLICAS, (2, 8)),
    "few threads": Kind(1, REPLICAS, (2, 15)),
    "failpoint": Kind(6, REPLICAS, (0, 0), FAILPOINTS),
    "clock": Kind(2, REPLICAS, (3, 15), (("", -3600), ("", 3600), ("", -20), ("", 20))),
    "blocked stderr": Kind(2, REPLICAS, (3, 20)),
}


# What is done to lines, and to what an extender is given; all else is of the first hand: programs, etcd, rights and limits.
SECOND_HAND = frozenset(
    (
        "line",
        "partition",
        "failing writes",
        "failing reads",
        "disturbed watches",
        "cut watches",
        "new tokens",
        "new certificates",
        "clock",
        "blocked stderr",
    )
)
# By these no extender ends: a run of them shows how one process does for long.
ALIVE = (*sorted(SECOND_HAND), "compact etcd", "full etcd", "role without a rule", "no PodGroups")


@dataclass(frozen=True)
class Act:
    """seconds: for how long; pause: then. hand: of which."""

    number: int
    name: str
    target: str
    seconds: float
    detail: str = ""
    amount: float = 0.0
    pause: float = 0.0
    hand: int = 0

    def __str__(self) -> str:
        how = " ".join(each for each in (self.detail, f"{self.amount:g}" if self.amount else "") if each)
        return f"{self.name}: {self.target}{f' ({how})' if how else ''}, {self.seconds:.1f} s"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def _pause(dice: random.Random) -> float:
    if dice.random() < QUIET_SHARE:
        return round(dice.uniform(*QUIET_SECONDS), 1)
    return dice.choice(PAUSES)


def draw(seed: int, count: int, *, hand: int = 0, only: Sequence[str] = ()) -> list[Act]:
    """The first acts of a seed; more of them begin with the same. only: kinds, where not all are wanted."""
    dice = random.Random(f"nemesis {seed} {hand}")
    names = [name for name in KINDS if (not only or name in only) and hand == int(name in SECOND_HAND)]
    found: list[Act] = []
    for number in range(hand, HANDS * count if names else 0, HANDS):
        name = dice.choices(names, [KINDS[name].weight for name in names])[0]
        kind = KINDS[name]
        detail, amount = dice.choice(kind.details)
        target, seconds = dice.choice(kind.targets), round(dice.uniform(*kind.seconds), 1)
        found.append(Act(number, name, target, seconds, detail, amount, _pause(dice), hand))
    return found
