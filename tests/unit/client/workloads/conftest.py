"""A file of objects, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.embedded.load import Loaded, load_files
from extender.client.interface import POD_GROUPS, PODS


class Cluster:
    """`load` reads a file's text. loaded: what came of it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.api = EmbeddedAPI()
        self.loaded = Loaded()

    def load(self, text: str) -> Cluster:
        self._file.write_text(text)
        self.loaded = load_files(self.api, [self._file], "our-scheduler", all_at_once=False)
        return self

    @property
    def pods(self) -> dict[str, corev1.Pod]:
        """By name."""
        return {pod.name: pod for pod in self.api.list_page(PODS).items}

    @property
    def later(self) -> dict[str, tuple[str, ...]]:
        """Name of each pod that is made later -> the pods that it waits for."""
        return {
            each.object["metadata"]["name"]: each.after.pods if each.after is not None else ()
            for each in self.loaded.later
        }

    def group(self, name: str) -> tuple[int, dict[str, str], int | None]:
        """minMember, minResources and the time-out in seconds of scheduler-plugins' PodGroup."""
        spec = self.api.get(POD_GROUPS, name, "default").spec
        resources = {name: str(quantity) for name, quantity in (spec.min_resources or {}).items()}
        return spec.min_member, resources, spec.schedule_timeout_seconds


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Cluster]:
    return Cluster(tmp_path / "objects.yaml").load
