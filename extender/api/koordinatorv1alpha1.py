"""scheduling.sigs.k8s.io/v1alpha1: Koordinator's PodGroup, which has the fields of scheduler-plugins' own.

Read where it is served, and never written. Pods name it in the label pod-group.scheduling.sigs.k8s.io.
Koordinator: vendor of sigs.k8s.io/scheduler-plugins, apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from typing import ClassVar

from extender.api.metav1 import Object, ObjectMeta
from extender.api.schedulingv1alpha1 import PodGroupSpec

GROUP = "scheduling.sigs.k8s.io"
VERSION = "v1alpha1"
POD_GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io"


class PodGroup(Object, frozen=True, gc=False):
    """unreadable: see UnreadablePodGroup; empty for every other."""

    unreadable: ClassVar[str] = ""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.metadata.key


class UnreadablePodGroup(PodGroup, frozen=True, gc=False):
    """One whose spec is not what the type asks for; `spec` is the default then.

    unreadable: which field, and what is wrong with it: `spec.minMember: ...`.
    """

    unreadable: str = ""  # type: ignore[misc]
