"""docs/kubectl-gang.md: on the cluster that it describes each command prints what stands below it, but for ages and times."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import jsonschema
import pytest

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.cli.main import KUBECTL_GANG, kubectl_gang
from extender.cli.schema import schema
from extender.client.embedded import EmbeddedAPI
from extender.client.embedded.load import load_files
from extender.client.interface import PODS
from extender.config.load import load_extender_configuration
from tests.documented import PROJECT, ended_blocks
from tests.server.test_documented_calls import without_ages
from tests.unit.cli import leading as leaders
from tests.unit.cli.leading import Leading, priority_class

PAGE = PROJECT / "docs" / "kubectl-gang.md"
TUTORIAL = PROJECT / "docs" / "tutorial"
SHOWN = [(command, output) for command, output in ended_blocks(PAGE) if command.startswith("kubectl gang ")]
PLACES = {"train": ["node-1", "node-1", "node-2", "node-2", "node-3"], "solver": ["node-3", "node-4", "node-4"]}


def cluster() -> EmbeddedAPI:
    """The tutorial's, where train and solver run as it says, and sweep has come."""
    api = EmbeddedAPI()
    files = [TUTORIAL / f"{name}.yaml" for name in ("nodes", "train", "solver")]
    load_files(api, [*files, PROJECT / "docs" / "kubectl-gang" / "sweep.yaml"])
    for pod in api.list_page(PODS).items:
        job, index, _ = pod.name.split("-")
        if job in PLACES:
            metadata = ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
            target = corev1.ObjectReference(kind="Node", name=PLACES[job][int(index)])
            api.bind(corev1.Binding(metadata=metadata, target=target))
    return api


@pytest.fixture(scope="module")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leading]:
    configuration = load_extender_configuration(TUTORIAL / "extender.yaml")
    with leaders.leading(tmp_path_factory.mktemp("leader"), configuration, cluster()) as made:
        waiting = [pod for pod in made.bench.api.list_page(PODS).items if pod.name.startswith("sweep-")]
        assert not made.bench.filter(waiting[0], "node-1", "node-2", "node-3", "node-4").node_names
        made.bench.flush()
        classes = {"metadata": {}, "items": [priority_class("urgent", 1000)]}
        made.api.objects["/apis/scheduling.k8s.io/v1/priorityclasses"] = classes
        yield made


@pytest.mark.parametrize(("command", "output"), [pytest.param(*shown, id=shown[0]) for shown in SHOWN])
def test_a_command_prints_what_stands_below_it(
    command: str,
    output: str,
    leader: Leading,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("KUBECONFIG", str(leader.kubeconfig))
    assert kubectl_gang(shlex.split(command)[2:]) == 0, capsys.readouterr().err
    assert without_ages(capsys.readouterr().out).split() == without_ages(output).split()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gangs", "list"),
        ("gang", "explain sweep"),
        ("pod", "why sweep-0-tm5jz"),
        ("whatif", "whatif -f docs/tutorial/urgent.yaml"),
        ("drain", "drain node-3"),
    ],
)
def test_the_json_is_as_its_schema_says(
    name: str,
    arguments: str,
    leader: Leading,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(PROJECT)
    assert kubectl_gang([*arguments.split(), "-o", "json", "--kubeconfig", str(leader.kubeconfig)]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), schema(name))


def test_each_question_is_among_them() -> None:
    shown = {command.split()[2] for command, _ in SHOWN}
    assert shown >= set(KUBECTL_GANG.commands) - {"why", "doctor", "completion", "version"}
