"""What every Kubernetes object carries: metadata, label selectors, conditions.

Kubernetes: k8s.io/apimachinery/pkg/apis/meta/v1/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

from msgspec import Meta, Struct, field

MAX_NAME = 253

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""As Go decodes them."""

Time = Annotated[datetime, Meta(tz=True)]
"""With its offset from UTC: all times can be compared."""


class Object(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Base of every struct: frozen, camelCase on the wire, defaults left out."""


class OwnerReference(Object, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(Object, frozen=True, gc=False):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone where there is no namespace. Go: cache.MetaNamespaceKeyFunc."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object. Written like all of metadata by the object's creator. Go: metav1.GetControllerOf."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class GroupObject(Object, frozen=True, gc=False):
    """Base of the PodGroups of every system. unreadable: which field of the spec is not what the type asks for, and what is wrong with
    it: `spec.minMember: ...`; the spec is the default then (client/unreadable). Empty for every other object.

    scheduled: the type of the condition that says whether its gang has started; empty where none of ours does."""

    unreadable: ClassVar[str] = ""
    scheduled: ClassVar[str] = ""

    metadata: ObjectMeta

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.metadata.key


class ListMeta(Object, frozen=True, gc=False):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: Int64 | None = None


class Condition(Object, frozen=True, gc=False):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None
    observed_generation: Int64 = 0


class LabelSelectorRequirement(Object, frozen=True, gc=False):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """One requirement against labels; an unknown operator matches nothing."""
        match self.operator:
            case "In":
                return self.key in labels and labels[self.key] in self.values
            case "NotIn":
                return self.key not in labels or labels[self.key] not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return False


class LabelSelector(Object, frozen=True, gc=False):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.match_labels and not self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all requirements hold; an empty selector matches everything (a missing one, None, is the caller's matter)."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )
