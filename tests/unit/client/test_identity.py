"""When credentials are read: kept for a while, looked at by one caller at a time, read again at once when they were refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from extender.client.credentials import Credentials, IdentityError, Route
from extender.client.errors import ConnectionFailedError
from extender.client.identity import KEPT_SECONDS, Identity

ROUTE = Route("http://10.0.0.1")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Script:
    """Credentials with another token each time that they are read."""

    def __init__(self) -> None:
        self.reads: list[bool] = []
        self.before: Callable[[], None] = lambda: None

    def read(self, refused: bool) -> Credentials:
        self.reads.append(refused)
        self.before()
        return Credentials(ROUTE, f"Bearer {len(self.reads)}")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def identity(script: Script, clock: Clock) -> Identity:
    return Identity(script, clock)


@pytest.fixture
def reading(script: Script, clock: Clock, identity: Identity) -> Iterator[threading.Event]:
    """A caller is in the middle of reading newer ones, until the event is set."""
    begun, done = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert done.wait(5)

    script.before = wait
    clock.now += KEPT_SECONDS
    caller = threading.Thread(target=identity.current)
    caller.start()
    assert begun.wait(5)
    script.before = lambda: None
    yield done
    done.set()
    caller.join()


def test_credentials_are_kept_for_a_while(identity: Identity, script: Script, clock: Clock) -> None:
    first = identity.current()
    clock.now += KEPT_SECONDS / 2
    assert identity.current() is first
    assert first.headers() == {"Authorization": "Bearer 1"}
    clock.now += KEPT_SECONDS / 2
    assert identity.current().authorization == "Bearer 2"
    assert script.reads == [False, False]


def test_no_other_caller_waits_for_the_one_that_reads(reading: threading.Event, identity: Identity) -> None:
    """A plugin may take seconds, and calls of the API server go on with what there is."""
    assert [identity.current().authorization for _ in range(3)] == ["Bearer 1"] * 3
    assert not reading.is_set()


def test_what_was_refused_is_read_again_at_once(identity: Identity, script: Script) -> None:
    identity.renew(identity.current())
    assert identity.current().authorization == "Bearer 2"
    assert script.reads == [False, True]


def test_many_calls_that_were_refused_read_once(identity: Identity, script: Script) -> None:
    refused = identity.current()
    for _ in range(5):
        identity.renew(refused)
    assert identity.current().authorization == "Bearer 2"
    assert script.reads == [False, True]


def test_a_refused_call_waits_for_the_caller_that_reads(
    reading: threading.Event, identity: Identity, script: Script
) -> None:
    """What it brings is newer than what was refused."""
    refused = identity.current()
    waiting = threading.Thread(target=identity.renew, args=(refused,))
    waiting.start()
    reading.set()
    waiting.join(5)
    assert identity.current().authorization == "Bearer 2"
    assert script.reads == [False, False]


@pytest.mark.parametrize("error", [IdentityError("no such file"), ValueError("half a file")], ids=["ours", "another"])
def test_what_cannot_be_read_changes_nothing_and_is_said_once(
    identity: Identity, script: Script, clock: Clock, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail() -> None:
        raise error

    script.before = fail
    for _ in range(3):
        clock.now += KEPT_SECONDS
        assert identity.current().authorization == "Bearer 1"
    assert caplog.text.count("credentials could not be read, the last ones stay") == 1
    with pytest.raises(ConnectionFailedError, match=r"credentials could not be read: .*file"):
        identity.renew(identity.current())
    script.before = lambda: None
    clock.now += KEPT_SECONDS
    assert identity.current().authorization == "Bearer 6"
