"""The configuration of a fault run, drawn by its seed: which pods preemption may take, how gangs are packed, when nodes are kept free,
and whether gangs have their room while their members are still being made.

The first configuration is the one that is shipped. Used by `run`; `liveness` and `preemption_check` judge by `spares`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.e2e.api import Json
from tests.e2e.control_plane import SCHEDULER_NAME
from tests.e2e.history import seen

SECOND = "packing-scheduler"  # a profile beside the one that is shipped
PACKED = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}

Kept = Callable[[Json], bool]  # whether a budget protects the pod


@dataclass(frozen=True)
class DrawnConfiguration:
    """settings: of the extender's configuration, where it is not the shipped one; early_start: None is as shipped."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    two_profiles: bool = False
    early_start: bool | None = None

    def __str__(self) -> str:
        said = yaml.safe_dump(dict(self.settings), default_flow_style=True, width=1000).strip() if self.settings else ""
        early = [] if self.early_start is None else [f"early start {'on' if self.early_start else 'off'}"]
        return ", ".join([said or "as shipped", *(["two profiles"] if self.two_profiles else []), *early])

    @property
    def scheduler_names(self) -> Sequence[str]:
        return (SCHEDULER_NAME, SECOND) if self.two_profiles else (SCHEDULER_NAME,)

    def of_the_extender(self) -> dict[str, Any]:
        early = [{"name": "Coscheduling", "args": {"earlyStart": self.early_start}}]
        same = [] if self.early_start is None else early
        profiles = [
            {"schedulerName": name, "pluginConfig": [*same, *([PACKED] if name == SECOND else [])]}
            for name in self.scheduler_names
        ]
        return {**self.settings, "schedulerNames": list(self.scheduler_names), "profiles": profiles}

    def of_the_scheduler(self, config: dict[str, Any]) -> None:
        if self.two_profiles:
            first = config["profiles"][0]
            plugin_config = [*first.get("pluginConfig", []), PACKED]
            config["profiles"].append({**first, "schedulerName": SECOND, "pluginConfig": plugin_config})

    @property
    def breaks_gangs(self) -> bool:
        return self.settings.get("gangVictims") != "surplusOnly"

    @property
    def keeps_budgets(self) -> bool:
        """When a gang preempts; for a single pod kube-scheduler preempts despite them."""
        return self.settings.get("evictThrough") == "eviction"

    def spares(self, pod: Json, waiting: Sequence[Json], kept: Kept) -> bool:
        """Whether no check may expect this pod to go for those that wait. Of a gang that is not broken it may be one too many;
        the judge is mild, and lets it stay."""
        gang = any(seen(each).group for each in waiting)
        if gang and self.settings.get("gangPreemption") is False:
            return True
        if self.keeps_budgets and kept(pod) and gang:
            return True
        return not self.breaks_gangs and bool(seen(pod).group)


AS_SHIPPED = DrawnConfiguration()


def draw_configuration(seed: int) -> DrawnConfiguration:
    dice = random.Random(f"configuration {seed}")
    drawn: dict[str, Any] = {
        "gangVictims": dice.choice(("", "", "surplusOnly")),
        "packing": dice.choice(("", "", "mostEven")),
        "evictThrough": dice.choice(("", "", "eviction")),
        "preemptionDelaySeconds": dice.choice((0, 0, 0, 3)),
        "victimMinimumRunSeconds": dice.choice((0, 0, 0, 5)),
        **dice.choice(({}, {}, {"shadowAfterSeconds": 5, "shadowMaxSeconds": 10, "shadowMaxNodesPercent": 50})),
        **dice.choice(({}, {}, {}, {}, {"gangPreemption": False})),
    }
    settings = {key: value for key, value in drawn.items() if value not in ("", 0)}
    return DrawnConfiguration(settings, two_profiles=dice.random() < 0.4, early_start=dice.random() < 2 / 3)
