"""Equal parts of different objects as one: of a Deployment's thousand pods nearly everything but the name is alike.

Reflectors pass what they decode through here before anything else sees it: three quarters of a large cluster's memory. No
counterpart in kube-scheduler, where each object is whole. docs/design/0002-columns.md has the numbers.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from extender.api import codec, corev1

MOST_NEW = 1_024
"""Parts between two looks at which are in no two objects: conditions with their texts must not pile up over hours."""
MOST_BYTES = 256 * 1024
"""Of their keys, likewise: one pod's annotation may have 256 KiB, and be another one each moment."""
IN_ONE_OBJECT = 3
"""References to a part that the table knows and one object has: that of the look itself is among them."""

META = ("labels", "annotations", "owner_references", "finalizers")
POD_SPEC = (
    "containers",
    "init_containers",
    "affinity",
    "node_selector",
    "overhead",
    "tolerations",
    "topology_spread_constraints",
    "volumes",
)
POD_STATUS = (
    "conditions",
    "container_statuses",
    "init_container_statuses",
    "allocated_resources",
)
NODE_STATUS = ("allocatable", "capacity", "declared_features")
_EMPTY: dict[str, Any] = {}


class Parts:
    """Those of one field by their encodings. What is in no two objects any more is forgotten from time to time."""

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}
        self._new = self._new_bytes = 0  # since the last look
        self._look_after = MOST_NEW

    def __len__(self) -> int:
        return len(self._known)

    def same(self, part: Any) -> Any:
        """The part that is equal, this one if there is none yet."""
        key = codec.encode(part)
        known = self._known.get(key)
        if known is not None:
            return known
        if self._new >= self._look_after or self._new_bytes + len(key) > MOST_BYTES:
            self._forget()
        self._known[key] = part
        self._new += 1
        self._new_bytes += len(key)
        return part

    def _forget(self) -> None:
        """As much as is kept may come anew before the next look, so that a part costs no more of it the more there are."""
        known = self._known
        self._known = {key: known[key] for key in known if sys.getrefcount(known[key]) > IN_ONE_OBJECT}
        self._new = self._new_bytes = 0
        self._look_after = max(MOST_NEW, len(self._known))


class SharedParts:
    """Not thread-safe: each reflector has its own, on its one thread."""

    def __init__(self) -> None:
        self._known: defaultdict[str, Parts] = defaultdict(Parts)

    def share(self, obj: object, before: Any = None) -> None:
        """Puts equal parts in place of the object's own. It must not have been handed out yet; others may have the parts.

        before: what was known under its name. What a version has in common with it is not looked for elsewhere."""
        if isinstance(obj, corev1.Pod):
            self._share_all(obj.metadata, META, before and before.metadata)
            self._share_all(obj.spec, POD_SPEC, before and before.spec)
            self._share_all(obj.status, POD_STATUS, before and before.status)
            _intern(obj.metadata, ("namespace", "generate_name"))
            _intern(obj.spec, ("node_name", "scheduler_name", "priority_class_name", "preemption_policy"))
            _intern(obj.status, ("phase", "nominated_node_name"))
        elif isinstance(obj, corev1.Node):
            self._share_all(obj.metadata, ("annotations",), before and before.metadata)
            self._share_all(obj.spec, ("taints",), before and before.spec)
            self._share_all(obj.status, NODE_STATUS, before and before.status)
            images = before.status.images if before is not None else ()
            if images != obj.status.images:
                images = tuple(map(self._known["image"].same, obj.status.images))
            force_setattr(obj.status, "images", images)

    def _share_all(self, owner: Struct, fields: tuple[str, ...], before: Struct | None) -> None:
        for field in fields:
            part = getattr(owner, field)
            if part:
                earlier = getattr(before, field) if before is not None else None
                force_setattr(owner, field, earlier if earlier == part else self._known[field].same(part))
            elif part == _EMPTY:
                force_setattr(owner, field, _EMPTY)


def _intern(owner: Struct, fields: tuple[str, ...]) -> None:
    for field in fields:
        text = getattr(owner, field)
        if text:
            force_setattr(owner, field, sys.intern(text))
