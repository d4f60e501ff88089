"""What a SparkApplication's pods ask for, and how many executors Spark starts: fields of the spec, or what sparkConf says in their place.

`spark` makes the pods of it. Spark: BasicDriverFeatureStep, BasicExecutorFeatureStep, SchedulerBackendUtils, JavaUtils.
spark-operator: api/v1beta2/defaults.go
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from extender.client.embedded.workloads.section import MOST_PODS, Raw, Section
from extender.client.embedded.workloads.workload import Workload, quantity_of

MEBIBYTE = 2**20
MIN_OVERHEAD = 384 * MEBIBYTE
MOST_BYTES = 2**63 - 1
MOST_CORES = 2**31 - 1
JVM = ("Java", "Scala")
TYPES = (*JVM, "Python", "R")
_POWERS = {letter: 2 ** (10 * power) for power, letter in enumerate("bkmgtp")}
_SIZE = re.compile(r"([0-9]{1,19})([a-z]*)")


@dataclass(frozen=True, slots=True)
class SparkConf:
    """spec: of the SparkApplication. A field of it comes before sparkConf."""

    workload: Workload
    spec: Section

    @property
    def conf(self) -> Section:
        return self.spec.section("sparkConf")

    @property
    def is_jvm(self) -> bool:
        type_ = self.spec.text("type", "Scala")
        if type_ not in TYPES:
            raise self.spec.error(".type", f"one of {', '.join(TYPES)} is wanted, got {type_!r}"[:200])
        return type_ in JVM

    @property
    def is_dynamic(self) -> bool:
        """Whether Spark asks for executors as it needs them."""
        if "dynamicAllocation" in self.spec.value:
            return self.spec.section("dynamicAllocation").is_set("enabled")
        return self.conf.text("spark.dynamicAllocation.enabled").lower() == "true"

    def executors(self) -> int:
        """Those that Spark starts with."""
        instances = self._instances("executor", "instances", "spark.executor.instances")
        if not self.is_dynamic:
            return 1 if instances is None else instances
        allocation = "spark.dynamicAllocation"
        initial = self._instances("dynamicAllocation", "initialExecutors", f"{allocation}.initialExecutors")
        least = self._instances("dynamicAllocation", "minExecutors", f"{allocation}.minExecutors")
        return max(instances or 0, initial or 0, least or 0)

    def executors_by_operator(self) -> int:
        """As the operator counts them for a PodGroup: sparkConf does not count, and none that are named are two."""
        if "spark.executor.instances" in self.conf.value and "instances" not in self.spec.section("executor").value:
            return 2
        return self.executors()

    def _instances(self, part: str, field: str, key: str) -> int | None:
        section = self.spec.section(part)
        if field in section.value:
            return section.number(field)
        text = self.conf.text(key)
        if text and (not text.isdecimal() or len(text) > 9 or int(text) > MOST_PODS):
            raise self.conf.error(f".{key}", f"a number up to {MOST_PODS} is wanted, got {text!r}"[:200])
        return int(text) if text else None

    def resources(self, role: str) -> Raw:
        """Of the role's Spark container: driver or executor."""
        section = self.spec.section(role)
        memory = f"{self._memory(role, section) // MEBIBYTE}Mi"
        request = self._quantity(section, "coreRequest", f"spark.kubernetes.{role}.request.cores")
        cpu = request or self._cores(role, section)
        limit = f"{self._bytes(section, 'memoryLimit')}" if "memoryLimit" in section.value else memory
        limits: Raw = {"memory": limit}
        if cores := self._quantity(section, "coreLimit", f"spark.kubernetes.{role}.limit.cores"):
            limits["cpu"] = cores
        gpu = section.section("gpu")
        if (name := gpu.text("name")) and gpu.value.get("quantity"):
            limits[name] = str(gpu.number("quantity"))
        return {"requests": {"cpu": cpu, "memory": memory}, "limits": limits}

    def _cores(self, role: str, section: Section) -> str:
        value = section.value.get("cores")
        if value is None:
            return self._quantity(self.conf, f"spark.{role}.cores", "") or "1"
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_CORES:
            raise section.error(".cores", f"a number from 1 to {MOST_CORES} is wanted, got {value!r}"[:200])
        return str(value)

    def _quantity(self, section: Section, field: str, key: str) -> str:
        """Of that field, or of that key of sparkConf; empty for none."""
        if text := section.text(field):
            quantity_of(section, field, text)
        elif key and (text := self.conf.text(key)):
            quantity_of(self.conf, key, text)
        return text

    def _memory(self, role: str, section: Section) -> int:
        """Bytes of heap and what is beside it. An executor of Python has its own, and off-heap memory is an executor's too."""
        heap = self._first(section, "memory", f"spark.{role}.memory", "1g")
        beside = self._overhead(role, section, heap)
        if role == "executor":
            beside += self._of_conf("spark.executor.pyspark.memory") if self.spec.text("type") == "Python" else 0
            if self.conf.text("spark.memory.offHeap.enabled").lower() == "true":
                beside += self._of_conf("spark.memory.offHeap.size", unit=1)
        if heap + beside > MOST_BYTES:
            raise section.error(".memory", "with its overhead it is more than any node can have")
        return heap + beside

    def _overhead(self, role: str, section: Section, heap: int) -> int:
        if "memoryOverhead" in section.value:
            return self._bytes(section, "memoryOverhead")
        if (key := f"spark.{role}.memoryOverhead") in self.conf.value:
            return self._of_conf(key)
        return max(math.floor(heap * self._factor(role)), MIN_OVERHEAD)

    def _factor(self, role: str) -> float:
        keys = (f"spark.{role}.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
        places = [(self.spec, "memoryOverheadFactor"), *((self.conf, key) for key in keys)]
        for section, field in places:
            if text := section.text(field):
                return _fraction(section, field, text)
        return 0.1 if self.is_jvm else 0.4

    def _first(self, section: Section, field: str, key: str, default: str) -> int:
        if field in section.value:
            return self._bytes(section, field)
        return self._of_conf(key) if key in self.conf.value else self._parsed(section, field, default)

    def _of_conf(self, key: str, unit: int = MEBIBYTE) -> int:
        return self._bytes(self.conf, key, unit) if key in self.conf.value else 0

    def _bytes(self, section: Section, field: str, unit: int = MEBIBYTE) -> int:
        return self._parsed(section, field, section.text(field), unit)

    def _parsed(self, section: Section, field: str, text: str, unit: int = MEBIBYTE) -> int:
        """`512m`, `4g`, `2gb`; unit: of a number alone. `2Gi`, which Spark refuses, is taken for what it means, with a warning."""
        found = _SIZE.fullmatch(text.strip().lower())
        letters = found[2] if found else ""
        power = unit if not letters else _POWERS.get(letters[0])
        if found is None or power is None or letters[1:] not in ("", "b", "i") or letters in ("bb", "bi"):
            raise section.error(f".{field}", f"a size as 512m or 4g is wanted, got {text!r}"[:200])
        if letters.endswith("i"):
            self.workload.warn(
                f"{field}: {text}: Spark knows no unit of two letters that ends in i; {text[:-1]} is what it reads"
            )
        if int(found[1]) * power > MOST_BYTES:
            raise section.error(f".{field}", f"more than any node can have: {text!r}"[:200])
        return int(found[1]) * power


def _fraction(section: Section, field: str, text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 <= factor <= 1000:
        raise section.error(f".{field}", f"a fraction of the memory is wanted, got {text!r}"[:200])
    return factor
