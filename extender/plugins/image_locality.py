"""ImageLocality: nodes that have the pod's images already, weighed by their size and by how widespread they are.

kube-scheduler: pkg/scheduler/framework/plugins/imagelocality/image_locality.go
"""

from __future__ import annotations

from typing import Self

import numpy as np

from extender.api import corev1
from extender.framework.columnar import IntColumn, NodeTable, Rows, ScoreColumns
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import MAX_NODE_SCORE, ScorePlugin
from extender.framework.node_info import NodeInfo
from extender.framework.status import SUCCESS, Status
from extender.plugins import names

MB = 1024 * 1024
MIN_THRESHOLD = 23 * MB
MAX_CONTAINER_THRESHOLD = 1000 * MB


class ImageLocality(ScorePlugin, ScoreColumns):
    name = names.IMAGE_LOCALITY

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls(handle)

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        if not node.image_states:
            return 0, SUCCESS
        total_nodes = len(self._handle.snapshot().list())
        amount = 0
        for image in _images(pod):
            summary = node.image_states.get(normalized_image_name(image))
            if summary is not None:
                amount += int(float(summary.size) * (float(summary.num_nodes) / float(total_nodes)))
        return _priority(amount, _containers(pod)), SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        total_nodes = float(len(self._handle.snapshot().list()))
        amount = np.zeros(len(rows), dtype=np.int64)
        for image in _images(pod):
            sizes, num_nodes = table.image(normalized_image_name(image))
            spread = num_nodes[rows].astype(np.float64) / total_nodes
            amount += (sizes[rows].astype(np.float64) * spread).astype(np.int64)
        highest = MAX_CONTAINER_THRESHOLD * _containers(pod)
        amount = np.maximum(MIN_THRESHOLD, np.minimum(amount, highest))
        return MAX_NODE_SCORE * (amount - MIN_THRESHOLD) // (highest - MIN_THRESHOLD)


def _images(pod: corev1.Pod) -> list[str]:
    """Of init containers, containers and image volumes."""
    images = [container.image for container in pod.all_containers()]
    return images + [volume.image.reference for volume in pod.spec.volumes if volume.image is not None]


def _containers(pod: corev1.Pod) -> int:
    return len(pod.spec.containers) + len(pod.spec.init_containers)


def _priority(amount: int, containers: int) -> int:
    highest = MAX_CONTAINER_THRESHOLD * containers
    amount = max(MIN_THRESHOLD, min(amount, highest))
    return MAX_NODE_SCORE * (amount - MIN_THRESHOLD) // (highest - MIN_THRESHOLD)


def normalized_image_name(name: str) -> str:
    """A name without a tag means `latest`; a colon before the last slash is a port."""
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"
