"""scheduling.k8s.io/v1beta1: kube-scheduler's own PodGroup as Kubernetes 1.37 has it: v1alpha2's with a parent, a preemption
policy and a union in place of a word for the disruption mode.

Kubernetes: k8s.io/api/scheduling/v1beta1/types.go
"""

from __future__ import annotations

from typing import ClassVar

from extender.api import schedulingv1alpha2
from extender.api.metav1 import Object

GROUP = schedulingv1alpha2.GROUP
VERSION = "v1beta1"


class Mode(Object, frozen=True, gc=False):
    """Empty: that it is there says it all."""


class DisruptionMode(Object, frozen=True, gc=False):
    """A union: exactly one is set. Go: DisruptionMode, and CompositeDisruptionMode, which is like it."""

    single: Mode | None = None
    all: Mode | None = None


class PodGroupSpec(schedulingv1alpha2.PodGroupSpec, frozen=True, gc=False):
    parent_composite_pod_group_name: str | None = None  # type: ignore[misc]
    disruption_mode: DisruptionMode | None = None  # type: ignore[assignment]
    preemption_policy: str | None = None  # type: ignore[misc]


class PodGroup(schedulingv1alpha2.PodGroup, frozen=True, gc=False):
    scheduled: ClassVar[str] = "PodGroupInitiallyScheduled"

    spec: PodGroupSpec = PodGroupSpec()
