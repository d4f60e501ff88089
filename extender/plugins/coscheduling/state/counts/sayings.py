"""What its members say of a group, counted by what they say: the group asks anew only where one says something else.

Not for each of a thousand members alike, of which each would be read with all that are there. No counterpart upstream
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeVar

from extender.api import corev1
from extender.plugins.coscheduling.spec.group_annotations import relevant
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wish:
    """What one member says of its group, which others may say too. kind: the API group of another system's PodGroup that it names, or "".
    asked: the texts of its annotations that ask for something, in the order of keys.ASKING; empty where there are none."""

    kind: str
    asked: tuple[str, ...]


Said = tuple[GroupRef, tuple[str, ...]]
"""What a member says of a group that is made of its pods' keys alone: how it names the group, and its annotations as in Wish."""
Sayer = tuple[corev1.Pod | None, GroupRef | None]
"""A pod, and how it names the group."""
NOTHING: Sayer = (None, None)


@dataclass(slots=True)
class Sayings:
    """wishes: how many members say each, of those that say something. said: how many say each, of a group without an object."""

    wishes: Counter[Wish] = field(default_factory=Counter)
    said: Counter[Said] = field(default_factory=Counter)

    def clear(self) -> None:
        self.wishes.clear()
        self.said.clear()

    def follow(self, before: Sayer, now: Sayer, known: GroupSpec | None) -> bool:
        """A member says this now, and that before; NOTHING where it was none, or is none any more. Returns whether the group asks anew.

        known: what it has asked for so far, where that was found out.
        """
        wished, wishes = wish_of(*before), wish_of(*now)
        said, says = said_of(*before), said_of(*now)
        repeats = before[0] is None and says in self.said and _is_no_older(known, now[0])
        another = wished != wishes and _exchange(self.wishes, wished, wishes)
        if said != says:  # what its pods say is what it asks for
            _exchange(self.said, said, says)
            another = another or not repeats
        return another


def _exchange(counts: Counter[T], before: T | None, now: T | None) -> bool:
    """One less of the one, one more of the other. Returns whether one is the first of its kind, or was the last."""
    another = False
    if now is not None:
        another = now not in counts
        counts[now] += 1
    if before is not None:
        counts[before] -= 1
        if not counts[before]:
            del counts[before]
            another = True
    return another


def wish_of(pod: corev1.Pod | None, ref: GroupRef | None) -> Wish | None:
    """None for a pod that says nothing but which group it is of."""
    if pod is None or ref is None:
        return None
    asked, kind = relevant(pod.metadata), ref.source.kind if ref.source is not None else ""
    return Wish(kind, asked if any(asked) else ()) if kind or any(asked) else None


def said_of(pod: corev1.Pod | None, ref: GroupRef | None) -> Said | None:
    """None for a pod of a group that has an object."""
    if pod is None or ref is None or not ref.lightweight:
        return None
    return ref, relevant(pod.metadata)


def _is_no_older(known: GroupSpec | None, pod: corev1.Pod | None) -> bool:
    """Whether the age of the group, which is that of its oldest pod, stays as it is known."""
    if known is None or pod is None:
        return False
    stamp = pod.metadata.creation_timestamp
    return stamp is None or (known.created is not None and known.created <= stamp)
