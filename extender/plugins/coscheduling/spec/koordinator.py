"""Koordinator's annotations, read as what they mean here.

On a pod they make a group that needs no object; on a PodGroup they add to it. `pod_group` asks here after our own keys.
Koordinator: apis/extension/coscheduling.go
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from extender.plugins.coscheduling.spec.named_groups import Keys, parse_names

PREFIX = "gang.scheduling.koordinator.sh"
NAME = f"{PREFIX}/name"
MIN_AVAILABLE = f"{PREFIX}/min-available"
WAITING_TIME = f"{PREFIX}/waiting-time"
MODE = f"{PREFIX}/mode"  # Strict or NonStrict: what becomes of held members when one fails; nothing is held here without a plan
MATCH_POLICY = f"{PREFIX}/match-policy"
GROUPS = f"{PREFIX}/groups"

_MODES = ("Strict", "NonStrict")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Seconds of Go's `1h30m`, `90s`. Raises ValueError, worded for the group's owner."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"Invalid value: {text[:63]!r}: must be a duration, such as 90s")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def parse_group_list(text: str, own_key: str) -> Keys:
    """A JSON list of `namespace/name`. Raises ValueError, worded for the group's owner."""
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"Invalid value: {text[:63]!r}: must be a JSON list of namespace/name")
    return parse_names(names, own_key)


def check_mode(annotations: Mapping[str, str]) -> None:
    """Both modes mean the same here. Raises ValueError for another."""
    mode = annotations.get(MODE, "")
    if mode and mode not in _MODES:
        raise ValueError(f"Unsupported value: {mode[:63]!r}: supported values: " + ", ".join(f'"{m}"' for m in _MODES))
