"""Annotations that a pod gets with its binding, and at no cost beside it: the API server takes them over from the Binding.

A plugin writes them by PreBind, DefaultBinder posts them. No counterpart in kube-scheduler, which posts none.
Kubernetes: pkg/registry/core/pod/storage/storage.go (setPodNodeAndMetadata)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.api.metadata_keys import Record
from extender.framework.cycle_state import CycleState, CycleStateNotFoundError

_KEY = "BindingAnnotations"


def annotate_binding(state: CycleState, annotations: Mapping[Record[Any], str]) -> None:
    written = binding_annotations(state)
    written.update((str(key), value) for key, value in annotations.items())
    state.write(_KEY, written)


def binding_annotations(state: CycleState) -> dict[str, str]:
    try:
        return dict(state.read(_KEY, dict))
    except CycleStateNotFoundError:
        return {}
