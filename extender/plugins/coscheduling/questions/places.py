"""Where members would go, as the pages show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from extender.plugins.coscheduling.report.outlook import Place
from extender.plugins.coscheduling.state.group import Group


def places_by_name(groups: Iterable[Group], nodes: Mapping[str, str]) -> tuple[Place, ...]:
    """By the members' names. nodes: UID -> node; a UID of no member is left out."""
    names = {uid: member.pod.name for group in groups for uid, member in group.members.items() if uid in nodes}
    return tuple(sorted((Place(name, nodes[uid]) for uid, name in names.items()), key=lambda each: each.member))
