"""How a gang is doing and why, as frozen values: what the pages and `gang-extender explain` show.

`gang_report` reads them off the manager's state; the CLI decodes the very same structs from the page's JSON.
No counterpart: kube-scheduler tells of single pods only, in their conditions and events.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY

OF_OTHERS = "(of another namespace)"
_BYTES = (MEMORY, EPHEMERAL_STORAGE)
_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


class ShownState(StrEnum):
    """In the order of a pod's way; the strongest that holds counts."""

    GATED = "gated"
    WAITING = "waiting"
    PLANNED = "planned"
    HELD = "held"
    BOUND = "bound"


class Shown(Struct, frozen=True, rename="camel"):
    """Base of all of them: every field is always there."""


class ShownMember(Shown, frozen=True):
    """gates: those that it has, ours too."""

    name: str
    state: ShownState
    node: str = ""
    gates: tuple[str, ...] = ()


class Domain(Shown, frozen=True):
    """How many of the members that have to be placed it holds."""

    name: str
    holds: int


class Shortfall(Shown, frozen=True):
    """`placed` of `needed` members would find a place. resource: what runs out first; missing: of it, as a quantity.

    level: of the topology, where the group requires one; domains: its best, best first. slices: which slice finds none of them.
    """

    placed: int
    needed: int
    resource: str = ""
    missing: str = ""
    level: str = ""
    domains: tuple[Domain, ...] = ()
    slices: str = ""


class Relaxation(Shown, frozen=True):
    """One thing that would make the gang fit, all else as it is. kind: in CamelCase, for programs."""

    kind: str
    text: str


class KeptFree(Shown, frozen=True):
    """The nodes that are kept free for the gang, the first in line that finds no room."""

    domain: str
    nodes: tuple[str, ...]
    since: datetime
    until: datetime


class RoleCount(Shown, frozen=True):
    """minimum: what the group asks for; members: how many there are."""

    role: str
    minimum: int
    members: int


class GangSummary(Shown, frozen=True):
    """A line of the list.

    phase: one of Phase, since when; reason: one of UnschedulableReason, empty once the gang runs and no extra member waits;
    message: constant for one cause. members: how many are in each ShownState. waiting_since: of the oldest member without a
    node. place: in line among the gangs that wait, from 1; 0 for one that does not. missing: of a resource, how much, as the last plan
    found it.
    """

    namespace: str
    name: str
    phase: str
    since: datetime
    reason: str
    message: str
    min_member: int
    members: dict[str, int]
    waiting_since: datetime | None = None
    place: int = 0
    missing: dict[str, str] = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Victim(Shown, frozen=True):
    """A pod that would have to go, or is going. gang: the running one that would go with it, whole."""

    pod: str
    node: str = ""
    priority: int = 0
    gang: str = ""


class PreemptionView(Shown, frozen=True):
    """What room of others the gang would need. under_way: they have been told. Otherwise why_not: what keeps the gang from
    taking it; empty: nothing, it is about to."""

    victims: tuple[Victim, ...] = ()
    under_way: bool = False
    why_not: str = ""

    def within_namespace(self, namespace: str) -> PreemptionView:
        """Without the names of pods and gangs of others, and the nodes that those are on."""
        mine = f"{namespace}/"
        shown = tuple(each if each.pod.startswith(mine) else Victim(OF_OTHERS) for each in self.victims)
        return replace(self, victims=shown)


class RoomKept(Shown, frozen=True):
    """For members that are still to be made. nodes: one for each piece of it. until: the first of it is given back then."""

    nodes: tuple[str, ...]
    until: datetime


class StoryEntry(Shown, frozen=True):
    """One thing that happened to the gang: it came into a phase, or something was decided of it. reason: of the event; empty for a
    phase."""

    at: datetime
    phase: str = ""
    reason: str = ""
    message: str = ""


class GangStatus(Shown, frozen=True):
    """One gang, whole.

    told: the message of its refused pods. reserved_for: the groups whose slots keep room from it. refuted: (member, node) pairs that
    kube-scheduler refused. relaxations: the smallest first; computed when asked for, on the cluster as it is then.
    fits_now: a plan is found at this moment, and the gang is about to be looked at. standby: the replica that answers does not lead, plans
    nothing, and knows of no plan or refusal. kept_free: its backfill reservation, while it has one. preemption: None where room of others
    would not help, or none is needed.
    starts_with: the groups that it starts together with, until all have. not_asked: why kube-scheduler asks about no member, where known.
    not_honoured: of another system's PodGroup, and annotations. room_kept: None where none of its members come later. gave_up: that it
    comes behind others of its priority, and why; empty while it does not. story: what happened to it, the oldest first, since the
    extender started, as far as it is remembered.
    """

    gang: GangSummary
    priority: int
    in_line: int
    told: str = ""
    member_list: tuple[ShownMember, ...] = ()
    shortfall: Shortfall | None = None
    reserved_for: tuple[str, ...] = ()
    refuted: tuple[tuple[str, str], ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    fits_now: bool = False
    standby: bool = False
    kept_free: KeptFree | None = None
    preemption: PreemptionView | None = None
    starts_with: tuple[str, ...] = ()
    roles: tuple[RoleCount, ...] = ()
    match_policy: str = ""
    not_asked: str = ""
    not_honoured: tuple[str, ...] = ()
    room_kept: RoomKept | None = None
    gave_up: str = ""
    story: tuple[StoryEntry, ...] = ()

    def within_namespace(self) -> GangStatus:
        """For users that may see no gang of another namespace: without the names of those, and of their pods. The gangs that it starts
        with stay, which both have named."""
        namespace, preemption = self.gang.namespace, self.preemption
        if preemption is not None:
            preemption = preemption.within_namespace(namespace)
        return replace(self, preemption=preemption, reserved_for=keys_within(namespace, self.reserved_for))


def keys_within(namespace: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Those of other namespaces without their names, as one."""
    mine = f"{namespace}/"
    return tuple(dict.fromkeys(key if key.startswith(mine) else OF_OTHERS for key in keys))


def amount_text(resource: str, amount: int) -> str:
    """As people write it: cpu in cores or milli, bytes in the largest unit that loses nothing that matters."""
    if resource == CPU:
        return f"{amount // 1000}" if amount % 1000 == 0 else f"{amount}m"
    if resource in _BYTES:
        for unit, size in _UNITS:
            if amount >= size:
                return f"{amount / size:.4g}{unit}"
    return str(amount)
