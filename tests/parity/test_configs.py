"""What is wrong with a configuration is what kube-scheduler 1.36 finds wrong with it: each mistake, its path and its words.

The answers were recorded by record_configs.py. Where ours differ it is said here, and why.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from extender.config.kube_scheduler import read_kube_scheduler_configuration
from extender.config.yaml_file import ConfigurationError, read_document
from tests.parity.config_cases import CASES, Json
from tests.parity.record_configs import ANSWERS

RECORDED: dict[str, list[str]] = json.loads(ANSWERS.read_text(encoding="utf-8"))

_SYNTAX = re.compile(
    r"(must consist of|must be 1 to 63|must be no more than|must be non-empty|a valid label|must be at most 63).*"
)
_OTHER_WORDS = (
    # Go shows an empty struct where it means the other profile.
    (re.compile(r"(schedulerName: Duplicate value: ).*"), r"\1..."),
    # The field is `enabled` in the file.
    (re.compile(r"queueSort\.Enabled"), "queueSort.enabled"),
    # Go's own spelling of the value.
    (re.compile(r"(queueSort: )(Invalid value: .*: )?must be the same"), r"\1must be the same"),
    (re.compile(r'\[\{"Utilization":0,"Score":0\}\]'), '[{"utilization":0,"score":0}]'),
    # Go leaves a level out.
    (re.compile(r"(Execution\[\d+\])\.matchExpressions"), r"\1.preference.matchExpressions"),
    # Ours says what to do.
    (re.compile(r'(was invalid in version "v1".*|the plugin is gone: .*)'), "the plugin is gone"),
)


def comparable(mistake: str) -> str:
    """What a name has to look like is said in many words by Go, once or twice for one name."""
    found = _SYNTAX.search(mistake)
    if found:
        mistake = mistake[: found.start()].removesuffix("name part ").removesuffix("prefix part ") + "syntax"
    for pattern, replacement in _OTHER_WORDS:
        mistake = pattern.sub(replacement, mistake)
    return mistake


def mistakes(case: Json, folder: Path) -> list[str]:
    file = folder / "file.yaml"
    file.write_text(json.dumps(case))
    try:
        read_kube_scheduler_configuration(read_document(file))
    except ConfigurationError as error:
        return [re.sub(r"^.*?file\.yaml:\d+: ", "", line) for line in str(error).splitlines()]
    return []


def test_the_answers_are_those_of_these_cases() -> None:
    assert list(RECORDED) == list(CASES), "record them anew"


FOUND_EARLIER = "a removed plugin at multiPoint"
"""kube-scheduler finds it when it builds its plugins; here it is found with all other mistakes."""


@pytest.mark.parametrize("name", [name for name in CASES if name != FOUND_EARLIER])
def test_every_mistake_has_its_path_and_its_words(name: str, tmp_path: Path) -> None:
    ours = {comparable(mistake) for mistake in mistakes(CASES[name], tmp_path)}
    assert ours == {comparable(mistake) for mistake in RECORDED[name]}


def test_a_removed_plugin_at_multi_point_is_found_with_the_others(tmp_path: Path) -> None:
    (found,) = mistakes(CASES[FOUND_EARLIER], tmp_path)
    assert "plugins.multiPoint.enabled[0]" in found
