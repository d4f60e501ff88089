"""Makes the pods that a controller makes once others run: workers after their leader, a launcher after its workers, and so on.

The simulation gives it a turn whenever nothing else moves. A pod that others wait for is ready as soon as it has a node; where it has to
have ended it has ended then, since nothing here says how long it runs.
Counterpart: the controllers of extender/client/embedded/workloads
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import corev1
from extender.api.corev1.pod import POD_SUCCEEDED
from extender.client.embedded.workloads.workload import After, Made
from extender.client.errors import ApiError, NotFoundError
from extender.client.interface import API, PODS


class WorkloadController:
    """Not thread-safe. Fulfils driver.Controller. made: the pods that it made, in order. refused: those that the API did not take, with
    the reason."""

    def __init__(self, api: API, later: Sequence[Made]) -> None:
        self._api = api
        self._waiting: dict[After, list[Made]] = {}
        for each in later:
            if each.after is not None:
                self._waiting.setdefault(each.after, []).append(each)
        self.made: list[corev1.Pod] = []
        self.refused: list[str] = []

    def sync(self) -> bool:
        """One pass over all that still waits. False if nothing of it could be made."""
        ready = [after for after in self._waiting if all(map(self._runs, after.pods))]
        for after in ready:
            for key in after.pods if after.ended else ():
                namespace, _, name = key.partition("/")
                ended = {"status": {"phase": POD_SUCCEEDED}}
                self._api.patch(PODS, name, ended, namespace=namespace, subresource="status")
            for each in self._waiting.pop(after):
                self._make(each)
        return bool(ready)

    def _make(self, pod: Made) -> None:
        try:
            made = self._api.create(PODS, pod.object, namespace=pod.object["metadata"]["namespace"])
        except ApiError as error:
            self.refused.append(f"{pod.key}: {error}")
        else:
            self.made.append(made)

    def _runs(self, key: str) -> bool:
        namespace, _, name = key.partition("/")
        try:
            return bool(self._api.get(PODS, name, namespace).node_name)
        except NotFoundError:
            return False

    @property
    def left(self) -> Sequence[str]:
        """Keys of the pods that were never made."""
        return [each.key for waiting in self._waiting.values() for each in waiting]
