"""Amounts of resources as whole numbers: milliCPU, bytes, and counts of extended resources.

How a pod's request is computed is in pod_info.
kube-scheduler: k8s.io/kube-scheduler/framework/types.go (Resource)
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.api.quantity import ResourceList

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"

DEFAULT_MILLI_CPU_REQUEST = 100
DEFAULT_MEMORY_REQUEST = 200 * 1024 * 1024


def is_scalar_resource_name(name: str) -> bool:
    """Extended resources, hugepages, prefixed native resources and attachable volumes. Go: schedutil.IsScalarResourceName."""
    if name.startswith((HUGEPAGES_PREFIX, "attachable-volumes-")):
        return True
    if "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.")


class Resource:
    """A sum of resources. Mutable while it is summed up; treat as a value once it is handed on.

    milli_cpu in milliCPU, memory and ephemeral_storage in bytes, allowed_pod_number in pods, scalar in units.
    """

    __slots__ = ("allowed_pod_number", "ephemeral_storage", "memory", "milli_cpu", "scalar")

    def __init__(
        self,
        milli_cpu: int = 0,
        memory: int = 0,
        ephemeral_storage: int = 0,
        allowed_pod_number: int = 0,
        scalar: Mapping[str, int] | None = None,
    ) -> None:
        self.milli_cpu = milli_cpu
        self.memory = memory
        self.ephemeral_storage = ephemeral_storage
        self.allowed_pod_number = allowed_pod_number
        self.scalar: dict[str, int] = dict(scalar) if scalar else {}

    @classmethod
    def from_list(cls, resources: ResourceList) -> Resource:
        """Of `status.allocatable` or a container's requests; unknown native names are ignored, as Go's Resource.Add does."""
        resource = cls()
        for name, quantity in resources.items():
            match name:
                case "cpu":
                    resource.milli_cpu += quantity.milli_value
                case "memory":
                    resource.memory += quantity.value
                case "ephemeral-storage":
                    resource.ephemeral_storage += quantity.value
                case "pods":
                    resource.allowed_pod_number += quantity.value
                case _ if is_scalar_resource_name(name):
                    resource.scalar[name] = resource.scalar.get(name, 0) + quantity.value
        return resource

    @classmethod
    def from_amounts(cls, amounts: Mapping[str, int]) -> Resource:
        """Of amounts by name (cpu in milliCPU), as pod_info computes them."""
        resource = cls()
        for name, amount in amounts.items():
            match name:
                case "cpu":
                    resource.milli_cpu = amount
                case "memory":
                    resource.memory = amount
                case "ephemeral-storage":
                    resource.ephemeral_storage = amount
                case "pods":
                    resource.allowed_pod_number = amount
                case _ if is_scalar_resource_name(name):
                    resource.scalar[name] = amount
        return resource

    def clone(self) -> Resource:
        return Resource(self.milli_cpu, self.memory, self.ephemeral_storage, self.allowed_pod_number, self.scalar)

    def add(self, other: Resource) -> None:
        """Adds in place; allowed_pod_number stays."""
        self.milli_cpu += other.milli_cpu
        self.memory += other.memory
        self.ephemeral_storage += other.ephemeral_storage
        for name, amount in other.scalar.items():
            self.scalar[name] = self.scalar.get(name, 0) + amount

    def subtract(self, other: Resource) -> None:
        """Takes away in place; allowed_pod_number stays."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        self.ephemeral_storage -= other.ephemeral_storage
        for name, amount in other.scalar.items():
            self.scalar[name] = self.scalar.get(name, 0) - amount

    def amount(self, name: str) -> int:
        """By resource name; cpu in milliCPU, an unknown name is 0."""
        match name:
            case "cpu":
                return self.milli_cpu
            case "memory":
                return self.memory
            case "ephemeral-storage":
                return self.ephemeral_storage
            case "pods":
                return self.allowed_pod_number
        return self.scalar.get(name, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return (
            self.milli_cpu == other.milli_cpu
            and self.memory == other.memory
            and self.ephemeral_storage == other.ephemeral_storage
            and self.allowed_pod_number == other.allowed_pod_number
            and self.scalar == other.scalar
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Resource(milli_cpu={self.milli_cpu}, memory={self.memory}, ephemeral_storage={self.ephemeral_storage}, "
            f"allowed_pod_number={self.allowed_pod_number}, scalar={self.scalar})"
        )
