"""Values of Koordinator's annotations, read as what they mean here.

On a pod they make a group that needs no object; on a PodGroup they add to it. Our own keys come first.
Koordinator: apis/extension/coscheduling.go
"""

from __future__ import annotations

import msgspec

from extender.config.durations import DurationError, parse_go_duration
from extender.plugins.coscheduling.spec.counts import MAX_WAIT_SECONDS
from extender.plugins.coscheduling.spec.field_errors import invalid, unsupported
from extender.plugins.coscheduling.spec.topology import AskedTopology, layer, parse_level

_MODES = ("Strict", "NonStrict")


def parse_waiting_time(text: str) -> int | None:
    """Whole seconds of Go's `1h30m` or `90s`, at least 1; None for none, which is the scheduler's own setting. Raises FieldError."""
    try:
        seconds = parse_go_duration(text)
    except DurationError:
        raise invalid(text, "must be a duration, such as 90s") from None
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise invalid(text, f"must be between 0s and {MAX_WAIT_SECONDS // 3600}h, inclusive")
    return max(1, round(seconds)) if seconds else None


def parse_mode(text: str) -> str:
    """What becomes of held members when one fails. Both modes mean the same: nothing is held here without a plan. Raises FieldError."""
    if text not in _MODES:
        raise unsupported(text, _MODES)
    return text


class _Gather(msgspec.Struct):
    layer: str
    strategy: str = ""


class _NetworkTopology(msgspec.Struct):
    gather: list[_Gather] = msgspec.field(name="gatherStrategy", default_factory=list)


_NETWORK_TOPOLOGY = msgspec.json.Decoder(_NetworkTopology)
_MUST, _PREFER = "MustGather", "PreferGather"


def parse_network_topology(text: str) -> AskedTopology:
    """The first layer that has to gather all is a required level, the first that may is a preferred one. Raises FieldError."""
    try:
        gather = _NETWORK_TOPOLOGY.decode(text).gather
    except (msgspec.DecodeError, RecursionError):
        raise invalid(text, "must be a JSON object with gatherStrategy, a list of layers and strategies") from None
    layers: dict[str, str] = {}
    for each in gather:
        if each.strategy not in (_MUST, _PREFER):
            raise unsupported(each.strategy, (_MUST, _PREFER))
        layers.setdefault(each.strategy, parse_level(each.layer))
    return AskedTopology(layers.get(_MUST, ""), layer(layers[_PREFER]) if _PREFER in layers else "")
