"""Annotations that a pod gets with its binding, and at no cost beside it: the API server takes them over from the Binding.

A plugin writes them by PreBind, DefaultBinder posts them. No counterpart in kube-scheduler, which posts none.
Kubernetes: pkg/registry/core/pod/storage/storage.go (setPodNodeAndMetadata)
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.framework.cycle_state import CycleState, CycleStateNotFoundError

_KEY = "BindingAnnotations"


def annotate_binding(state: CycleState, annotations: Mapping[str, str]) -> None:
    state.write(_KEY, {**binding_annotations(state), **annotations})


def binding_annotations(state: CycleState) -> dict[str, str]:
    try:
        return dict(state.read(_KEY, dict))
    except CycleStateNotFoundError:
        return {}
