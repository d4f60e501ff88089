"""Which nodes have which container image, for ImageLocality.

The cache feeds it from node objects; a snapshot's nodes carry its summaries, counted when they were cloned.
kube-scheduler: pkg/scheduler/backend/cache/cache.go (addNodeImageStates, removeNodeImageStates)
"""

from __future__ import annotations

from extender.api import corev1
from extender.framework.node_info import ImageStateSummary


class _ImageState:
    """One name's size, as the first node that had it reported it, and the nodes that have it now."""

    __slots__ = ("_summary", "nodes", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.nodes: set[str] = set()
        self._summary: ImageStateSummary | None = None

    def summary(self) -> ImageStateSummary:
        """One for all nodes that are cloned while as many have the image: thousands of nodes have the same few dozen images."""
        if self._summary is None or self._summary.num_nodes != len(self.nodes):
            self._summary = ImageStateSummary(self.size, len(self.nodes))
        return self._summary


class ImageStates:
    """Not thread-safe: the cache's lock guards it."""

    def __init__(self) -> None:
        self._states: dict[str, _ImageState] = {}
        self._names: dict[str, tuple[str, ...]] = {}  # node -> its image names
        self._summaries: dict[str, tuple[int, dict[str, ImageStateSummary]]] = {}  # node -> version, summaries
        self._version = 0

    def set_node(self, node: corev1.Node) -> None:
        names: dict[str, int] = {}
        for image in node.status.images:
            for name in image.names:
                names.setdefault(name, image.size_bytes)
        known = self._names.get(node.name, ())
        if known == tuple(names) and not any(self._is_another_alone(name, size) for name, size in names.items()):
            return
        self._drop(node.name, known)
        self._names[node.name] = tuple(names)
        for name, size in names.items():
            self._states.setdefault(name, _ImageState(size)).nodes.add(node.name)

    def _is_another_alone(self, name: str, size: int) -> bool:
        """Whether an image was pulled anew under its name, on the only node that has it."""
        state = self._states[name]
        return state.size != size and len(state.nodes) == 1

    def remove_node(self, name: str) -> None:
        self._drop(name, self._names.pop(name, ()))
        self._summaries.pop(name, None)

    def _drop(self, node_name: str, names: tuple[str, ...]) -> None:
        self._version += 1
        for name in names:
            state = self._states[name]
            state.nodes.discard(node_name)
            if not state.nodes:
                del self._states[name]

    def summaries(self, node_name: str) -> dict[str, ImageStateSummary]:
        """By image name, as of now. The same dict is given again while nothing has changed: treat it as a value."""
        names = self._names.get(node_name)
        if not names:
            return {}
        kept = self._summaries.get(node_name)
        if kept is not None and kept[0] == self._version:
            return kept[1]
        states = self._states
        fresh = {name: states[name].summary() for name in names}
        self._summaries[node_name] = (self._version, fresh)
        return fresh
