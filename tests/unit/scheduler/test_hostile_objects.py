"""Whatever users write into their objects: the scheduler goes on, and says what is wrong with a gang on that gang alone.

Every key and field that the program reads is tried, through the informers, the gangs' state, the plans, the four verbs as HTTP, the
pages and `explain`. That no exception was swallowed on the way, tests/conftest.py looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from flask.testing import FlaskClient
from hypothesis import HealthCheck, Phase, given, settings

from extender.api import codec, corev1
from extender.cli import explain_text
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError
from extender.client.interface import PODS, ResourceType
from extender.config.defaults import behind_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, TopologyLevel
from extender.plugins.coscheduling.report.gang_status import GangStatus, GangSummary
from extender.server.app import create_app
from extender.server.state import state_of
from tests.hostile import Hostile, body, objects
from tests.unit.scheduler.conftest import SECONDS, Bench, running

NODES = [f"n{number}" for number in range(4)]
ASKS = 3  # of one pod: a plan may take longer than a filter call waits for it
CONFIGURATION = ExtenderConfiguration(
    topology=(TopologyLevel("rack", "example.com/rack"),),
    profiles=(
        replace(
            behind_profile("default-scheduler"),
            plugin_config={"Coscheduling": CoschedulingArgs(in_tree_pod_groups=True)},
        ),
    ),
)


class Cluster:
    """A scheduler with hostile objects before it, and its verbs and pages as they are asked over HTTP."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        app = create_app(bench.scheduler)
        state_of(app).pages.update(bench.scheduler.pages())
        self.client: FlaskClient = app.test_client()
        for name in NODES:
            bench.node(name, cpu="64")

    def post(self, verb: str, document: Any) -> Any:
        answer = self.client.post(f"/{verb}", data=body(document))
        assert answer.status_code in (200, 400), (verb, answer.status_code, answer.data[:500])
        return codec.to_builtins(answer.json) if answer.status_code == 200 else None

    def ask_all(self, pod: Any, victim: corev1.Pod) -> None:
        """What kube-scheduler may ask about a pod. No plugin raises, whatever the pod is."""
        found = self.post("filter", {"Pod": pod, "NodeNames": NODES})
        assert found is None or "running " not in found.get("Error", ""), (found, str(pod)[:2000])
        self.post("prioritize", {"Pod": pod, "NodeNames": NODES})
        self.post(
            "preempt",
            {"Pod": pod, "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": victim.uid}]}, "n2": {"Pods": []}}},
        )

    def starts(self, pods: Iterable[corev1.Pod]) -> bool:
        """Each is asked about, and then bound."""
        places = [(pod, self.place(pod)) for pod in pods]
        answers = [self.bench.bind(pod, place) for pod, place in places]
        return [answer.result(SECONDS) for answer in answers] == [""] * len(answers)

    def place(self, pod: corev1.Pod) -> str:
        """The node that filter leaves: at once, or once the plans that were asked for by then are made."""
        found: Any = None
        for _ in range(ASKS):
            found = self.post("filter", {"Pod": codec.to_builtins(pod), "NodeNames": NODES})
            if found["NodeNames"]:
                return str(found["NodeNames"][0])
            self.bench.flush()
        raise AssertionError(found)

    def pages(self) -> dict[str, GangStatus]:
        """Of every gang, by key; all that can be shown is."""
        for path in ("/livez", "/readyz?verbose", "/metrics", "/gangs"):
            assert self.client.get(path).status_code == 200, path
        summaries = codec.decode(self.client.get("/gangs").data, list[GangSummary])
        now = datetime.now(UTC)
        assert list(explain_text.listing(summaries, now))
        found = {}
        for summary in summaries:
            answer = self.client.get(f"/gangs/{quote(summary.namespace, safe='')}/{quote(summary.name, safe='')}")
            assert answer.status_code == 200, summary.key
            found[summary.key] = status = codec.decode(answer.data, GangStatus)
            assert all(line.isprintable() for line in explain_text.page(status, now)), summary.key
        return found


def check(hostile: list[Hostile]) -> None:
    """Half of it is there before the scheduler starts, the other half comes by watch."""
    api = EmbeddedAPI()
    there = [each for each in hostile if each.readable]
    for each in there[::2]:
        create(api, each)
    with running(CONFIGURATION, api) as bench:
        cluster = Cluster(bench)
        for each in there[1::2]:
            create(api, each)
        for each in [each for each in there if each.document["metadata"]["name"] in names(api, each.resource)]:
            bench.until(lambda each=each: seen(bench, each), f"{each.where} is seen")  # type: ignore[misc]
        bench.flush()
        victim = bench.pod("victim", node="n1")
        for each in hostile:
            if each.resource is PODS and each.possible:
                cluster.ask_all(each.document, victim)
        bench.scheduler._dependencies.coscheduling.tick()
        single = bench.pod("single")
        assert cluster.starts([single])
        bench.pod_group("honest", 2)
        assert cluster.starts([bench.pod("honest-0", "honest"), bench.pod("honest-1", "honest")])
        pages = cluster.pages()
        assert pages["default/honest"].gang.phase == "Bound"
        tell_what_is_wrong(bench, pages)


def create(api: EmbeddedAPI, each: Hostile) -> None:
    """Unless an API server would not let it in."""
    if each.document["metadata"]["name"] not in names(api, each.resource):
        with suppress(ForbiddenError):
            api.create(each.resource, each.document, namespace="hostile")


def names(api: EmbeddedAPI, resource: ResourceType[Any]) -> set[str]:
    return {each.metadata.name for each in api.list_page(resource, limit=10**6).items}


def seen(bench: Bench, each: Hostile) -> bool:
    """What nothing watches need not be."""
    watched = bench.scheduler._dependencies.informers.store_of(each.resource.type)
    informers = [made for made in bench.scheduler._dependencies.informers.all() if made.store is watched]
    return not informers or watched.get(f"hostile/{each.document['metadata']['name']}") is not None or gone(each)


def gone(each: Hostile) -> bool:
    """The informer of pods sees none that has ended."""
    status = each.document.get("status")
    return isinstance(status, dict) and status.get("phase") in ("Succeeded", "Failed")


def tell_what_is_wrong(bench: Bench, pages: dict[str, GangStatus]) -> None:
    manager = bench.scheduler._dependencies.coscheduling.manager
    with manager.lock:
        specs = {key: manager.specs.of(group) for key, group in manager.groups.items() if group.pending()}
    for key, spec in specs.items():
        if spec is not None and spec.invalid:
            assert pages[key].gang.reason == "InvalidPodGroup", key
            assert pages[key].gang.message == spec.invalid
            assert len(spec.invalid) < 1000
            assert spec.invalid.isprintable()


@settings(max_examples=12, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck))
@given(hostile=objects())
def test_beside_hostile_objects_a_pod_and_a_gang_start_within_a_few_asks(hostile: list[Hostile]) -> None:
    check(hostile)
