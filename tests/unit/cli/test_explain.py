"""What `gang-extender explain` says where it has no gang to show."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from extender.cli.main import main
from tests.fakes.api_server import Answer, FakeAPIServer

NOT_SYNCED = {"Error": "the extender has not seen the whole cluster yet: podgroups.scheduling.x-k8s.io not synced"}


@pytest.fixture
def server() -> Iterator[FakeAPIServer]:
    fake = FakeAPIServer()
    try:
        yield fake
    finally:
        fake.stop()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(
            Answer(503, NOT_SYNCED),
            'nothing is known of gangs yet at {url}; ask again in a moment: {{"Error"',
            id="just started",
        ),
        pytest.param(Answer(404, {"Error": "no such group"}), "no group default/g is known; ", id="another name"),
        pytest.param(Answer(404, {"Error": "not found"}), "{url} does not show /gangs/default/g: ", id="another port"),
        pytest.param(Answer(500, {"Error": "internal"}), "{url}/gangs/default/g answered 500: ", id="a fault"),
        pytest.param(Answer(no_answer=True), "no extender answers at {url}: ", id="no HTTP"),
    ],
)
def test_why_there_is_nothing_to_show(
    server: FakeAPIServer, capsys: pytest.CaptureFixture[str], answer: Answer, said: str
) -> None:
    server.lists.append(answer)
    server.others.append(answer)
    assert main(["explain", "default/g", "--server", server.url]) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"gang-extender: {said.format(url=server.url)}")) == ("", True), err


GANGS = [{"namespace": "a", "name": "g"}, {"namespace": "b", "name": "h"}]


def test_a_namespace_is_listed_alone(server: FakeAPIServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.lists.append(Answer(200, GANGS))
    server.others.append(Answer(200, GANGS))
    assert main(["explain", "-n", "b", "-o", "json", "--server", server.url]) == 0
    assert json.loads(capsys.readouterr().out) == GANGS[1:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["g"], "g: wanted NAMESPACE/NAME, or NAME and -n NAMESPACE", id="no namespace"),
        pytest.param(["a/b/c"], "a/b/c: wanted NAMESPACE/NAME, or NAME and -n NAMESPACE", id="too many"),
        pytest.param(["-n", "b", "a/g"], "a/g: not in the namespace of -n, b", id="two namespaces"),
    ],
)
def test_wrong_use(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert capsys.readouterr() == ("", f"gang-extender: {said}\n")
