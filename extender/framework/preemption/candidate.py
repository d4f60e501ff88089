"""A node that a pod could have, and the victims that would have to go for it.

kube-scheduler: pkg/scheduler/framework/preemption/types.go (Candidate), k8s.io/kube-scheduler/extender/v1 (Victims)
"""

from __future__ import annotations

from dataclasses import dataclass

from extender.api import corev1


@dataclass(frozen=True, slots=True)
class Victims:
    """The most important pod first: a reader takes the first one's priority for the highest."""

    pods: tuple[corev1.Pod, ...]
    num_pdb_violations: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """`name` is the node's."""

    name: str
    victims: Victims
