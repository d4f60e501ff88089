"""The labels and annotations that the program reads, found in its modules: what hostile values are tried on.

Used by tests of the edge. A key that is listed nowhere is found all the same.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import extender
from extender.api.metadata_keys import Key
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.sources.source import presets

NOT_IMPORTED = ("extender.server.serve", "extender.server.worker")  # they patch the whole process


def declared_keys() -> list[Key[Any]]:
    """Every constant of every module, the labels that name a group by default, and what the presets of groupSources read."""
    found: dict[str, Key[Any]] = {key: key for key in GroupLabels().keys}
    found |= {key: key for source in presets() for key in source.read_keys()}
    for module in pkgutil.walk_packages(extender.__path__, "extender."):
        if module.name not in NOT_IMPORTED:
            constants = vars(importlib.import_module(module.name)).values()
            found |= {each: each for each in constants if isinstance(each, Key)}
    return sorted(found.values())
