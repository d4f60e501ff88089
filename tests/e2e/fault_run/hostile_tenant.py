"""A tenant that writes what no parser may take, into the keys and fields of its pods and PodGroups that the extender reads.

What it may ask for is in tests/hostile.py. Used by `load`; its gangs are not judged, only those beside it.
"""

from __future__ import annotations

import random
from contextlib import suppress

from urllib3.exceptions import HTTPError

from extender.client.interface import POD_GROUPS, PODS
from tests.e2e import api as paths
from tests.e2e.api import Refused
from tests.e2e.cluster import Cluster
from tests.e2e.test_hostile_objects import NAMESPACE, create
from tests.hostile import ALL_FIELDS, ALL_KEYS, NUMBERS, OTHERS, TEXTS, Hostile, of_field, of_key

MOST = 60


class HostileTenant:
    """One act after the other: something new, or everything old goes."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(f"hostile {seed}")
        self._number = 0
        self._there = 0
        cluster.namespace(NAMESPACE)

    def act(self) -> None:
        if self._there >= MOST:
            self.go()
        for each in self._drawn():
            if each.resource in (PODS, POD_GROUPS) and each.possible:
                with suppress(Refused, HTTPError):  # the API server takes not everything
                    create(self._cluster, each)
                    self._there += 1

    def go(self) -> None:
        """Deletes all that it has made."""
        self._there = 0
        with suppress(Refused):
            self._cluster.api.delete(paths.PODS.format(namespace=NAMESPACE))
            self._cluster.api.delete(paths.POD_GROUPS.format(namespace=NAMESPACE))

    def _drawn(self) -> list[Hostile]:
        self._number += 1
        name = f"hostile-{self._number}"
        if self._random.random() < 0.7:
            key, kind = self._random.choice(ALL_KEYS)
            return of_key(key, kind, self._random.choice(TEXTS), name)
        resource, place, _ = self._random.choice(ALL_FIELDS)
        return of_field(resource, place, self._random.choice((*TEXTS, *NUMBERS, *OTHERS)), name)
