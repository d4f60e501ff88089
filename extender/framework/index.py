"""Names by a key that several of them share: a set for each key, and no key without names.

The gang room keeps by it which groups name which. client-go: tools/cache/thread_safe_store.go (Index)
"""

from __future__ import annotations


class Index(dict[str, set[str]]):
    """Not locked. A key without names reads as empty."""

    def __missing__(self, key: str) -> set[str]:
        return set()

    def add(self, key: str, name: str) -> None:
        self.setdefault(key, set()).add(name)

    def discard(self, key: str, name: str) -> None:
        names = self[key]
        names.discard(name)
        if not names:
            self.pop(key, None)
