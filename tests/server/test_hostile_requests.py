"""10,000 hostile requests over kept-alive connections to the real worker, and afterwards all is as before.

hypothesis makes the first of them and shrinks what breaks; the bulk are random changes of recorded requests, from a seed.
"""

from __future__ import annotations

import copy
import http.client
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.service import Service, bind_body, payload

VERBS = ("filter", "prioritize", "preempt", "bind")
BULK = 9_400
EXAMPLES = 600
NASTY: list[Any] = [
    None, True, -1, 0, 2**63, 2**64, 10**400, 1.5, "", "\x00", "a\nb", "\u202e", "x" * 10_000, "1e1000000", "NaN", "\u0661\u0660Gi",
    [], {}, [[[[]]]], {"": {"": {}}}, ["a"] * 1000, {"n": None},
]  # fmt: skip


class Client:
    """One kept-alive connection, opened anew when the other side has closed it."""

    def __init__(self, service: Service) -> None:
        self._connection = service.client()

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        for attempt in range(2):
            try:
                self._connection.request("POST", path, body, {"Content-Length": str(len(body))})
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, OSError):
                self._connection.close()
                if attempt:
                    raise
        raise AssertionError

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    client = Client(service)
    yield client
    client.close()


def check(client: Client, path: str, body: bytes) -> None:
    status, answer = client.post(path, body)
    assert status in (200, 400, 404, 408), (status, path, body[:200])
    assert b"Traceback" not in answer
    json.loads(answer)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(NASTY),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["Pod", "Nodes", "NodeNames", "NodeNameToMetaVictims", "PodName", "PodNamespace", "PodUID", "Node"]
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    verb=st.sampled_from(VERBS),
    body=st.binary(max_size=300) | (JSON | st.dictionaries(KEYS, JSON, max_size=6)).map(json.dumps).map(str.encode),
)
def test_a_request_of_any_shape_is_answered(client: Client, verb: str, body: bytes) -> None:
    check(client, f"/{verb}", body)


def change_bytes(body: bytes, rng: random.Random) -> bytes:
    """Some bytes are others, more, or fewer."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data) or 1)
        match rng.randrange(4):
            case 0 if data:
                data[at % len(data)] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randint(1, 50)]
            case 2:
                data[at:at] = rng.randbytes(rng.randint(1, 20))
            case _:
                data[at:at] = rng.choice(
                    [b"[" * 5000, b'{"a":' * 3000, b'"', b"\\u0000", b"\xff\xfe", b"null", b"9" * 5000]
                )
    return bytes(data)


def change_values(body: bytes, rng: random.Random) -> bytes:
    """Right JSON, with values in it that do not belong there."""
    document = json.loads(body)
    for _ in range(rng.randint(1, 4)):
        spot: Any = document
        while True:
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            key = rng.choice(keys)
            if not isinstance(spot[key], dict | list) or not spot[key] or rng.random() < 0.2:
                break
            spot = spot[key]
        spot[key] = copy.deepcopy(rng.choice(NASTY))
    return json.dumps(document).encode()


def test_thousands_of_changed_requests_leave_it_as_it_was(service: Service, client: Client) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    recorded = {verb: payload(verb) for verb in VERBS}
    changes: list[Callable[[bytes, random.Random], bytes]] = [change_bytes, change_values, change_values]
    before = service.report()["pid"], rss(service)
    for _ in range(BULK):
        verb = rng.choice(VERBS)
        body = rng.choice(changes)(recorded[rng.choice(VERBS) if rng.random() < 0.1 else verb], rng)
        path = f"/{verb}" if rng.random() < 0.98 else f"/{verb}%00%ff/../%c3%a9"
        check(client, path, body)
    assert service.report()["pid"] == before[0]
    assert rss(service) - before[1] < 30_000
    service.filter()
    assert service.post("bind", bind_body("plain-0")) == (200, {"Error": ""})
    assert service.ops("/readyz") == (200, "ok")


def rss(service: Service) -> int:
    """kB of memory of the worker."""
    status = Path(f"/proc/{service.report()['pid']}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
