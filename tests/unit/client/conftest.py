from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from extender.client import backoff, reflector
from extender.client.connection import Connection
from extender.client.identity import Identity
from extender.retry import Retry
from tests.fakes.api_server import FakeAPIServer


@pytest.fixture
def server() -> Iterator[FakeAPIServer]:
    fake = FakeAPIServer()
    try:
        yield fake
    finally:
        fake.stop()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("first")
    return file


@pytest.fixture
def kubeconfig(server: FakeAPIServer, token_file: Path, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "it",
                "clusters": [{"name": "it", "cluster": {"server": server.url}}],
                "users": [{"name": "it", "user": {"tokenFile": str(token_file)}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            }
        )
    )
    return file


@pytest.fixture
def connection(kubeconfig: Path) -> Iterator[Connection]:
    made = Connection(Identity.from_kubeconfig(str(kubeconfig)))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits of a bad day, a hundred times shorter."""
    monkeypatch.setattr(backoff, "RETRY", Retry(0.008, 0.03))
    monkeypatch.setattr(reflector, "LATER_SECONDS", 0.02)
    monkeypatch.setattr(reflector, "REFUSED_SECONDS", 0.05)
    monkeypatch.setattr(reflector, "BRIEF_SECONDS", 0.0)
