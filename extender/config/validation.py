"""The rules for values that several places share: names of labels and resources, shapes, queue sorts of all profiles.

Each says what is wrong in a few words, and nothing if all is well; where it stands is the caller's matter.
kube-scheduler: pkg/scheduler/apis/config/validation. Kubernetes: k8s.io/apimachinery/pkg/util/validation
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from extender.config.plugin_args import UtilizationShapePoint
from extender.config.types import KubeSchedulerProfile
from extender.config.yaml_file import Mistake

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)

MAX_CUSTOM_PRIORITY_SCORE = 10


def qualified_name(name: str) -> str:
    """`name` or `prefix/name`, as labels and resources have it. Go: IsQualifiedName."""
    if name.count("/") > 1:
        return "a valid label key must be a name, with an optional DNS subdomain prefix and '/' before it"
    prefix, slash, last = name.rpartition("/")
    if not last:
        return "name part must be non-empty"
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return "prefix part must be a DNS subdomain of at most 253 characters"
    if len(last) > 63 or not _NAME.fullmatch(last):
        return "name part must be 1 to 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit"
    return ""


def label_value(value: str) -> str:
    if value and (len(value) > 63 or not _NAME.fullmatch(value)):
        return "must be at most 63 letters, digits, '-', '_' or '.', and begin and end with a letter or a digit"
    return ""


def dns_label(name: str) -> str:
    """As namespaces have it. Go: IsDNS1123Label."""
    if _LABEL.fullmatch(name):
        return ""
    return "must be 1 to 63 lower-case letters, digits or '-', and begin and end with a letter or a digit"


def extended_resource_name(name: str) -> str:
    """Go: validateExtendedResourceName."""
    if wrong := qualified_name(name):
        return wrong
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith("requests.") or qualified_name(f"requests.{name}"):
        return "is an invalid extended resource name"
    return ""


def node_selector_requirement(key: str, operator: str, values: Sequence[str]) -> Iterator[tuple[str, object, str]]:
    """(where below `values`, which value, what is wrong), given one of the six operators. Go: labels.NewRequirement."""
    match operator:
        case "In" | "NotIn" if not values:
            yield "", list(values), "for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist" if values:
            yield "", list(values), "values set must be empty for exists and does not exist"
        case "Gt" | "Lt" if len(values) != 1:
            yield "", list(values), "for 'Gt', 'Lt' operators, exactly one value is required"
        case "Gt" | "Lt" if not _int64(values[0]):
            yield "[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer"
    for index, value in enumerate(values):
        if wrong := label_value(value):
            yield f"[{index}][{key}]", value, wrong


def _int64(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and len(text) <= 20 and -(2**63) <= int(text) < 2**63


def utilization_shape(shape: Sequence[UtilizationShapePoint]) -> Iterator[tuple[str, str]]:
    """(where below the shape, what is wrong). Go: validateFunctionShape."""
    if not shape:
        yield "", "Required value: at least one point must be specified"
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            value = shape[index].utilization
            yield (
                f"[{index}].utilization",
                f"Invalid value: {value}: values must be sorted in increasing order",
            )
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield f"[{index}].utilization", f"Invalid value: {point.utilization}: not in valid range [0, 100]"
        if not 0 <= point.score <= MAX_CUSTOM_PRIORITY_SCORE:
            yield (
                f"[{index}].score",
                f"Invalid value: {point.score}: not in valid range [0, {MAX_CUSTOM_PRIORITY_SCORE}]",
            )


def scheduler_names(profiles: Sequence[KubeSchedulerProfile]) -> Iterator[Mistake]:
    """Every profile has one, and its own."""
    first: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        where = f"profiles[{index}].schedulerName"
        if not profile.scheduler_name:
            yield Mistake(where, "Required value")
        if profile.scheduler_name in first:
            yield Mistake(where, f"Duplicate value: profiles[{first[profile.scheduler_name]}].schedulerName")
        first.setdefault(profile.scheduler_name, index)


def common_queue_sort(profiles: Sequence[KubeSchedulerProfile]) -> Iterator[Mistake]:
    """There is one queue for all profiles, so they sort alike. Go: validateCommonQueueSort."""
    if not profiles:
        return
    canon = profiles[0].plugins.at("queue_sort")
    if len(canon.enabled) > 1:
        count = len(canon.enabled)
        yield Mistake(
            "profiles[0].plugins.queueSort.enabled",
            f"Invalid value: {count}: only one queue sort plugin can be enabled",
        )
    name = canon.enabled[0].name if canon.enabled else ""
    for index, profile in enumerate(profiles[1:], 1):
        if profile.plugins.at("queue_sort") != canon:
            yield Mistake(f"profiles[{index}].plugins.queueSort", "must be the same for all profiles")
        if profile.plugin_config.get(name) != profiles[0].plugin_config.get(name):
            yield Mistake(f"profiles[{index}].pluginConfig", "queueSort must be the same for all profiles")
