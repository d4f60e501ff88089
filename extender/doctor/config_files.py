"""A configuration file that kube-scheduler or the extender starts with, and which entries of kube-scheduler's are the extender's.

Used by the rules for each file, and for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from extender.config.types import (
    ExtenderConfig,
    ExtenderConfiguration,
    KubeSchedulerConfiguration,
    NamespacedName,
)
from extender.config.yaml_file import Document
from extender.doctor import addresses

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConfigFile(Generic[T]):
    """A file that its process starts with."""

    document: Document
    read: T


KubeSchedulerFile = ConfigFile[KubeSchedulerConfiguration]
ExtenderFile = ConfigFile[ExtenderConfiguration]


def entries_of_ours(
    extenders: Sequence[ExtenderConfig], service: NamespacedName | None
) -> list[tuple[int, ExtenderConfig]]:
    """Those of the host that binds, since only one extender can. Where that host is not asked to filter, an entry is misplaced or lacks
    its verb: then also those that are ours by their address, and then by preempt, which few others have; all where there is none of these.
    service: leaderService of our file."""
    marks: tuple[Callable[[ExtenderConfig], bool], ...] = (
        lambda entry: bool(entry.bind_verb),
        lambda entry: _is_at(entry.url_prefix, service),
        lambda entry: bool(entry.preempt_verb),
    )
    of_ours: set[str] = set()
    for is_ours in marks:
        of_ours |= {host_of(entry) for entry in extenders if is_ours(entry)}
        found = [(index, entry) for index, entry in enumerate(extenders) if host_of(entry) in of_ours]
        if any(entry.filter_verb for _, entry in found):
            break
    return found or list(enumerate(extenders))


def _is_at(url_prefix: str, service: NamespacedName | None) -> bool:
    """Whether it is the address of the Service; without one, of an extender beside kube-scheduler."""
    url, port = addresses.split(url_prefix)
    host = url.hostname if url is not None else None
    if not host:
        return False
    if service is None:
        return addresses.is_loopback(host) and port == addresses.VERBS_PORT
    return f"{host}.".startswith(f"{service.name}.{service.namespace}.svc.")


def host_of(entry: ExtenderConfig) -> str:
    try:
        return urlsplit(entry.url_prefix).netloc
    except ValueError:
        return entry.url_prefix
