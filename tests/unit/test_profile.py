"""Several profiles in one scheduler. kube-scheduler: pkg/scheduler/profile/profile_test.go (TestNewMap)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from extender.config.types import KubeSchedulerProfile, Plugins, PluginSet
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.framework.runtime.registry import Registry, RegistryError
from extender.profile import ProfileError, new_map
from tests.unit.framework.runtime.fakes import Binder, FakePlugin, Scorer, Sort, make_dependencies, refs


def registry() -> Registry:
    """A new plugin each time one is built."""
    found = Registry()
    found.register("queue-sort", lambda args, handle: Sort())
    found.register("bind", lambda args, handle: Binder())
    found.register("test-plugin", lambda args, handle: FakePlugin())
    found.register("Coscheduling", lambda args, handle: Scorer("Coscheduling"))
    found.register("own", lambda args, handle: Scorer("own"))
    return found


def profile(name: str, *plugins: str, config: dict[str, Any] | None = None) -> KubeSchedulerProfile:
    return KubeSchedulerProfile(name, Plugins(PluginSet(refs(*plugins))), config or {})


def test_each_scheduler_name_has_its_framework() -> None:
    frameworks = new_map(
        [profile("one", "queue-sort", "bind"), profile("two", "queue-sort", "bind", "own")],
        registry(),
        make_dependencies(),
    )
    assert [(name, framework.profile_name) for name, framework in frameworks.items()] == [
        ("one", "one"),
        ("two", "two"),
    ]
    assert "own" not in frameworks["one"].plugins


def test_a_group_is_one_thing_for_every_caller() -> None:
    plugins = ("queue-sort", "bind", "Coscheduling", "own")
    frameworks = new_map([profile("one", *plugins), profile("two", *plugins)], registry(), make_dependencies())
    one, two = frameworks["one"].plugins, frameworks["two"].plugins
    assert one["Coscheduling"] is two["Coscheduling"]
    assert one["own"] is not two["own"]


def test_all_profiles_have_the_snapshot_of_the_cycle_that_is_under_way() -> None:
    """What they share asks the first of them, which had that of its own last cycle: nodes that came since were not there."""
    plugins = ("queue-sort", "bind", "Coscheduling")
    frameworks = new_map([profile("one", *plugins), profile("two", *plugins)], registry(), make_dependencies())
    old, new = HypotheticalSnapshot([]), HypotheticalSnapshot([])
    frameworks["one"].set_snapshot(old)
    frameworks["two"].set_snapshot(new)
    assert frameworks["one"].snapshot() is new
    assert frameworks["two"].snapshot() is new


@pytest.mark.parametrize(
    ("profiles", "error", "message"),
    [
        pytest.param([profile("", "queue-sort", "bind")], ProfileError, "scheduler name is needed", id="no name"),
        pytest.param(
            [profile("one", "queue-sort", "bind")] * 2,
            ProfileError,
            'duplicate profile with scheduler name "one"',
            id="one name twice",
        ),
        pytest.param(
            [profile("one", "queue-sort", "bind"), profile("two", "test-plugin")],
            ProfileError,
            'different queue sort plugins for profile "two": "test-plugin", first: "queue-sort"',
            id="two queue sorts",
        ),
        pytest.param(
            [
                profile("one", "queue-sort", "bind", config={"queue-sort": {"a": 1}}),
                profile("two", "queue-sort", "bind", config={"queue-sort": {"a": 2}}),
            ],
            ProfileError,
            'different queue sort plugin args for profile "two"',
            id="one queue sort with two sets of arguments",
        ),
        pytest.param(
            [profile("one", "queue-sort", "bind", "absent")],
            RegistryError,
            'profile one: plugin "absent" does not exist',
            id="an unknown plugin",
        ),
    ],
)
def test_profiles_that_do_not_go_together_are_refused(
    profiles: Sequence[KubeSchedulerProfile], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        new_map(profiles, registry(), make_dependencies())
    assert str(caught.value) == message
