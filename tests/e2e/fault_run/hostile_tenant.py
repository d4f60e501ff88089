"""A tenant that writes what no parser may take, into the keys and fields of its pods and PodGroups that the extender reads; that makes
PodGroups by the thousand, gangs that no cluster can hold, and gangs whose minMember is another each moment.

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
MOST_GROUPS, GROUPS_AT_ONCE = 2000, 20  # of a run; of one act
FLAPPING, FLAPS = "flapping", 5
HOSTILE_SHARE = 0.25  # of the seeds


def is_hostile(seed: int) -> bool:
    """Whether a run of this seed has such a tenant, where the settings do not say."""
    return random.Random(f"is hostile {seed}").random() < HOSTILE_SHARE


class HostileTenant:
    """One act after the other: something new, or everything old goes."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(f"hostile {seed}")
        self._number = 0
        self._there = 0
        self._groups = 0
        cluster.namespace(NAMESPACE)

    def act(self) -> None:
        acts = (self._write_nonsense, self._make_groups, self._flap, self._ask_for_too_much)
        with suppress(Refused, HTTPError):  # the API server takes not everything
            self._random.choices(acts, (6, 2, 3, 1))[0]()

    def _write_nonsense(self) -> None:
        if self._there >= MOST:
            self.go()
        for each in self._drawn():
            if each.resource in (PODS, POD_GROUPS) and each.possible:
                with suppress(Refused, HTTPError):  # the API server takes not everything
                    create(self._cluster, each)
                    self._there += 1

    def _make_groups(self) -> None:
        """Without a pod."""
        for _ in range(min(GROUPS_AT_ONCE, MOST_GROUPS - self._groups)):
            self._groups += 1
            self._cluster.pod_group(f"group-{self._groups}", self._random.choice((1, 2, 1000)), namespace=NAMESPACE)

    def _flap(self) -> None:
        """A gang that waits, and another minMember several times."""
        name = f"{FLAPPING}-{self._number}"
        self._number += 1
        self._gang(name, 3, cpu=1, min_member=4)
        for least in (2, 5, 3, 1, 9)[: self._random.randint(1, FLAPS)]:
            path = f"{paths.POD_GROUPS.format(namespace=NAMESPACE)}/{name}"
            self._cluster.api.patch(path, {"spec": {"minMember": least}})

    def _ask_for_too_much(self) -> None:
        """No cluster has that."""
        name = f"impossible-{self._number}"
        self._number += 1
        self._gang(name, 4, cpu=1000, min_member=4)

    def _gang(self, name: str, size: int, *, cpu: int, min_member: int) -> None:
        self._there += size
        self._cluster.pod_group(name, min_member, namespace=NAMESPACE)
        for number in range(size):
            self._cluster.pod(f"{name}-{number}", namespace=NAMESPACE, group=name, requests={"cpu": str(cpu)})

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
