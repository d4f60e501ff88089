"""What is moved in our own queue, and what has to be patched in the pod all the same."""

from __future__ import annotations

from collections.abc import Callable

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import PODS
from extender.scheduler.in_process.queue_steering import QueueSteering

GATE = {"name": "scheduling.x-k8s.io/gang"}


def test_a_member_that_is_sent_is_activated_and_one_that_is_gated_is_freed() -> None:
    api, activated = EmbeddedAPI(), list[str]()
    steering = QueueSteering(api, lambda pods: activated.extend(pod.name for pod in pods), lambda job: job())
    plain, gated = _pod(api, "plain"), _pod(api, "gated", schedulingGates=[GATE])
    steering.nominate([(plain, "n1"), (gated, "n2")])
    assert activated == ["plain"]
    assert not api.get(PODS, "gated", "default").gated


def test_a_nomination_that_is_good_for_nothing_is_taken_back() -> None:
    api = EmbeddedAPI()
    steering = QueueSteering(api, lambda pods: None, lambda job: job())
    pod = _pod(api, "vip", status={"nominatedNodeName": "n1"})
    steering.clear_foreign_nominations([pod])
    assert api.get(PODS, "vip", "default").status.nominated_node_name == ""
    api.delete(PODS, "vip", "default")
    steering.clear_foreign_nominations([pod])  # no write is due for a pod that is gone


def test_a_pod_that_is_to_be_tried_is_activated() -> None:
    activated = list[str]()
    api = EmbeddedAPI()
    steering = QueueSteering(api, lambda pods: activated.extend(pod.name for pod in pods), lambda job: job())
    steering.activate_by_nomination([(_pod(api, "plain"), "n1")])
    assert activated == ["plain"]


def test_a_gate_stays_where_the_plan_was_dropped_before_it_came_off() -> None:
    api, jobs = EmbeddedAPI(), list[Callable[[], None]]()
    steering = QueueSteering(api, lambda pods: None, jobs.append)
    dropped, anew = _pod(api, "dropped", schedulingGates=[GATE]), _pod(api, "anew", schedulingGates=[GATE])
    steering.nominate([(dropped, "n1"), (anew, "n1")])
    steering.clear_nominations([dropped, anew])
    steering.nominate([(anew, "n2")])
    for job in jobs:
        job()
    assert [api.get(PODS, name, "default").gated for name in ("dropped", "anew")] == [True, False]


def _pod(api: EmbeddedAPI, name: str, status: object = None, **spec: object) -> corev1.Pod:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c"}], **spec}, "status": status or {}}
    return api.create(PODS, body)
