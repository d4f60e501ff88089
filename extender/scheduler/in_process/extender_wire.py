"""What kube-scheduler sends to an extender, and reads of its answers, on its own side of the wire.

Go's decoder takes keys in any case, and everything may be missing or null; Go's encoder writes `null` for what is not sent.
http_extender uses it. Kubernetes: k8s.io/kube-scheduler/extender/v1/types.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from extender.api import codec, corev1
from extender.api.extenderv1 import HostPriority, MetaPod, MetaVictims, WireVictims
from extender.framework.preemption.candidate import Victims


class AnsweredNode(msgspec.Struct, frozen=True, gc=False):
    metadata: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))


class AnsweredNodes(msgspec.Struct, frozen=True, gc=False):
    items: tuple[AnsweredNode, ...] = ()


class FilterAnswer(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    nodes: AnsweredNodes | None = None
    node_names: tuple[str, ...] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class AnsweredVictims(msgspec.Struct, frozen=True, gc=False):
    pods: tuple[MetaPod, ...] = msgspec.field(name="Pods", default=())
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations", default=0)


class PreemptionAnswer(msgspec.Struct, frozen=True, gc=False):
    victims: dict[str, AnsweredVictims] = msgspec.field(name="NodeNameToMetaVictims", default_factory=dict)


class BindingAnswer(msgspec.Struct, frozen=True, gc=False):
    error: str = msgspec.field(name="Error", default="")


def args(pod: corev1.Pod, nodes: Sequence[corev1.Node], *, names_only: bool) -> bytes:
    """The body of filter and prioritize: names to an extender with a cache of its own, else the nodes themselves.

    Pods and nodes go out with the fields that the mirror keeps of them.
    """
    names = [node.name for node in nodes] if names_only else None
    items = None if names_only else {"metadata": {}, "items": list(nodes)}
    return codec.encode({"Pod": pod, "Nodes": items, "NodeNames": names})


def preemption_args(pod: corev1.Pod, victims: Mapping[str, Victims], *, names_only: bool) -> bytes:
    """Go: convertToMetaVictims, or the victims in full."""
    full: Mapping[str, WireVictims] | None = None
    meta: Mapping[str, MetaVictims] | None = None
    if names_only:
        meta = {
            name: MetaVictims(tuple(MetaPod(uid=victim.uid) for victim in each.pods), each.num_pdb_violations)
            for name, each in victims.items()
        }
    else:
        full = {name: WireVictims(each.pods, each.num_pdb_violations) for name, each in victims.items()}
    return codec.encode({"Pod": pod, "NodeNameToVictims": full, "NodeNameToMetaVictims": meta})


def filter_answer(data: bytes) -> FilterAnswer:
    """Raises DecodeError, as the other readers here."""
    return codec.convert(_in_go_case(_parsed(data), FilterAnswer), FilterAnswer)


def preemption_answer(data: bytes) -> PreemptionAnswer:
    raw = _in_go_case(_parsed(data), PreemptionAnswer)
    if isinstance(raw, dict) and isinstance(victims := raw.get("NodeNameToMetaVictims"), dict):
        raw["NodeNameToMetaVictims"] = {name: _victims(each) for name, each in victims.items()}
    return codec.convert(raw, PreemptionAnswer)


def _victims(raw: Any) -> Any:
    raw = _in_go_case(raw, AnsweredVictims)
    if isinstance(raw, dict) and isinstance(pods := raw.get("Pods"), list):
        raw["Pods"] = [_in_go_case(pod, MetaPod) for pod in pods]
    return raw


def binding_answer(data: bytes) -> BindingAnswer:
    return codec.convert(_in_go_case(_parsed(data), BindingAnswer), BindingAnswer)


def priorities(data: bytes) -> list[HostPriority]:
    """A missing host or score is Go's zero value, and helps no node."""
    raw = _parsed(data)
    entries = raw if isinstance(raw, list) else [raw] if raw is not None else []
    found = [{"Host": "", "Score": 0, **_in_go_case(entry, HostPriority)} for entry in entries]
    return codec.convert(found, list[HostPriority])


def _parsed(data: bytes) -> Any:
    parsed: Any = codec.decode(data, Any)
    return parsed


def _in_go_case(raw: Any, type_: type[Any]) -> Any:
    """The keys of one object as its fields are written. null is the empty object."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        return raw
    written = {field.encode_name.lower(): field.encode_name for field in msgspec.structs.fields(type_)}
    return {written.get(key.lower(), key): value for key, value in raw.items() if value is not None}
