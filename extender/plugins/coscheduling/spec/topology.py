"""Which topology levels a group asks for: annotations of its PodGroup or of its pods.

`group_topology` finds the levels among those that the configuration names.
Kueue: kueue.x-k8s.io/podset-required-topology, podset-preferred-topology
"""

from __future__ import annotations

from dataclasses import dataclass

REQUIRED = "gang-extender.dev/topology-required"
PREFERRED = "gang-extender.dev/topology-preferred"


@dataclass(frozen=True, slots=True)
class AskedTopology:
    """Levels, by their name or label; empty where none is asked for."""

    required: str = ""
    preferred: str = ""


NO_TOPOLOGY = AskedTopology()
