"""The plugins that exist: those of kube-scheduler's tree, Coscheduling, and what other distributions bring.

A module is imported when its plugin is built, so that a profile pays for what it enables. Out-of-tree plugins come by
entry points of the group `gang_extender.plugins`: name -> a factory (arguments, handle) -> plugin.
kube-scheduler: pkg/scheduler/framework/plugins/registry.go
"""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from extender.framework.handle import Handle
from extender.framework.interface import Plugin
from extender.framework.runtime.registry import PluginFactory, Registry, RegistryError
from extender.plugins import names

ENTRY_POINTS = "gang_extender.plugins"

_IN_TREE = {
    names.COSCHEDULING: "coscheduling.plugin",
    names.DEFAULT_BINDER: "default_binder",
    names.DEFAULT_PREEMPTION: "default_preemption",
    names.DYNAMIC_RESOURCES: "dynamic_resources",
    names.IMAGE_LOCALITY: "image_locality",
    names.INTER_POD_AFFINITY: "inter_pod_affinity",
    names.NODE_AFFINITY: "node_affinity",
    names.NODE_DECLARED_FEATURES: "node_declared_features",
    names.NODE_NAME: "node_name",
    names.NODE_PORTS: "node_ports",
    names.NODE_RESOURCES_BALANCED_ALLOCATION: "node_resources_balanced_allocation",
    names.NODE_RESOURCES_FIT: "node_resources_fit",
    names.NODE_UNSCHEDULABLE: "node_unschedulable",
    names.NODE_VOLUME_LIMITS: "node_volume_limits",
    names.POD_TOPOLOGY_SPREAD: "pod_topology_spread",
    names.PRIORITY_SORT: "priority_sort",
    names.SCHEDULING_GATES: "scheduling_gates",
    names.TAINT_TOLERATION: "taint_toleration",
    names.VOLUME_BINDING: "volume_binding",
    names.VOLUME_RESTRICTIONS: "volume_restrictions",
    names.VOLUME_ZONE: "volume_zone",
}


def _factory(name: str, module: str) -> PluginFactory:
    def create(args: Any, handle: Handle) -> Plugin:
        plugin_class = getattr(importlib.import_module(f"extender.plugins.{module}"), name)
        plugin: Plugin = plugin_class.create(args, handle)
        return plugin

    return create


def new_in_tree_registry() -> Registry:
    """Of everything in this room."""
    registry = Registry()
    for name, module in _IN_TREE.items():
        registry.register(name, _factory(name, module))
    return registry


def new_registry() -> Registry:
    """With the out-of-tree plugins that are installed. Raises RegistryError for a name that is taken, or for one that
    does not load."""
    registry = new_in_tree_registry()
    for point in entry_points(group=ENTRY_POINTS):
        registry.register(point.name, _loaded(point))
    return registry


def _loaded(point: EntryPoint) -> PluginFactory:
    try:
        factory: PluginFactory = point.load()
    except Exception as error:
        raise RegistryError(f'plugin "{point.name}" does not load from {point.value}: {error}') from error
    return factory
