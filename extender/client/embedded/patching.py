"""Patches as the API server applies them: merge, strategic merge where lists have keys, JSON patch.

Kubernetes: k8s.io/apimachinery/pkg/util/strategicpatch, RFC 7396, RFC 6902
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from extender.client.errors import InvalidError

MERGE_KEYS = {"conditions": "type", "schedulingGates": "name", "containers": "name", "taints": "key"}


def merge(target: Any, patch: Any) -> Any:
    """RFC 7396: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target: Any, patch: Any, field: str = "") -> Any:
    """As merge, but lists with a merge key are merged by it, and `$patch: delete` takes an entry out."""
    if isinstance(patch, Mapping):
        result = dict(target) if isinstance(target, Mapping) else {}
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = strategic(result.get(key), value, key)
        return result
    if isinstance(patch, list) and field in MERGE_KEYS:
        return _merge_list(target or [], patch, MERGE_KEYS[field])
    return copy.deepcopy(patch)


def _merge_list(target: Sequence[Any], patch: Sequence[Any], key: str) -> list[Any]:
    result = [dict(entry) for entry in target]
    for entry in patch:
        found = next((i for i, known in enumerate(result) if known.get(key) == entry.get(key)), None)
        if entry.get("$patch") == "delete":
            if found is not None:
                del result[found]
        elif found is None:
            result.append(dict(entry))
        else:
            result[found] = strategic(result[found], entry)
    return result


def json_patch(target: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """add, replace, remove and test. Raises InvalidError, and then nothing is changed."""
    result = copy.deepcopy(target)
    for operation in operations:
        try:
            _apply(result, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise InvalidError(f"the server rejected our request due to an error in our request: {error}") from error
    return result


def _apply(target: Any, operation: Mapping[str, Any]) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    for part in parents:
        target = target[int(part)] if isinstance(target, list) else target[part]
    name = operation["op"]
    if isinstance(target, list):
        index = len(target) if last == "-" else int(last)
        _apply_to_list(target, index, name, operation.get("value"))
    elif name in ("add", "replace"):
        if name == "replace" and last not in target:
            raise KeyError(operation["path"])
        target[last] = operation["value"]
    elif name == "remove":
        del target[last]
    elif name == "test":
        if target.get(last) != operation["value"]:
            raise ValueError(f"test failed at {operation['path']}")
    else:
        raise ValueError(f"unknown operation {name!r}")


def _apply_to_list(target: list[Any], index: int, name: str, value: Any) -> None:
    if name == "add":
        target.insert(index, value)
    elif name == "replace":
        target[index] = value
    elif name == "remove":
        del target[index]
    elif name == "test":
        if target[index] != value:
            raise ValueError("test failed")
    else:
        raise ValueError(f"unknown operation {name!r}")
