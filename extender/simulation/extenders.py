"""The entries of `extenders:` in a kube-scheduler's configuration: which of them are this extender, and what of the rest is called.

simulate and evaluate put the plugin Coscheduling in the place of this extender, without a call. Of the others nothing is called
unless the user asks for it, and then only what changes nothing anywhere: filter and prioritize.
Counterpart: buildExtenders in kube-scheduler's pkg/scheduler/scheduler.go, which calls them all.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from extender.config.types import ExtenderConfig

PORT = 8888  # of `serve` by default, and in manifests/sidecar
VERBS = ("filter", "prioritize", "preempt", "bind")
CALLED = ("filter", "prioritize")
NEEDED = ("filter", "preempt", "bind")
"""Of this extender: without one of these gangs are not kept whole."""

Address = tuple[str, str, int | None]
"""Scheme, host and port of a urlPrefix."""
_NOWHERE: Address = ("", "", None)


@dataclass(frozen=True, slots=True)
class SortedExtenders:
    """own: the entries that are this extender. called: what may be asked of the others; warnings name all that is not."""

    own: tuple[ExtenderConfig, ...] = ()
    called: tuple[ExtenderConfig, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """That kube-scheduler gives our scores."""
        return next((entry.weight for entry in self.own if entry.prioritize_verb), 0)


def sort_extenders(entries: Sequence[ExtenderConfig], *, configured: bool, call: bool) -> SortedExtenders:
    """configured: whether the user has given the extender's own configuration as well. call: whether others may be called."""
    addresses = dict.fromkeys(_address(entry) for entry in entries)
    ours = {
        address
        for address in addresses
        if _is_this_extender([entry for entry in entries if _address(entry) == address], configured=configured)
    }
    own = tuple(entry for entry in entries if _address(entry) in ours)
    others = [entry for entry in entries if _address(entry) not in ours]
    harmless = (replace(entry, preempt_verb="", bind_verb="") for entry in others) if call else ()
    called = tuple(entry for entry in harmless if _verbs(entry))
    return SortedExtenders(own, called, (*_mistakes(own), *_left_out(others, call=call)))


def _is_this_extender(entries: Sequence[ExtenderConfig], *, configured: bool) -> bool:
    """Of all entries of one address. They are this extender if

    1. each asks for the paths of `serve` and no others (a verb by another name, or a path before it, would be a 404 there), and
       has no managedResources (all members of a gang have to be sent); and
    2. the address is loopback with serve's own port; or they ask for filter and bind, and the address is loopback, or has serve's
       own port, or the extender's configuration is given too.
    """
    if not all(_asks_for_our_paths(entry) and not entry.managed_resources for entry in entries):
        return False
    _, host, port = _address(entries[0])
    if _is_loopback(host) and port == PORT:
        return True
    verbs = {verb for entry in entries for verb in _verbs(entry)}
    return {"filter", "bind"} <= verbs and (_is_loopback(host) or port == PORT or configured)


def _asks_for_our_paths(entry: ExtenderConfig) -> bool:
    """kube-scheduler posts to urlPrefix, a slash and the verb."""
    verbs = _verbs(entry)
    if _address(entry) == _NOWHERE:
        return False
    path = urlsplit(entry.url_prefix).path.rstrip("/")
    return bool(verbs) and not path and all(name.rstrip("/") == verb for verb, name in verbs.items())


def _verbs(entry: ExtenderConfig) -> dict[str, str]:
    """Verb -> the name that the entry has for it, of those that it has."""
    names = {verb: str(getattr(entry, f"{verb}_verb")) for verb in VERBS}
    return {verb: name for verb, name in names.items() if name}


def _address(entry: ExtenderConfig) -> Address:
    try:
        parts = urlsplit(entry.url_prefix)
        return parts.scheme, parts.hostname or "", parts.port
    except ValueError:
        return _NOWHERE


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".") == "localhost"


def _mistakes(own: Sequence[ExtenderConfig]) -> Iterable[str]:
    """Settings by which kube-scheduler would not do what is simulated."""
    asked = {verb for entry in own for verb in _verbs(entry)}
    for verb in NEEDED if own else ():
        if verb not in asked:
            yield f"no entry of this extender has {verb}Verb: kube-scheduler does not ask for it; simulated as if it did"
    for entry in own:
        if not entry.node_cache_capable:
            yield (
                f"{entry.url_prefix} ({', '.join(_verbs(entry))}): nodeCacheCapable: true is missing: the extender refuses "
                "such calls; simulated as if it were there"
            )


def _left_out(others: Sequence[ExtenderConfig], *, call: bool) -> Iterable[str]:
    """Nothing is answered as if an extender had been asked that was not."""
    named = []
    for entry in others:
        verbs = [verb for verb in _verbs(entry) if not (call and verb in CALLED)]
        if verbs:
            named.append(f"{entry.url_prefix} ({', '.join(verbs)})")
    if not named:
        return
    if call:
        yield f"extenders are not asked for what could change something: {', '.join(named)}"
    else:
        yield f"extenders are not asked without --call-extenders: {', '.join(named)}"
