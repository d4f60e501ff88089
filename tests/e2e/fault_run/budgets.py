"""PodDisruptionBudgets that forbid every disruption, over some of the single pods and over some gangs.

Nothing here counts healthy pods, as kube-controller-manager would: a budget is made, and stays used up.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.e2e.api import Api, Json, Refused

BUDGETS = "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
ALL_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
KEPT = {"kept": "yes"}  # the label of single pods that are under the budget of all such


@dataclass(frozen=True)
class Budget:
    """Of the pods with these labels."""

    namespace: str
    name: str
    labels: Mapping[str, str]

    def make(self, api: Api) -> None:
        path = BUDGETS.format(namespace=self.namespace)
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": dict(self.labels)}}
        api.create(path, {"metadata": {"name": self.name}, "spec": spec})
        nothing: dict[str, Any] = dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 0)
        api.patch(f"{path}/{self.name}/status", {"status": {**nothing, "disruptionsAllowed": 0}})

    def remove(self, api: Api) -> None:
        """If it is there."""
        with suppress(Refused):
            api.delete(f"{BUDGETS.format(namespace=self.namespace)}/{self.name}")

    def covers(self, pod: Json) -> bool:
        namespace: str = pod["metadata"]["namespace"]
        labels: Mapping[str, str] = pod["metadata"].get("labels", {})
        return namespace == self.namespace and self.labels.items() <= labels.items()


def remove_all(api: Api) -> None:
    for item in api.items(ALL_BUDGETS):
        path = BUDGETS.format(namespace=item["metadata"]["namespace"])
        api.delete(f"{path}/{item['metadata']['name']}")
