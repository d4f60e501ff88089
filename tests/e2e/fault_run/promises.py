"""What a gang's annotations promise, held against the history: the judge of what happened, beside tests/e2e/history.py.

  topology  the bound members of a group are in one domain of the level that it requires
  roles     while any member runs, each role has its minimum
  groups    of groups that start together none starts unless all do
  batches   with only-waiting no member is added to a gang that runs, unless minMember are

Whatever takes longer to pass than a commit may (`limit`) is a broken promise. Members that the fault run itself deletes count on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.e2e.fault_run.wishes import ONLY_WAITING, Domain, Wish, domain, narrowest, units
from tests.e2e.history import Change, KnownSince, Tally, up_to_date

NEVER = math.inf
MOVES_SECONDS = 5.0  # while those in its old domain are deleted, and the first are in its new one
State = tuple[float, str]  # from when on, and what is wrong; empty where nothing is


@dataclass(frozen=True)
class Story:
    """All that happened. labels: of every node that there ever was. excused_state: whether a fault excuses what was
    wrong from one moment to another, within a limit. known_since: as for history.violations."""

    history: Sequence[Change]
    labels: Mapping[str, Mapping[str, str]]
    excused: frozenset[str]
    limit: float
    ended: float
    excused_state: Callable[[float, float, float], bool] = lambda since, until, limit: False
    known_since: KnownSince = up_to_date

    def of(self, *groups: str) -> list[Change]:
        return [change for change in self.history if change.pod.group in groups]

    def tally(self) -> Tally:
        return Tally(self.excused, self.limit, self.known_since)

    def domain(self, node: str, level: str) -> Domain | None:
        return domain(self.labels[node], level)


def broken_promises(story: Story, known: Mapping[str, Wish]) -> list[str]:
    """A sentence each; known: key -> what the group asks for, with the least minMember that it ever had."""
    found: list[str] = []
    for wish in known.values():
        found += _lasting(_outside_of_its_domain(story, wish), replace(story, limit=min(story.limit, MOVES_SECONDS)))
        found += _lasting(_without_a_role(story, wish), story)
        found += _added_alone(story, wish)
    for unit in sorted(set(units(_named_in_turn(known)).values())):
        if len(unit) > 1:
            found += _lasting(_not_together(story, [known[key] for key in unit if key in known]), story)
    return found


def _named_in_turn(known: Mapping[str, Wish]) -> Mapping[str, Wish]:
    """A group whose object was made anew without the others may start without them: what they still ask for binds them alone."""
    return {
        key: replace(
            wish, groups=frozenset(name for name in wish.groups if name in known and key in known[name].groups)
        )
        for key, wish in known.items()
    }


def _lasting(states: Iterable[State], story: Story) -> Iterator[str]:
    """Of what was wrong from one change to another, what took longer than it may."""
    since: float | None = None
    was = ""
    for at, wrong in [*states, (story.ended, "")]:
        if wrong:
            since = at if since is None else since
            was = wrong
        elif since is not None:
            if at - since > story.limit and not story.excused_state(since, at, story.limit):
                yield f"{was} for {at - since:.2f} s"
            since = None


def _outside_of_its_domain(story: Story, wish: Wish) -> Iterator[State]:
    nodes: dict[str, str] = {}
    for change in story.of(wish.key) if wish.level else ():
        _note_node(nodes, change)
        yield change.at, _scattered(story, wish.key, wish.level, nodes.values())


def _note_node(nodes: dict[str, str], change: Change) -> None:
    """UID -> where it runs; a pod that has finished or is about to go is nowhere, for a group that starts anew elsewhere."""
    nodes.pop(change.pod.uid, None)
    if change.pod.node and not _has_gone(change):
        nodes[change.pod.uid] = change.pod.node


def _has_gone(change: Change) -> bool:
    return change.deleted or change.pod.leaving or change.pod.finished


def _scattered(story: Story, name: str, level: str, nodes: Iterable[str]) -> str:
    domains = {node: story.domain(node, level) for node in nodes}
    if None not in domains.values() and len(set(domains.values())) <= 1:
        return ""
    said = ", ".join(f"{node} ({'/'.join(where or ('none',))})" for node, where in sorted(domains.items()))
    return f"{name}: not in one {level}: {said}"


def _without_a_role(story: Story, wish: Wish) -> Iterator[State]:
    tally = story.tally()
    roles: dict[str, str] = {}
    for change in story.of(wish.key) if wish.roles else ():
        tally.take(change)
        roles[change.pod.uid] = change.pod.role
        have = Counter(roles[uid] for uid in tally.uids)
        short = [f"{have[role]} of {least} {role}" for role, least in wish.roles.items() if have[role] < least]
        yield change.at, f"{wish.key}: runs with {', '.join(short)}" if tally.bound and short else ""


def _not_together(story: Story, groups: Sequence[Wish]) -> Iterator[State]:
    """Until they have been whole together, in one domain; with none left they are to start together again."""
    level = narrowest(group.level for group in groups)
    tallies = {group.key: story.tally() for group in groups}
    nodes: dict[str, str] = {}
    settled = False
    for change in story.of(*tallies):
        tallies[change.pod.group].take(change)
        _note_node(nodes, change)
        settled = settled and bool(nodes)
        uids = [tallies[group.key].uids for group in groups]
        short = [
            f"{len(of)} of {group.key}'s {group.minimum}" for group, of in zip(groups, uids) if len(of) < group.minimum
        ]
        if not nodes or settled:
            yield change.at, ""
        elif short:
            yield change.at, f"started without others: {', '.join(short)}"
        else:
            settled = not level or _in_one_domain(story, level, list(zip(groups, uids)), nodes)
            name = " and ".join(group.key for group in groups)
            yield change.at, "" if settled else _scattered(story, name, level, nodes.values())


def _in_one_domain(
    story: Story, level: str, members: Sequence[tuple[Wish, Collection[str]]], nodes: Mapping[str, str]
) -> bool:
    """Whether one holds the minima; a member added at that moment goes where its own group may, and those that the fault run has taken
    out may have been there."""
    where = {uid: story.domain(node, level) for uid, node in nodes.items()}

    def holds(place: Domain) -> bool:
        return all(sum(where.get(uid, place) == place for uid in uids) >= group.minimum for group, uids in members)

    return any(place is not None and holds(place) for place in set(where.values()))


def _added_alone(story: Story, wish: Wish) -> Iterator[str]:
    """Bound though minMember ran before it was made, and fewer than minMember have been bound with it."""
    if wish.policy != ONLY_WAITING:
        return
    lives = _lives(story.of(wish.key))
    for pod, life in lives.items():
        before = [each for each in lives.values() if each.bound < life.made and each.gone > life.bound]
        mates = [each for each in lives.values() if each.bound >= life.made and each.gone >= life.made]
        whole = len(before) >= max(wish.minimum, wish.most)
        if life.bound < NEVER and whole and wish.minimum > len(mates):
            yield f"{wish.key}: {pod} was added to {len(before)} that run, with {len(mates)} of a batch of {wish.minimum}"


@dataclass
class _Life:
    name: str
    made: float
    bound: float = NEVER
    gone: float = NEVER  # on its way, or finished


def _lives(changes: Iterable[Change]) -> dict[str, _Life]:
    """Of each pod, by its UID."""
    found: dict[str, _Life] = {}
    for change in changes:
        life = found.setdefault(change.pod.uid, _Life(change.pod.name, change.at))
        if _has_gone(change):
            life.gone = min(life.gone, change.at)
        elif change.pod.node:
            life.bound = min(life.bound, change.at)
    return found
