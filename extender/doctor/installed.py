"""The configuration that a cluster's installation has: its ConfigMap, or what the leading extender says that it runs with.

For a doctor that is given a cluster and no file. The ConfigMap is known by the label of the manifests, and by its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from extender.api import codec
from extender.api.admissionregistrationv1 import ConfigMap
from extender.api.metav1 import Object
from extender.client.errors import ForbiddenError, NotFoundError
from extender.client.interface import API, ResourceType, list_all
from extender.config.load import API_VERSION, KIND
from extender.config.yaml_file import Document, parse_document
from extender.doctor.admission import CONFIG_MAPS
from extender.doctor.configuration import ReadDocument
from extender.scheduler.interface import CONFIGURATION
from extender.scheduler.running_configuration import ConfigurationPage

LABEL, VALUE = "app.kubernetes.io/part-of", "gang-extender"
EXTENDER, KUBE_SCHEDULER = "extender.yaml", "kube-scheduler.yaml"
"""The ConfigMap's keys."""


class ConfigMapVolume(Object, frozen=True, gc=False):
    name: str = ""


class Volume(Object, frozen=True, gc=False):
    config_map: ConfigMapVolume | None = None


class Volumes(Object, frozen=True, gc=False):
    volumes: tuple[Volume, ...] = ()


class Mounts(Object, frozen=True, gc=False):
    """Of a pod, what it mounts."""

    spec: Volumes = Volumes()


MOUNTS = ResourceType("v1", "pods", "Pod", Mounts)


@dataclass(frozen=True, slots=True)
class Installed:
    """Each None where it is not there. why: what of it may not be read, or is not there."""

    kube_scheduler: ReadDocument | None = None
    extender: ReadDocument | None = None
    why: str = ""


def find(api: API, namespace: str) -> Installed:
    """By a ConfigMap of the namespace. Of several, as each apply of changed settings makes one more, the one that a pod mounts counts, and
    of several of these the newest. Both files are of the same one: those of two installations are no pair. Raises ApiError."""
    try:
        maps = [each for each in list_all(api, CONFIG_MAPS, namespace=namespace) if _is_ours(each)]
        mounted = set(_mounted(api, namespace)) if len(maps) > 1 else set()
    except ForbiddenError as error:
        return Installed(why=str(error))
    except NotFoundError:
        maps, mounted = [], set()
    maps.sort(key=lambda each: (each.metadata.name in mounted, str(each.metadata.creation_timestamp)), reverse=True)
    of = next((each for each in maps if EXTENDER in each.data), None)
    if of is None:
        why = f"{namespace} has no ConfigMap with the label {LABEL}={VALUE} and the key {EXTENDER}"
        return Installed(_document(next(iter(maps), None), KUBE_SCHEDULER), None, why)
    return Installed(_document(of, KUBE_SCHEDULER), _document(of, EXTENDER))


def _is_ours(config_map: ConfigMap) -> bool:
    return config_map.metadata.labels.get(LABEL) == VALUE


def _mounted(api: API, namespace: str) -> Iterator[str]:
    for pod in list_all(api, MOUNTS, namespace=namespace):
        yield from (each.config_map.name for each in pod.spec.volumes if each.config_map is not None)


def _document(config_map: ConfigMap | None, key: str) -> ReadDocument | None:
    """None where the ConfigMap has no such key."""
    if config_map is None or key not in config_map.data:
        return None
    return partial(parse_document, config_map.data[key], f"configmap/{config_map.metadata.key}/{key}")


def of_page(where: str, ask: Callable[[str], tuple[int, bytes]]) -> ReadDocument | None:
    """What the extender that is asked runs with; None where it does not say. Raises OSError where none answers."""
    status, body = ask(CONFIGURATION)
    try:
        page = codec.decode(body, ConfigurationPage) if status == 200 else None
    except codec.DecodeError:
        page = None
    return partial(_as_file, page.configuration, f"{where}{CONFIGURATION}") if page is not None else None


def _as_file(configuration: Mapping[str, object], file: str) -> Document:
    return Document(file, {"apiVersion": API_VERSION, "kind": KIND, **configuration})
