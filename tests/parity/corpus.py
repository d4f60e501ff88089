"""The parity corpus: clusters, and what the real Go plugins of kube-scheduler 1.36.3 answered for them.

A scenario becomes a real cache, nominator and framework here; the tests compare what those say.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from extender.api import corev1, policyv1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.config.kube_scheduler import load_kube_scheduler_configuration
from extender.config.types import KubeSchedulerProfile, PluginRef, Plugins, PluginSet
from extender.framework.runtime.framework import Framework, Surroundings
from extender.plugins.registry import new_in_tree_registry

Json = dict[str, Any]
DATA = Path(__file__).parent / "data"

OBJECTS: Mapping[str, type[Any]] = {
    "namespaces": corev1.Namespace,
    "services": corev1.Service,
    "replicationControllers": corev1.ReplicationController,
    "replicaSets": corev1.ReplicaSet,
    "statefulSets": corev1.StatefulSet,
    "pdbs": policyv1.PodDisruptionBudget,
}


def read(name: str) -> list[Json]:
    with gzip.open(DATA / name) as file:
        loaded: list[Json] = json.load(file)
    return loaded


def scenarios() -> list[tuple[Json, Json]]:
    return list(zip(read("scenarios.json.gz"), read("expected.json.gz"), strict=True))


class World:
    """One scenario, built. `plugins`: the only ones of the profile that are built."""

    def __init__(self, scenario: Json, folder: Path, plugins: Iterable[str]) -> None:
        self.pod = convert(scenario["pending"], corev1.Pod)
        self.cache = Cache()
        for node in scenario["nodes"]:
            self.cache.add_node(convert(node, corev1.Node))
        for pod in scenario["pods"]:
            self.cache.add_pod(convert(pod, corev1.Pod))
        self.snapshot = self.cache.snapshot()
        stores: dict[type[Any], Store[Any]] = {type_: Store() for type_ in OBJECTS.values()}
        for key, type_ in OBJECTS.items():
            for obj in scenario.get(key) or ():
                stores[type_].put(convert(obj, type_))
        pods: dict[str, corev1.Pod] = {}
        nominator = Nominator(lookup=lambda ref: pods.get(ref.uid))
        for obj in scenario.get("nominated") or ():
            pod = convert(obj, corev1.Pod)
            pods[pod.uid] = pod
            nominator.add(pod)
        self.profile = _only(_profile(scenario, folder), frozenset(plugins))
        api = EmbeddedAPI()
        self.framework = Framework(
            self.profile,
            new_in_tree_registry(),
            Surroundings(
                api=api,
                events=Recorder(api),
                newest_snapshot=lambda: self.snapshot,
                lister=lambda type_: stores.get(type_, Store()),
                nominator=nominator,
            ),
        )


def _profile(scenario: Json, folder: Path) -> KubeSchedulerProfile:
    config = scenario.get("config") or {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    file = folder / "config.yaml"
    file.write_text(json.dumps(config))
    return load_kube_scheduler_configuration(file).profiles[0]


def _only(profile: KubeSchedulerProfile, names: frozenset[str]) -> KubeSchedulerProfile:
    def kept(plugin_set: PluginSet) -> PluginSet:
        return PluginSet(
            tuple(PluginRef(ref.name, ref.weight) for ref in plugin_set.enabled if ref.name in names),
            plugin_set.disabled,
        )

    plugins = profile.plugins
    points = {point: kept(plugin_set) for point, plugin_set in plugins.points.items()}
    return KubeSchedulerProfile(
        profile.scheduler_name,
        Plugins(kept(plugins.multi_point), points),
        profile.plugin_config,
        profile.percentage_of_nodes_to_score,
    )
