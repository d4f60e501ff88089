"""What PodGroup.status says, where no page of an extender can be reached: `list` and `explain` fall back to it.

A tenant that may read its PodGroups has the answer, amounts included; its members, and gangs without a PodGroup, are on the pages alone.
It is text for people: a program that asks for JSON is told that there is no page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from extender.cli import explain_text, kubeconfig_flags, standard_error
from extender.cli.errors import NoAnswerError
from extender.cli.table import natural, table
from extender.cli.terminal import PLAIN, Terminal, printable

if TYPE_CHECKING:
    from extender.api.metav1 import Condition
    from extender.api.schedulingv1alpha1 import PodGroup
    from extender.client.connection import Connection

TEXT = ("text", "wide")
TRUE, FALSE = "True", "False"
TOLD = ("DisruptionTarget", "Degraded", "Finished")
"""Conditions beside Scheduled, in the order in which they are told where they are true."""


def serves(args: argparse.Namespace) -> bool:
    """Whether what is asked for can be read off a PodGroup."""
    return args.output in TEXT and not args.watch


def listed(args: argparse.Namespace, namespace: str | None, error: NoAnswerError) -> list[PodGroup]:
    """namespace: None: of all. error: why there is no page; raised where PodGroups cannot be read either."""
    from extender.client.interface import POD_GROUPS, list_all

    with _read(args, error) as cluster:
        return sorted(list_all(cluster, POD_GROUPS, namespace=namespace or ""), key=lambda each: natural(each.key))


def one(args: argparse.Namespace, group: str, error: NoAnswerError) -> PodGroup:
    """group: its key. error: likewise."""
    from extender.client.interface import POD_GROUPS

    namespace, _, name = group.partition("/")
    with _read(args, error) as cluster:
        return cluster.get(POD_GROUPS, name, namespace)


@contextmanager
def _read(args: argparse.Namespace, error: NoAnswerError) -> Iterator[Connection]:
    from extender.client.errors import ApiError

    files = kubeconfig_flags.of_caller(args)
    if files is None:
        raise error
    connection = kubeconfig_flags.connect(files, args.context)
    try:
        yield connection
    except ApiError:
        raise error from None
    finally:
        connection.close()
    standard_error.say(
        f"{args.program}: {error}", f"{args.program}: no page can be asked: this is what PodGroup.status says"
    )


def listing(
    groups: Sequence[PodGroup],
    now: datetime,
    terminal: Terminal = PLAIN,
    *,
    wide: bool = False,
    namespace: str | None = None,
) -> Iterator[str]:
    """Those in line first."""
    if not groups:
        yield printable(f"no PodGroups in namespace {namespace}" if namespace else "no PodGroups")
        return
    heads = ("LINE", "GROUP", "PHASE", "REASON", "BOUND", "FOR")
    in_order = sorted(groups, key=lambda each: each.status.position or sys.maxsize)
    rows = [
        (
            str(each.status.position or ""),
            each.key,
            each.status.phase or "-",
            (told.reason if (told := _told(each)) is not None else "") or "-",
            each.status.bound or f"-/{each.spec.min_member}",
            explain_text.age(_since(each), now),
        )
        for each in in_order
    ]
    if not wide:
        yield from table(heads, rows, terminal)
        return
    more = [(_missing(each), told.message if (told := _told(each)) is not None else "") for each in in_order]
    yield from table((*heads, "MISSING", "MESSAGE"), [(*row, *rest) for row, rest in zip(rows, more)], terminal)


def page(group: PodGroup, now: datetime, terminal: Terminal = PLAIN) -> Iterator[str]:
    yield printable(
        f"{group.key}: {group.status.phase or 'nothing is said of it yet'} for {explain_text.age(_since(group), now)}"
    )
    yield ""
    yield from explain_text.fields(_fields(group), terminal)


def _fields(group: PodGroup) -> Iterator[tuple[str, Iterable[str]]]:
    status, told = group.status, _told(group)
    if told is not None:
        yield "reason", [told.reason, *filter(None, [told.message])]
    yield "minMember", [str(group.spec.min_member)]
    yield "bound", [status.bound or "not known"]
    if status.position:
        yield "in line", [str(status.position)]
    if status.missing:
        yield "short", [_missing(group)]
    if status.would_fit:
        yield "would fit", [status.would_fit]
    if status.nodes:
        yield "nodes", [status.nodes]


def _told(group: PodGroup) -> Condition | None:
    """Why it does not run whole; None where there is nothing to tell."""
    conditions = {each.type: each for each in group.status.conditions}
    scheduled = conditions.get(group.scheduled)
    if scheduled is not None and scheduled.status == FALSE:
        return scheduled
    true = (conditions[type_] for type_ in TOLD if type_ in conditions and conditions[type_].status == TRUE)
    return next(true, None)


def _since(group: PodGroup) -> datetime:
    told = _told(group)
    return (
        (told.last_transition_time if told is not None else None)
        or group.metadata.creation_timestamp
        or datetime.now().astimezone()
    )


def _missing(group: PodGroup) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in group.status.missing.items())
