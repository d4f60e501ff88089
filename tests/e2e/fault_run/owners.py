"""What the owners of gangs do to those that are there: they change what a PodGroup asks for, make it anew, or admit its pods.

Used by `load`, beside which gangs start and end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.admission import admit
from tests.e2e.fault_run.kinds import Gang
from tests.e2e.fault_run.wishes import ONLY_WAITING


class Owners:
    """gangs: those that are there; over: those that have ended; both change from one act to the next."""

    def __init__(
        self,
        cluster: Cluster,
        gangs: Sequence[Gang],
        over: Sequence[Gang],
        dice: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._gangs = gangs
        self._over = over
        self._dice = dice
        self._say = say

    def admit(self) -> None:
        """One gang that a foreign gate holds back."""
        queued = [gang for gang in self._gangs if gang.queued]
        if queued:
            gang = self._dice.choice(queued)
            self._say(f"admit {gang.name}")
            gang.queued = False
            for name in gang.pods:
                admit(self._cluster.api, gang.namespace, name)

    def admit_all(self) -> None:
        while any(gang.queued for gang in self._gangs):
            self.admit()

    def ask_for_less(self) -> None:
        """One gang; where groups are to start each for itself, all of them."""
        able = [
            gang
            for gang in self._gangs
            if not gang.lightweight and any((gang.level, gang.groups, gang.roles, gang.policy))
        ]
        part = self._dice.random() < 0.5
        if not able:
            return
        chosen = self._dice.choice(able)
        unit = {chosen.key, *(chosen.groups if part else ())}
        for gang in self._gangs:
            if gang.key in unit:
                self._say(f"{gang.name} asks for less{' and for no other' if part else ''}")
                gang.ask_for_less(self._cluster, alone=part)
        for gang in self._over:
            gang.groups = [] if gang.key in unit and part else gang.groups

    def make_the_group_anew(self) -> None:
        """As `kubectl replace --force` does."""
        able = [gang for gang in self._gangs if not gang.lightweight]
        if able:
            gang = self._dice.choice(able)
            self._say(f"the PodGroup {gang.name} is made anew")
            self._cluster.delete_pod_group(gang.name, namespace=gang.namespace)
            time.sleep(self._dice.choice((0.0, 0.3)))
            gang.make_group(self._cluster)

    def change_min_member(self) -> None:
        """Up or down; with only-waiting only down, or the judge would not know how large a batch had to be."""
        able = [gang for gang in self._gangs if not gang.lightweight]
        if not able:
            return
        gang = self._dice.choice(able)
        to = gang.min_member + (-1 if gang.policy == ONLY_WAITING else self._dice.choice((-1, -1, 1)))
        if to >= max(1, sum(gang.roles.values())):
            gang.change_min_member(to)
            self._say(f"minMember {gang.min_member} for {gang.name}")
            self._cluster.change_min_member(gang.name, gang.min_member, namespace=gang.namespace)
