"""Services for the tests of the real worker: one that tests share, and any number of their own; the application alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from extender.server.app import create_app
from tests.fakes.verbs import FakeVerbs
from tests.server.service import Service

# Short times, so that what is late shows soon.
TIMES: dict[str, Any] = {"request_seconds": 1.0, "handshake_seconds": 1.0, "send_seconds": 2.0}


@pytest.fixture
def verbs() -> FakeVerbs:
    return FakeVerbs()


@pytest.fixture
def app(verbs: FakeVerbs) -> Flask:
    return create_app(verbs)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """For tests that leave it as they found it. No traceback belongs in its log."""
    running = Service(tmp_path_factory.mktemp("service"), **TIMES)
    try:
        yield running.start()
    finally:
        running.stop()
    assert "Traceback" not in running.program.log(), running.program.tail()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts a service with options of its own."""
    started: list[Service] = []

    def start(env: dict[str, str] | None = None, program: str = "tests.server.program", **options: Any) -> Service:
        service = Service(tmp_path, env, program, **{**TIMES, **options})
        started.append(service)
        return service.start()

    yield start
    for service in started:
        service.stop()
