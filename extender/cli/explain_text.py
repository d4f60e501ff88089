"""Gangs as text for a terminal: a table of all, or a page on one. Pure: values and the time in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from extender.cli.table import natural, table
from extender.cli.terminal import PLAIN, Terminal, printable
from extender.plugins.coscheduling.report.gang_status import (
    GangStatus,
    GangSummary,
    KeptFree,
    PreemptionView,
    Relaxation,
    RoomKept,
    Shortfall,
    ShownMember,
    ShownState,
    Victim,
)

SHOWN_MEMBERS = 40
SHOWN_DOMAINS = 5
SHOWN_VICTIMS = 10
LABEL_WIDTH = 12
INDENT = 2 + LABEL_WIDTH + 1  # where the text of a field begins

NO_GANGS = "no gangs: no pod that the extender has seen names a group, and there is no PodGroup"


def listing(
    gangs: Sequence[GangSummary],
    now: datetime,
    terminal: Terminal = PLAIN,
    *,
    wide: bool = False,
    namespace: str | None = None,
) -> Iterator[str]:
    """wide: with what is missing, and the message. namespace: that of the gangs; None: all namespaces."""
    if not gangs:
        yield NO_GANGS if namespace is None else printable(f"no gangs in namespace {namespace}")
        return
    rows = [
        (
            str(gang.place or ""),
            gang.key,
            gang.phase,
            gang.reason or "-",
            f"{gang.members.get(ShownState.BOUND, 0)}/{gang.min_member or '-'}",
            counts(gang),
            age(gang.waiting_since or gang.since, now),
        )
        for gang in gangs
    ]
    heads = ("LINE", "GROUP", "PHASE", "REASON", "BOUND", "MEMBERS", "FOR")
    if not wide:
        yield from table(heads, rows, terminal)
        return
    more = [(", ".join(f"{name} {amount}" for name, amount in gang.missing.items()), gang.message) for gang in gangs]
    yield from table((*heads, "MISSING", "MESSAGE"), [(*row, *rest) for row, rest in zip(rows, more)], terminal)


def page(status: GangStatus, now: datetime, terminal: Terminal = PLAIN, *, wide: bool = False) -> Iterator[str]:
    """No line has a control character, whatever a condition that is quoted has in it. What is long is folded beside its label. wide: with
    all members and victims."""
    yield from _folded(_page(status, now, wide), terminal)


def fields(found: Iterable[tuple[str, Iterable[str]]], terminal: Terminal = PLAIN) -> Iterator[str]:
    """Labels, each with the lines beside it, folded and printable likewise."""
    yield from _folded((line for label, texts in found for line in _field(label, texts)), terminal)


def _folded(lines: Iterable[str], terminal: Terminal) -> Iterator[str]:
    for line in map(printable, lines):
        label, text = (line[:INDENT], line[INDENT:]) if line.startswith("  ") else ("", line)
        first, *more = terminal.fold(text, len(label)) if label else [text]
        yield f"{label}{first}"
        yield from (" " * INDENT + each for each in more)


def _page(status: GangStatus, now: datetime, wide: bool) -> Iterator[str]:
    gang = status.gang
    yield f"{gang.key}: {gang.phase} for {age(gang.since, now)}"
    yield ""
    yield from _fields(status, now, wide)
    yield ""
    yield from _members(status.member_list, len(status.member_list) if wide else SHOWN_MEMBERS)


def _fields(status: GangStatus, now: datetime, wide: bool) -> Iterator[str]:
    gang = status.gang
    if gang.reason:
        yield from _field("reason", [gang.reason, *([gang.message] if gang.message else [])])
    if status.not_asked:
        yield from _field("not asked", [status.not_asked])
    yield from _field("minMember", [f"{gang.min_member or 'not known'}; there are {counts(gang) or 'no pods'}"])
    if status.roles:
        texts = [f"{each.role} {each.members} of {each.minimum}" for each in status.roles]
        yield from _field("roles", [", ".join(texts)])
    if status.not_honoured:
        yield from _field("not honoured", status.not_honoured)
    if status.starts_with:
        yield from _field("starts with", [", ".join(status.starts_with)])
    if gang.place:
        line = f"{gang.place} of {status.in_line}, by priority ({status.priority}), age and name"
        yield from _field("in line", [line, *filter(None, (status.gave_up,))])
    if gang.waiting_since is not None:
        since = gang.waiting_since.strftime("%Y-%m-%dT%H:%M:%SZ")
        yield from _field("waits since", [f"{since} ({age(gang.waiting_since, now)})"])
    if status.standby:
        yield from _field(
            "standby", ["this extender does not lead: it knows no plans and refusals; ask the one that does"]
        )
    if status.preemption is not None:
        for label, lines in preemption_lines(status.preemption, wide=wide):
            yield from _field(label, lines)
    if doing := _doing(status):
        yield from _field("now", [doing])
    if status.kept_free is not None:
        yield from _field("kept free", _kept_free(status.kept_free, now))
    if status.room_kept is not None:
        yield from _field("room kept", _room_kept(status.room_kept, now))
    if status.fits_now:
        yield from _field("now", ["it fits by now: it is planned at the next look"])
    if status.shortfall is not None:
        yield from _field("short", shortfall_lines(status.shortfall))
    if status.reserved_for:
        yield from _field("reserved for", status.reserved_for)
    if status.refuted:
        pairs = [f"{member} on {node}" for member, node in status.refuted]
        yield from _field("refused", [*pairs[:SHOWN_DOMAINS], "(by kube-scheduler's own filters)"])
    if status.relaxations:
        yield from _field("would fit", relaxation_lines(status.relaxations))
    if status.told:
        yield from _field("message", [status.told])


def _kept_free(kept: KeptFree, now: datetime) -> Iterator[str]:
    """until lies ahead: age() of now, seen from there."""
    count = f"{len(kept.nodes)} node" + ("" if len(kept.nodes) == 1 else "s")
    yield f"{count} of {kept.domain} for {age(now, kept.until)} more: no pod of its priority or below is admitted there"
    yield ", ".join(kept.nodes[:SHOWN_DOMAINS]) + (" ..." if len(kept.nodes) > SHOWN_DOMAINS else "")


def _room_kept(kept: RoomKept, now: datetime) -> Iterator[str]:
    yield f"for members that come later, for {age(now, kept.until)} more, on"
    yield ", ".join(kept.nodes[:SHOWN_DOMAINS]) + (" ..." if len(kept.nodes) > SHOWN_DOMAINS else "")


def relaxation_lines(relaxations: Iterable[Relaxation]) -> list[str]:
    return [("or " if number else "") + each.text for number, each in enumerate(relaxations)]


def preemption_lines(view: PreemptionView, *, wide: bool = False) -> Iterator[tuple[str, Sequence[str]]]:
    """Labels, each with the lines beside it. wide: with all victims."""
    names = [_victim(victim) for victim in (view.victims if wide else view.victims[:SHOWN_VICTIMS])]
    if more := len(view.victims) - len(names):
        names.append(f"and {more} more")
    if view.under_way:
        yield "waits for", names or ["pods that are going anyway"]
        return
    if names:
        yield "would evict", names
    if view.why_not:
        yield ("but" if names else "no eviction"), [view.why_not]


def _victim(victim: Victim) -> str:
    gang = f", with its gang {victim.gang}" if victim.gang else ""
    return f"{victim.pod} on {victim.node} (priority {victim.priority}{gang})" if victim.node else victim.pod


def _doing(status: GangStatus) -> str:
    """What happens to a gang that does not wait for a plan."""
    coming = [each.name for each in status.member_list if each.state is ShownState.PLANNED]
    names = ", ".join(coming[:SHOWN_DOMAINS]) + (" ..." if len(coming) > SHOWN_DOMAINS else "")
    match status.gang.phase:
        case "Planned":
            return f"its places are kept; kube-scheduler has to bring {names}" if coming else "its places are kept"
        case "Assembling":
            return f"held until all are there; still to come: {names}" if coming else "held until all are there"
        case "Committing":
            return "its bindings are being made"
    return ""


def _field(label: str, texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"  {'' if number else label:{LABEL_WIDTH}} {text}".rstrip()


def shortfall_lines(short: Shortfall) -> Iterator[str]:
    text = f"{short.placed} of {short.needed} members would find a place"
    if short.resource:
        text += f"; {short.resource} runs out first: {short.missing} more needed"
    yield text
    if short.domains:
        best = ", ".join(f"{domain.name} holds {domain.holds}" for domain in short.domains[:SHOWN_DOMAINS])
        yield f"by {short.level}: {best}"
    if short.slices:
        yield short.slices


def _members(members: Sequence[ShownMember], most: int) -> Iterator[str]:
    by_name = sorted(members, key=lambda each: natural(each.name))
    rows = [(each.name, each.state.value, each.node or "-", ",".join(each.gates) or "-") for each in by_name]
    if any(each.gates for each in members):
        yield from table(("MEMBER", "STATE", "NODE", "GATES"), rows[:most])
    elif rows:
        yield from table(("MEMBER", "STATE", "NODE"), [row[:3] for row in rows[:most]])
    if len(rows) > most:
        yield f"... and {len(rows) - most} more: -o wide has all"


def counts(gang: GangSummary) -> str:
    """`3 waiting, 1 gated`, the furthest first."""
    states = [state.value for state in reversed(ShownState)]
    return ", ".join(f"{number} {state}" for state in states if (number := gang.members.get(state, 0)))


def age(then: datetime, now: datetime) -> str:
    """In kubectl's manner: two units at most."""
    seconds = max(0, int((now - then).total_seconds()))
    for unit, size, below, divisor in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            rest = seconds % size // divisor
            return f"{seconds // size}{unit}{rest}{below}" if rest else f"{seconds // size}{unit}"
    return f"{seconds}s"
