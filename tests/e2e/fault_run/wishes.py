"""What a group asks for, read from its PodGroup or its pods by code of the tests alone.

Both judges go by it: `liveness` by what the API server has now, `promises` by what the fault run made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.e2e.api import Json
from tests.e2e.history import seen

PREFIX = "gang-extender.dev/"
REQUIRED, ROLES, ROLE, GROUPS, POLICY = (
    PREFIX + word for word in ("topology-required", "roles", "role", "groups", "match-policy")
)
ONCE_SATISFIED, ONLY_WAITING = "once-satisfied", "only-waiting"

ZONE, RACK = "topology.kubernetes.io/zone", "example.com/rack"
LEVELS = {"zone": (ZONE,), "rack": (ZONE, RACK)}  # racks of one name in two zones are two
TOPOLOGY = [{"name": "zone", "nodeLabel": ZONE}, {"name": "rack", "nodeLabel": RACK}]

Domain = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """level: one domain of it has to hold the group; groups: keys of those that it names; key: namespace/name. most: that minMember
    ever was, where it is known to have been changed."""

    key: str
    min_member: int
    level: str = ""
    roles: Mapping[str, int] = field(default_factory=dict)
    groups: frozenset[str] = frozenset()
    policy: str = ""
    most: int = 0

    @property
    def minimum(self) -> int:
        return max(self.min_member, sum(self.roles.values()))


def wish(key: str, min_member: int, annotations: Mapping[str, str]) -> Wish:
    namespace = key.partition("/")[0]
    names = [name.strip() for name in annotations.get(GROUPS, "").split(",") if name.strip()]
    roles = [entry.partition("=") for entry in annotations.get(ROLES, "").split(",") if entry]
    return Wish(
        key,
        min_member,
        level=annotations.get(REQUIRED, ""),
        roles={role: int(minimum) for role, _, minimum in roles},
        groups=frozenset(name if "/" in name else f"{namespace}/{name}" for name in names),
        policy=annotations.get(POLICY, ""),
    )


def wishes(groups: Iterable[Json], pods: Iterable[Json]) -> dict[str, Wish]:
    """Of the PodGroups that there are, and of groups that are labels of their pods."""
    found = {}
    for group in groups:
        metadata = group["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        found[key] = wish(key, group["spec"].get("minMember", 1), metadata.get("annotations", {}))
    for pod in pods:
        now = seen(pod)
        if now.min_member:
            found[now.group] = wish(now.group, now.min_member, pod["metadata"].get("annotations", {}))
    return found


def units(known: Mapping[str, Wish]) -> dict[str, tuple[str, ...]]:
    """Key -> the keys of all groups that start together with it, its own among them; those that are not there too."""
    found: dict[str, tuple[str, ...]] = {}
    for key in known:
        unit, fresh = {key}, [key]
        while fresh:
            current = fresh.pop()
            named = set(known[current].groups) if current in known else set()
            linked = named | {other for other in known if current in known[other].groups}
            fresh += linked - unit
            unit |= linked
        found[key] = tuple(sorted(unit))
    return found


def narrowest(levels: Iterable[str]) -> str:
    return max(levels, key=lambda level: len(LEVELS.get(level, ())), default="")


def domain(labels: Mapping[str, str], level: str) -> Domain | None:
    """Where a node with these labels is; None where it is in no domain of the level."""
    names = tuple(labels.get(label, "") for label in LEVELS[level])
    return names if all(names) else None


def role_of(pod: Json) -> str:
    return str(pod["metadata"].get("labels", {}).get(ROLE, ""))


def priority_of(pods: Sequence[Json]) -> int:
    """Of the lowest of them."""
    return min(int(pod["spec"].get("priority") or 0) for pod in pods)
