"""What the running extender says of kube-scheduler's configuration, by the calls that it gets: a story each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api import corev1
from extender.config.types import ExtenderConfiguration
from extender.scheduler.observed_settings import FORGOTTEN_SECONDS, ObservedSettings
from tests.objects import make_pod

NAME = "gang-scheduler"


class Now:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def later(self, seconds: float) -> float:
        self.seconds += seconds
        return self.seconds


class Watched(ObservedSettings):
    """With a clock that stands, and kube-scheduler's calls in short."""

    def __init__(self, percentage: int = 0) -> None:
        self.now = Now()
        self.ours: set[str] = set()
        configuration = ExtenderConfiguration(scheduler_names=(NAME,), percentage_of_nodes_to_score=percentage)
        super().__init__(configuration, lambda pod: pod.uid in self.ours, self.now)

    def asked(self, *names: str, offered: int = 3, nodes: int = 3) -> None:
        for name in names:
            self.filtered(pod(name), offered, nodes)

    def bound(self, *names: str, scheduler: str = NAME) -> None:
        for name in names:
            self.on_pod(pod(name, scheduler=scheduler), pod(name, "n", scheduler))

    def hung_up(self, held: float, times: int = 3) -> None:
        for _ in range(times):
            self.now.seconds += 2
            self.bind_ended(held, hung_up=True)

    def said(self) -> list[str]:
        return [f"{each.code} {each.field}" for each in self.findings()]


def pod(name: str, node: str = "", scheduler: str = NAME) -> corev1.Pod:
    return make_pod().name(name).uid(name).node(node).scheduler_name(scheduler).obj()


WHOLE = "NotNodeCacheCapable extenders[].nodeCacheCapable"
NO_BIND = "NoBindVerb extenders[].bindVerb"
NOT_ASKED = "NotAsked extenders"
SAMPLE = "SampleOfNodes percentageOfNodesToScore"
SHORT = "BindTimeoutDiffers extenders[].httpTimeout"
FOREIGN = "SchedulerNotServed schedulerNames"

Story = Callable[[Watched], object]


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param(lambda it: it.asked("a"), [], id="nothing is wrong"),
        pytest.param(lambda it: it.whole_nodes("filter"), [WHOLE], id="whole nodes in place of names"),
        pytest.param(lambda it: (it.whole_nodes("filter"), it.asked("a")), [], id="names since then"),
        pytest.param(lambda it: (it.asked("a", "b"), it.bound("a", "b")), [NO_BIND], id="bound past us, though asked"),
        pytest.param(lambda it: (it.asked("a"), it.bound("a")), [], id="one may have been bound by hand"),
        pytest.param(
            lambda it: (it.asked("a", "b"), it.bound("a", "b"), it.bind_came(pod("a"))), [], id="bind calls come now"
        ),
        pytest.param(lambda it: it.bound("a", "b"), [NOT_ASKED], id="bound, and never asked about"),
        pytest.param(
            lambda it: (it.asked("c"), it.bound("a", "b"), it.bind_came(pod("c"))),
            [NOT_ASKED],
            id="asked about others only",
        ),
        pytest.param(lambda it: it.bound("a", "b", scheduler="other"), [], id="pods of another scheduler"),
        pytest.param(lambda it: (it.ours.update("ab"), it.bound("a", "b")), [], id="bindings of ours"),
        pytest.param(lambda it: it.bind_came(pod("a", scheduler="batch")), [FOREIGN], id="a profile that we refuse"),
        pytest.param(
            lambda it: it.asked("a", "b", "c", offered=121, nodes=253), [SAMPLE], id="the default sample of 253 nodes"
        ),
        pytest.param(lambda it: it.asked("a", "a", "a", offered=121, nodes=253), [], id="one pod that fits on so many"),
        pytest.param(
            lambda it: (it.asked("a", "b", "c", offered=121, nodes=253), it.asked("d", offered=253, nodes=253)),
            [],
            id="all nodes since then",
        ),
        pytest.param(lambda it: it.asked("a", "b", "c", offered=90, nodes=90), [], id="a small cluster"),
        pytest.param(lambda it: it.asked("a", "b", "c", offered=40, nodes=253), [], id="few nodes fit"),
        pytest.param(lambda it: it.hung_up(5.0), [SHORT], id="bind calls end after 5 s each"),
        pytest.param(lambda it: it.hung_up(119.0), [], id="as late as it is believed"),
        pytest.param(
            lambda it: (it.whole_nodes("filter"), it.now.later(FORGOTTEN_SECONDS + 1)),
            [],
            id="it was long ago",
        ),
        pytest.param(
            lambda it: (it.asked("a", "b", "c", offered=121, nodes=253), it.bound("d", "e")),
            [NOT_ASKED, SAMPLE],
            id="errors before warnings",
        ),
    ],
)
def test_what_is_seen(story: Story, expected: list[str]) -> None:
    watched = Watched()
    story(watched)
    assert watched.said() == expected


def test_of_a_pod_that_is_gone_nothing_is_remembered() -> None:
    """10,000 of them would be megabytes."""
    watched = Watched()
    watched.asked("a", "b")
    watched.on_pod(pod("a"), None)
    assert list(watched._asked) == ["b"]


def test_the_words_name_what_was_seen_and_what_to_write() -> None:
    watched = Watched()
    watched.hung_up(0.002)
    (short,) = watched.findings()
    assert short.message == "kube-scheduler hangs up on bind calls after 2ms, and the extender would hold them 120 s"
    assert short.fix.startswith("write `httpTimeout: 2m0s` in the entry that binds")


@pytest.mark.parametrize(
    ("percentage", "expected"),
    [
        pytest.param(10, [], id="the sample that the extender's own file names"),
        pytest.param(100, [SAMPLE], id="the extender's own file says that all are offered"),
        pytest.param(0, [SAMPLE], id="the extender's own file says nothing"),
    ],
)
def test_a_sample_that_is_wanted_is_no_finding(percentage: int, expected: list[str]) -> None:
    """Of 5,000 nodes kube-scheduler offers a tenth by itself."""
    watched = Watched(percentage)
    watched.asked("a", "b", "c", offered=500, nodes=5000)
    assert [f"{each.code} {each.field}" for each in watched.findings()] == expected
