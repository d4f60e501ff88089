"""Field selectors, as far as this project uses them: `metadata.name=x,status.phase!=Failed`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extender.client.errors import BadRequestError

Raw = dict[str, Any]


def field_selector(text: str, namespace: str) -> Callable[[Raw], bool]:
    """A predicate on raw objects. Raises BadRequestError for what is no selector."""
    terms = []
    for term in filter(None, text.split(",")):
        path, operator, value = _split(term)
        terms.append((path.split("."), operator, value))

    def selects(obj: Raw) -> bool:
        if namespace and obj["metadata"].get("namespace") != namespace:
            return False
        return all((_at(obj, path) == value) is equal for path, equal, value in terms)

    return selects


def _split(term: str) -> tuple[str, bool, str]:
    for operator, equal in (("!=", False), ("==", True), ("=", True)):
        path, found, value = term.partition(operator)
        if found:
            return path, equal, value
    raise BadRequestError(f'unable to parse requirement: "{term}"')


def _at(obj: Any, path: list[str]) -> Any:
    for part in path:
        obj = obj.get(part, "") if isinstance(obj, dict) else ""
    return obj
