"""Which topology a group asks for: annotations of its PodGroup, on the levels that the configuration names.

Admission puts it into the planner's request. An annotation that names no level is refused by the planner, by its name.
"""

from __future__ import annotations

from dataclasses import replace

from extender.api.schedulingv1alpha1 import PodGroup
from extender.plugins.coscheduling.planner import Topology

REQUIRED = "gang-extender.dev/topology-required"
PREFERRED = "gang-extender.dev/topology-preferred"


def topology_of(configured: Topology, pod_group: PodGroup | None) -> Topology:
    """A group that is labels only asks for nothing."""
    annotations = pod_group.metadata.annotations if pod_group is not None else {}
    required, preferred = annotations.get(REQUIRED, ""), annotations.get(PREFERRED, "")
    return replace(configured, required=required, preferred=preferred) if required or preferred else configured
