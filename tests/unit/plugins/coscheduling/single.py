"""Asks Coscheduling about single pods, as filter does: PreFilter, then Filter on each node that was offered."""

from __future__ import annotations

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from tests.unit.plugins.coscheduling.conftest import World


def refusals(world: World, asked: corev1.Pod) -> dict[str, str]:
    """Node -> why not; nodes that would do are left out."""
    state = CycleState()
    nodes = world.snapshot().list()
    result, status = world.plugin.pre_filter(state, asked, nodes)
    if status.skip:
        return {}
    assert status.success, status.message
    inside = result.node_names if result is not None else None
    found = {
        node.name: world.plugin.filter(state, asked, node) for node in nodes if inside is None or node.name in inside
    }
    return {name: status.message for name, status in found.items() if not status.success}
