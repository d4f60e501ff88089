"""Which users may see gangs from beyond loopback: by the API server's word, kept for some seconds, and nothing without it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ConnectionFailedError, ForbiddenError
from extender.client.interface import POD_GROUPS, ResourceType, User
from extender.scheduler import page_access
from extender.scheduler.interface import AccessUnknownError, NotAuthenticatedError, NotAuthorizedError
from extender.scheduler.page_access import KEPT_SECONDS, MOST_KEPT, PageAccess
from tests.unit.plugins.coscheduling.conftest import FakeClock

TENANT = User("system:serviceaccount:team-a:viewer", "u1", ("system:serviceaccounts",), {"scopes": ("x",)})
OPERATOR = User("alice", groups=("admins",))


class Rights(EmbeddedAPI):
    """An API server with two users. asked: its reviews so far."""

    def __init__(self) -> None:
        super().__init__()
        self.users: Mapping[str, User] = {"tenant": TENANT, "operator": OPERATOR}
        self.asked: list[str] = []
        self.fault: Exception | None = None

    def user_of(self, token: str) -> User | None:
        self.asked.append(f"token {token}")
        if self.fault is not None:
            raise self.fault
        return self.users.get(token)

    def user_may(
        self, user: User, verb: str, resource: ResourceType[Any], *, namespace: str = "", name: str = ""
    ) -> bool:
        assert resource is POD_GROUPS
        self.asked.append(f"{verb} {namespace}/{name}")
        if self.fault is not None:
            raise self.fault
        return user is OPERATOR or namespace == "team-a"


@pytest.fixture
def api() -> Rights:
    return Rights()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def access(api: Rights, clock: FakeClock) -> PageAccess:
    return PageAccess(api, clock)


@pytest.mark.parametrize(
    ("token", "where", "asked"),
    [
        pytest.param("operator", ("", ""), "list /", id="all of a cluster is to be listed"),
        pytest.param("operator", ("team-b", ""), "get team-b/", id="gangs of a namespace are to be got"),
        pytest.param("tenant", ("team-a", ""), "get team-a/", id="of one's own"),
        pytest.param("tenant", ("team-a", "train"), "get team-a/train", id="one of them"),
    ],
)
def test_may_see(access: PageAccess, api: Rights, token: str, where: tuple[str, str], asked: str) -> None:
    access.check(token, *where)
    assert api.asked == [f"token {token}", asked]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        pytest.param(
            ("", ""),
            f'podgroups.scheduling.x-k8s.io is forbidden: User "{TENANT.name}" cannot list resource "podgroups" '
            'in API group "scheduling.x-k8s.io" at the cluster scope',
            id="the whole",
        ),
        pytest.param(
            ("team-b", ""),
            f'podgroups.scheduling.x-k8s.io is forbidden: User "{TENANT.name}" cannot get resource "podgroups" '
            'in API group "scheduling.x-k8s.io" in the namespace "team-b"',
            id="another namespace",
        ),
        pytest.param(
            ("team-b", "train"),
            f'podgroups.scheduling.x-k8s.io "train" is forbidden: User "{TENANT.name}" cannot get resource "podgroups" '
            'in API group "scheduling.x-k8s.io" in the namespace "team-b"',
            id="a gang of another namespace, that it is there or not",
        ),
    ],
)
def test_may_not_see_in_the_api_server_s_words(access: PageAccess, where: tuple[str, str], text: str) -> None:
    with pytest.raises(NotAuthorizedError) as caught:
        access.check("tenant", *where)
    assert str(caught.value) == text


def test_of_a_token_without_a_user_no_right_is_asked(access: PageAccess, api: Rights) -> None:
    with pytest.raises(NotAuthenticatedError):
        access.check("stolen", "team-a")
    assert api.asked == ["token stolen"]


def test_decisions_are_kept_for_some_seconds_refusals_too(access: PageAccess, api: Rights, clock: FakeClock) -> None:
    def ask() -> None:
        access.check("tenant", "team-a")
        with pytest.raises(NotAuthorizedError):
            access.check("tenant", "team-b")
        with pytest.raises(NotAuthenticatedError):
            access.check("stolen")

    ask()
    first = list(api.asked)
    ask()
    assert api.asked == first
    clock.now += KEPT_SECONDS + 0.1
    api.users = {}
    with pytest.raises(NotAuthenticatedError):
        access.check("tenant", "team-a")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(ConnectionFailedError("no route"), id="the API server is away"),
        pytest.param(ForbiddenError("tokenreviews is forbidden"), id="we may not ask"),
    ],
)
def test_without_an_answer_nothing_is_shown_and_the_next_request_asks_again(
    access: PageAccess, api: Rights, fault: Exception
) -> None:
    api.fault = fault
    with pytest.raises(AccessUnknownError):
        access.check("operator")
    api.fault = None
    access.check("operator")


def test_a_right_that_could_not_be_asked_for_is_none(access: PageAccess, api: Rights) -> None:
    access.check("tenant", "team-a")
    api.fault = ConnectionFailedError("no route")
    with pytest.raises(AccessUnknownError):
        access.check("tenant", "team-b")


def test_what_is_kept_is_bounded(access: PageAccess) -> None:
    for number in range(MOST_KEPT + 50):
        with pytest.raises(NotAuthenticatedError):
            access.check(f"made-up-{number}")
    assert len(access._users) == MOST_KEPT


def test_no_token_is_kept(access: PageAccess) -> None:
    access.check("operator")
    assert "operator" not in str(list(access._users)) + str(list(access._allowed))


def test_a_crowd_of_tokens_has_so_many_calls_under_way_at_most(
    access: PageAccess, api: Rights, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, go_on = threading.Semaphore(0), threading.Event()

    def slow(token: str) -> User | None:
        under_way.release()
        go_on.wait()
        return None

    monkeypatch.setattr(api, "user_of", slow)

    def ask(token: str) -> None:
        with pytest.raises(NotAuthenticatedError):
            access.check(token)

    threads = [threading.Thread(target=ask, args=(f"t{number}",)) for number in range(page_access.MOST_ASKED)]
    for thread in threads:
        thread.start()
    for _ in threads:
        under_way.acquire()
    with pytest.raises(AccessUnknownError, match="too many"):
        access.check("one more")
    go_on.set()
    for thread in threads:
        thread.join()
