"""Whatever a caller asks about: there is an answer, or a 400 with the place, and no exception on the way (tests/conftest.py looks)."""

from __future__ import annotations

from typing import Any

from flask.testing import FlaskClient
from hypothesis import HealthCheck, Phase, given, settings

from extender.client.interface import PODS
from extender.plugins.coscheduling.questions.asked import KINDS
from extender.server.app import create_app
from extender.server.state import state_of
from tests.hostile import Hostile, body, objects
from tests.unit.scheduler.conftest import running
from tests.unit.scheduler.test_hostile_objects import CONFIGURATION
from tests.unit.scheduler.test_what_if_stories import trace


def questions(hostile: list[Hostile]) -> list[dict[str, Any]]:
    """Objects of one name make one question; a PodGroup that has no pod gets one."""
    found: dict[str, dict[str, Any]] = {}
    for each in hostile:
        if each.resource is not PODS and (each.resource.api_version, each.resource.kind) not in KINDS:
            continue
        asked = found.setdefault(each.document["metadata"]["name"], {"pods": [], "podGroups": []})
        if each.resource is PODS:
            asked["pods"].append(each.document)
        else:
            kind = {"apiVersion": each.resource.api_version, "kind": each.resource.kind}
            asked["podGroups"].append({**kind, **each.document})
    return list(found.values())


def post(client: FlaskClient, document: Any) -> int:
    answer = client.post("/whatif", data=body(document), content_type="application/json")
    assert answer.status_code in (200, 400), (answer.status_code, answer.data[:500])
    if answer.status_code == 400:
        assert len(answer.data) < 2000, answer.data
    return answer.status_code


@settings(max_examples=12, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck))
@given(hostile=objects())
def test_every_question_has_an_answer(hostile: list[Hostile]) -> None:
    with running(CONFIGURATION) as bench:
        for number in range(4):
            bench.node(f"n{number}", cpu="64")
        app = create_app(bench.scheduler)
        state_of(app).pages.update(bench.scheduler.pages())
        client = app.test_client()
        before = trace(bench)
        answers = [post(client, each) for each in questions(hostile)]
        assert trace(bench) == before
        honest = {"metadata": {"name": "p", "labels": {"scheduling.x-k8s.io/pod-group": "g"}}, "spec": {}}
        group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}
        assert post(client, {"pods": [honest], "podGroups": [{**group, "spec": {"minMember": 1}}]}) == 200
        assert len(answers) > 20
