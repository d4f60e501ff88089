"""How often the token is read: it is kept for a while, read anew after that, and at once when the server refuses it."""

from __future__ import annotations

from itertools import count

from extender.client.identity import HEADERS_SECONDS, Identity


class Configuration:
    """As the library's, with another token each time that it is asked for one."""

    username = ""

    def __init__(self, serial: count[int]) -> None:
        self._serial = serial

    def get_api_key_with_prefix(self, name: str, alias: str) -> str:
        return f"Bearer {next(self._serial)}"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_headers_are_kept_for_a_while() -> None:
    serial, clock = count(), Clock()
    identity = Identity(lambda: Configuration(serial), clock)

    first = identity.headers()
    clock.now += HEADERS_SECONDS / 2
    assert identity.headers() == first == {"Authorization": "Bearer 0"}
    clock.now += HEADERS_SECONDS
    assert identity.headers() == {"Authorization": "Bearer 1"}


def test_a_refusal_forgets_them() -> None:
    serial = count()
    identity = Identity(lambda: Configuration(serial), Clock())
    identity.headers()

    identity.refresh()

    assert identity.headers() == {"Authorization": "Bearer 1"}
