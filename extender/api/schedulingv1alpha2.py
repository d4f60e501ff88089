"""scheduling.k8s.io/v1alpha2: kube-scheduler's own PodGroup, as far as a gang's minimum goes.

Read where it is configured and served; pods name it in spec.schedulingGroup.podGroupName.
Kubernetes: k8s.io/api/scheduling/v1alpha2/types.go
"""

from __future__ import annotations

from typing import ClassVar

from extender.api.metav1 import Int32, Object, ObjectMeta

GROUP = "scheduling.k8s.io"
VERSION = "v1alpha2"


class GangSchedulingPolicy(Object, frozen=True, gc=False):
    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Object, frozen=True, gc=False):
    """`gang` is None for the basic policy: the pods are on their own."""

    gang: GangSchedulingPolicy | None = None


class PodGroupSpec(Object, frozen=True, gc=False):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()


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
