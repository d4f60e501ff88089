"""Which entries of `extenders:` are this extender, and what of the others may be asked."""

from __future__ import annotations

from typing import Any

import pytest

from extender.config.types import ExtenderConfig
from extender.simulation.extenders import SortedExtenders, sort_extenders

HERE = "http://127.0.0.1:8888"


def entry(url: str = HERE, *verbs: str, **fields: Any) -> ExtenderConfig:
    """With verbs under the names that they have here."""
    names = {f"{verb}_verb": verb for verb in verbs or ("filter", "prioritize", "preempt", "bind")}
    return ExtenderConfig(url, **{"node_cache_capable": True, **names, **fields})


def sort(*entries: ExtenderConfig, configured: bool = False, call: bool = False) -> SortedExtenders:
    return sort_extenders(entries, configured=configured, call=call)


SPLIT = (entry(HERE, "filter", "prioritize", "preempt"), entry(HERE, "bind"))


@pytest.mark.parametrize(
    ("entries", "configured", "own"),
    [
        pytest.param(SPLIT, False, True, id="the shipped pair"),
        pytest.param([entry("http://localhost:8888/")], False, True, id="by name, with a slash"),
        pytest.param([entry("http://[::1]:8888")], False, True, id="over IPv6"),
        pytest.param([entry("http://127.8.9.10:8888")], False, True, id="another address of loopback"),
        pytest.param([entry(HERE, "filter")], False, True, id="serve's own port, though it is not asked to bind"),
        pytest.param([entry("http://127.0.0.1:31999")], False, True, id="another port of loopback, filter and bind"),
        pytest.param([entry("http://127.0.0.1:31999", "filter")], False, False, id="there, filter alone"),
        pytest.param([entry("http://127.0.0.1:31999", "bind")], False, False, id="there, bind alone"),
        pytest.param([entry("https://gangs.kube-system:8888")], False, True, id="elsewhere, serve's own port"),
        pytest.param([entry("https://gangs.kube-system:9443")], False, False, id="elsewhere, another port"),
        pytest.param(
            [entry("https://gangs.kube-system:9443")], True, True, id="the same, with the extender's own file"
        ),
        pytest.param([entry("https://other:9443", "filter")], True, False, id="with it, filter alone"),
        pytest.param([entry(f"{HERE}/scheduler")], True, False, id="a path before the verbs"),
        pytest.param([entry(HERE, bind_verb="assume")], True, False, id="a verb of another name"),
        pytest.param([entry(HERE, filter_verb="prioritize")], True, False, id="a verb under the name of another"),
        pytest.param([entry(HERE, bind_verb="/bind")], True, False, id="two slashes, which serve answers with 404"),
        pytest.param([entry(HERE, bind_verb="bind/")], False, True, id="a slash at the end, which it does not mind"),
        pytest.param(
            [entry(HERE, managed_resources=frozenset({"nvidia.com/gpu"}))],
            True,
            False,
            id="one for the pods of a resource only",
        ),
        pytest.param(
            [SPLIT[0], entry(HERE, bind_verb="assume", filter_verb="")],
            True,
            False,
            id="half of an address is not ours",
        ),
        pytest.param([entry("http://127.0.0.1:nonsense")], True, False, id="a port that is none"),
        pytest.param([entry("127.0.0.1:8888")], False, False, id="no scheme: kube-scheduler could not reach it"),
        pytest.param([ExtenderConfig(HERE)], True, False, id="no verb at all"),
    ],
)
def test_an_entry_is_this_extender(entries: list[ExtenderConfig], configured: bool, own: bool) -> None:
    found = sort(*entries, configured=configured)
    assert found.own == (tuple(entries) if own else ())
    assert found.called == ()


def test_others_beside_it_are_not_asked_and_named() -> None:
    found = sort(
        *SPLIT, entry("http://127.0.0.1:31999", "filter"), entry("https://gpus:1/gpu", "prioritize", "preempt")
    )
    assert found.own == SPLIT
    assert found.called == ()
    assert found.warnings == (
        "extenders are not asked without --call-extenders: http://127.0.0.1:31999 (filter), https://gpus:1/gpu (prioritize, preempt)",
    )


def test_where_others_may_be_asked_they_are_never_asked_to_preempt_or_bind() -> None:
    found = sort(entry("https://one/a"), entry("https://two/b", "bind"), entry("https://three", "filter"), call=True)
    asked = {
        each.url_prefix: [each.filter_verb, each.prioritize_verb, each.preempt_verb, each.bind_verb]
        for each in found.called
    }
    assert asked == {"https://one/a": ["filter", "prioritize", "", ""], "https://three": ["filter", "", "", ""]}
    assert found.warnings == (
        "extenders are not asked for what could change something: https://one/a (preempt, bind), https://two/b (bind)",
    )


def test_this_extender_is_not_asked_either() -> None:
    assert sort(*SPLIT, call=True).called == ()


def test_the_weight_of_its_scores_is_the_entry_s() -> None:
    assert sort(entry(HERE, "filter", "prioritize", weight=7), entry(HERE, "bind", weight=3)).weight == 7
    assert sort(entry(HERE, "filter", weight=7)).weight == 0


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        pytest.param(SPLIT, [], id="as it should be"),
        pytest.param([entry(HERE, "filter", "preempt")], ["no entry of this extender has bindVerb"], id="no bind"),
        pytest.param([entry(HERE, "bind")], ["has filterVerb", "has preemptVerb"], id="bind alone"),
        pytest.param(
            [entry(node_cache_capable=False)], ["nodeCacheCapable: true is missing"], id="whole nodes would be sent"
        ),
    ],
)
def test_settings_by_which_gangs_would_not_be_kept_whole_are_named(
    entries: list[ExtenderConfig], said: list[str]
) -> None:
    warnings = sort(*entries).warnings
    assert len(warnings) == len(said)
    assert all(part in warning for part, warning in zip(said, warnings))
