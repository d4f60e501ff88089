"""Which topology levels a group asks for: annotations of its PodGroup or of its pods.

`group_topology` finds the levels among those that the configuration names.
Kueue: kueue.x-k8s.io/podset-required-topology, podset-preferred-topology
"""

from __future__ import annotations

from dataclasses import dataclass

from extender.plugins.coscheduling.spec.field_errors import invalid


@dataclass(frozen=True, slots=True)
class AskedTopology:
    """Levels, by their name or label; empty where none is asked for.

    node_label: of kube-scheduler's own PodGroup: a required level too, which need not be a configured one.
    """

    required: str = ""
    preferred: str = ""
    node_label: str = ""


NO_TOPOLOGY = AskedTopology()


def parse_level(text: str) -> str:
    """Raises FieldError. Whether there is such a level, the planner says."""
    if not text.isprintable():
        raise invalid(text, "must be the name or the node label of a topology level")
    return text
