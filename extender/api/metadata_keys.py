"""Labels and annotations that the program reads of objects, each declared once as a constant.

A value is written by users, and may be up to 256 KiB of anything: `Key.text` caps its length before anything looks at it.
No other code reads a label or an annotation by its key; tests hold it to that, and try every declared key with hostile values.
Kubernetes: k8s.io/apimachinery/pkg/apis/meta/v1 (ObjectMeta)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

from extender.api.metav1 import ObjectMeta

T = TypeVar("T")

WORD = 64  # characters of a number, a duration, a time or a word out of few
NAME = 253  # of an object's name: a DNS-1123 subdomain
QUALIFIED_NAME = NAME + 1 + 63  # of a label's key: a prefix, a slash and a name
LIST = 8 * 1024  # of names or pairs


class Source(StrEnum):
    LABEL = "label"
    ANNOTATION = "annotation"


class Key(str, Generic[T]):
    """The name itself, so that it can be written into a patch as it is.

    kinds: the objects it is read of. longest: characters of a valid value. parse: from a text within that length to what it
    means; raises ValueError.
    """

    source: Source
    kinds: tuple[str, ...]
    longest: int
    parse: Callable[[str], T]

    def __new__(
        cls,
        name: str,
        source: Source,
        kinds: tuple[str, ...],
        longest: int,
        parse: Callable[[str], T],
    ) -> Self:
        key = super().__new__(cls, name)
        key.source, key.kinds, key.longest, key.parse = source, kinds, longest, parse
        return key

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """A copy, as of a patch that it is part of, is the plain name."""
        return str, (str(self),)

    def on(self, metadata: ObjectMeta) -> bool:
        """Whether the object has it, with whatever value."""
        return self in self._values(metadata)

    def text(self, metadata: ObjectMeta, default: str = "") -> str:
        """As it was written. Of a value that is too long the first `longest` characters and one more, which equals no valid value."""
        return self._values(metadata).get(self, default)[: self.longest + 1]

    def _values(self, metadata: ObjectMeta) -> Mapping[str, str]:
        return metadata.labels if self.source is Source.LABEL else metadata.annotations


class AnyOf:
    """Whether an object has one of these labels and annotations, in two look-ups whatever their number: most objects have none."""

    __slots__ = ("_annotations", "_labels")

    def __init__(self, keys: Iterable[Key[Any]]) -> None:
        known = list(keys)
        self._labels = frozenset(key for key in known if key.source is Source.LABEL)
        self._annotations = frozenset(key for key in known if key.source is Source.ANNOTATION)

    def on(self, metadata: ObjectMeta) -> bool:
        return not (self._labels.isdisjoint(metadata.labels) and self._annotations.isdisjoint(metadata.annotations))


class Record(Key[T]):
    """An annotation by which the extender knows its own acts again: it comes with a pod's binding, and no user writes it.

    manifests/tenants/records.yaml names each; a test compares.
    """
