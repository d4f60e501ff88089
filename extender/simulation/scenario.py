"""One scenario of `evaluate`: a cluster at one moment and a pod to schedule, built into cache, nominator and framework.

The schema is the parity corpus': nodes, pods, pending, and what else the plugins look at; and, of our own, the groups of
pods. Nothing here changes a cluster: preemption ends where the victims would be told.
Counterpart: the test set-up of kube-scheduler's plugins.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from extender.api import corev1, policyv1, storagev1
from extender.backend.cache.cache import Cache, CacheError
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.config.kube_scheduler import read_kube_scheduler_configuration
from extender.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile
from extender.config.yaml_file import ConfigurationError, Document
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.plugin_sets import PluginSetError
from extender.framework.runtime.registry import Registry, RegistryError
from extender.scheduler.in_process import http_extender
from extender.scheduler.in_process.http_extender import ExtenderError, HTTPExtender, in_calling_order
from extender.simulation.configuration import with_this_extender
from extender.simulation.extenders import sort_extenders
from extender.simulation.scenario_fields import Json, ScenarioError, many, one, texts
from extender.simulation.scenario_gangs import GANG_KEYS, gangs_of, settings_of

OBJECTS: Mapping[str, type[Any]] = {
    "namespaces": corev1.Namespace,
    "services": corev1.Service,
    "replicationControllers": corev1.ReplicationController,
    "replicaSets": corev1.ReplicaSet,
    "statefulSets": corev1.StatefulSet,
    "pdbs": policyv1.PodDisruptionBudget,
    "persistentVolumes": corev1.PersistentVolume,
    "persistentVolumeClaims": corev1.PersistentVolumeClaim,
    "storageClasses": storagev1.StorageClass,
    "csiNodes": storagev1.CSINode,
    "csiDrivers": storagev1.CSIDriver,
    "csiStorageCapacities": storagev1.CSIStorageCapacity,
}
KNOWN = frozenset({"name", "kind", "nodes", "pods", "pending", "nominated", "config", "extenderFailed"}) | {
    "extenderUnresolvable",
    *OBJECTS,
    *GANG_KEYS,
}
DEFAULT_CONFIG: Json = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

Narrow = Callable[[KubeSchedulerProfile], KubeSchedulerProfile]


class BuiltScenario:
    """A scenario, built. Raises ScenarioError. extender_failed, extender_unresolvable: node -> what an extender said.

    gangs: None where no pod is of a group. extenders: those that may be asked. warnings: what there is to say of `config`.
    """

    def __init__(
        self,
        scenario: Json,
        registry: Registry,
        *,
        path: str = "$",
        narrow: Narrow | None = None,
        call_extenders: bool = False,
    ) -> None:
        """narrow: takes plugins out of the profile, for a look at some of them. call_extenders: whether those may be asked that
        are not this one; `close` ends their connections."""
        if not isinstance(scenario, dict):
            raise ScenarioError(f"{path}: expected an object")
        if unknown := sorted(set(scenario) - KNOWN):
            raise ScenarioError(f"{path}.{unknown[0]}: unknown field")
        self.pod = one(scenario, "pending", corev1.Pod, path)
        self.extender_failed = texts(scenario, "extenderFailed", path)
        self.extender_unresolvable = texts(scenario, "extenderUnresolvable", path)
        self.cache = _cache(scenario, path)
        self.snapshot = self.cache.snapshot()
        stores: dict[type[Any], Store[Any]] = {type_: Store() for type_ in OBJECTS.values()}
        for key, type_ in OBJECTS.items():
            for obj in many(scenario, key, type_, path):
                stores[type_].put(obj)
        stores[corev1.Pod] = _pods(self, scenario, path)
        configuration, own = self._configuration(scenario, path, call_extenders=call_extenders)
        profile = _profile(configuration, self.pod, path)
        api = EmbeddedAPI()
        dependencies = FrameworkDependencies(
            api=api,
            events=Recorder(api),
            newest_snapshot=lambda: self.snapshot,
            lister=lambda type_: stores.get(type_, Store()),
            nominator=_nominator(scenario, path),
            spawn=_let_be,
            rng=random.Random(0),
        )
        try:
            self.framework = Framework(narrow(profile) if narrow is not None else profile, registry, dependencies)
            self.gangs = gangs_of(scenario, self.pod, self.framework, registry, dependencies, path, scores=own)
        except (RegistryError, PluginSetError) as error:
            raise ScenarioError(f"{path}.config: {error}") from error

    def _configuration(
        self, scenario: Json, path: str, *, call_extenders: bool
    ) -> tuple[KubeSchedulerConfiguration, bool]:
        """With Coscheduling where an entry of `extenders:` is this extender; and whether kube-scheduler asks that one for scores."""
        configuration = _read_configuration(scenario, path)
        settings = settings_of(scenario, path)
        try:
            for entry in configuration.extenders:
                http_extender.check(entry)
            found = sort_extenders(configuration.extenders, configured=settings is not None, call=call_extenders)
            self.extenders: Sequence[HTTPExtender] = in_calling_order(HTTPExtender(entry) for entry in found.called)
        except ExtenderError as error:
            raise ScenarioError(f"{path}.config: {error}") from error
        configuration, warnings = with_this_extender(configuration, found, settings)
        self.warnings = (*found.warnings, *warnings)
        return configuration, found.weight > 0

    def close(self) -> None:
        for extender in self.extenders:
            extender.close()


def _let_be(job: Callable[[], None]) -> None:
    """The eviction that a preemption would begin."""


def _cache(scenario: Json, path: str) -> Cache:
    cache = Cache()
    for index, node in enumerate(many(scenario, "nodes", corev1.Node, path)):
        if not node.metadata.name:
            raise ScenarioError(f"{path}.nodes[{index}].metadata.name: required")
        cache.add_node(node)
    for index, pod in enumerate(many(scenario, "pods", corev1.Pod, path)):
        if not pod.node_name:
            raise ScenarioError(f"{path}.pods[{index}].spec.nodeName: required: these are the pods that run")
        try:
            cache.add_pod(pod)
        except CacheError as error:
            raise ScenarioError(f"{path}.pods[{index}]: {error}") from error
    return cache


def _pods(built: BuiltScenario, scenario: Json, path: str) -> Store[Any]:
    store: Store[Any] = Store()
    for pod in [*many(scenario, "pods", corev1.Pod, path), *many(scenario, "nominated", corev1.Pod, path), built.pod]:
        store.put(pod)
    return store


def _nominator(scenario: Json, path: str) -> Nominator:
    pods: dict[str, corev1.Pod] = {}
    nominator = Nominator(lookup=lambda ref: pods.get(ref.uid))
    for pod in many(scenario, "nominated", corev1.Pod, path):
        pods[pod.uid] = pod
        nominator.add(pod)
    return nominator


def _read_configuration(scenario: Json, path: str) -> KubeSchedulerConfiguration:
    document = Document(f"{path}.config", scenario.get("config") or DEFAULT_CONFIG)
    try:
        return read_kube_scheduler_configuration(document)
    except ConfigurationError as error:
        raise ScenarioError(str(error)) from error


def _profile(configuration: KubeSchedulerConfiguration, pod: corev1.Pod, path: str) -> KubeSchedulerProfile:
    """The pod's, or the only one that there is."""
    profiles = configuration.profiles
    named = _named(profiles, pod.spec.scheduler_name)
    if named is None and len(profiles) > 1:
        raise ScenarioError(f"{path}.pending.spec.schedulerName: no profile of the name {pod.spec.scheduler_name!r}")
    return named or profiles[0]


def _named(profiles: Iterable[KubeSchedulerProfile], name: str) -> KubeSchedulerProfile | None:
    return next((profile for profile in profiles if profile.scheduler_name == name), None)
