"""scheduling.sigs.k8s.io/v1alpha1: Koordinator's PodGroup, which has the fields of scheduler-plugins' own.

Read where it is served, and never written. Pods name it in the label pod-group.scheduling.sigs.k8s.io.
Koordinator: vendor of sigs.k8s.io/scheduler-plugins, apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import GroupObject
from extender.api.schedulingv1alpha1 import PodGroupSpec, PodGroupStatus

GROUP = "scheduling.sigs.k8s.io"
VERSION = "v1alpha1"
POD_GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io"


class PodGroup(GroupObject, frozen=True, gc=False):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
