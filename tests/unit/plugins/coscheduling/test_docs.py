"""docs/groups.md and docs/troubleshooting.md say all there is, and their examples are what the extender reads."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.api.codec import convert
from extender.api.metadata_keys import Key
from extender.api.schedulingv1alpha1 import PodGroup
from extender.config.group_sources import PRESETS
from extender.config.plugin_args import CoschedulingArgs, GroupSource
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.spec import keys
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import spec_of_pod_group
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.refutations import How
from tests.documented import configuration_in

DOCS = Path(__file__).parents[4] / "docs"
ROOM = DOCS.parent / "extender" / "plugins" / "coscheduling"
GROUPS = (DOCS / "groups.md").read_text()
TROUBLES = (DOCS / "troubleshooting.md").read_text()
FLAT = " ".join(TROUBLES.split())
EXPLAIN_ONLY = ("PREEMPTION_", "NO_VICTIMS_HELP", "VETO_")  # what `explain` and `evaluate` add, and no pod hears


def examples(kind: str) -> list[dict[str, Any]]:
    blocks = re.findall(r"<!-- example -->\n```yaml\n(.*?)```", GROUPS, re.DOTALL)
    return [document for block in blocks for document in yaml.safe_load_all(block) if document["kind"] == kind]


def test_every_reason_has_its_entry_and_there_are_no_others() -> None:
    headings = re.findall(r"^### (\w+)$", TROUBLES, re.MULTILINE)
    assert sorted(headings) == sorted(reason.value for reason in UnschedulableReason)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name)
        for name, text in vars(messages).items()
        if name.isupper() and isinstance(text, str) and not name.startswith(EXPLAIN_ONLY)
    ],
)
def test_every_constant_message_can_be_grepped_for(text: str) -> None:
    assert text in FLAT


@pytest.mark.parametrize("how", How)
def test_every_way_to_refute_a_place_is_explained(how: How) -> None:
    assert f"| `{how}` |" in (DOCS / "operations.md").read_text()


@pytest.mark.parametrize("key", keys.ASKING)
def test_every_annotation_is_explained(key: str) -> None:
    prefix, _, name = key.partition("/")
    assert key in GROUPS or (prefix in GROUPS and f"`{name}`" in GROUPS)


@pytest.mark.parametrize("key", [each for each in vars(keys).values() if isinstance(each, Key)])
def test_what_a_value_may_be_says_how_long(key: Key[object]) -> None:
    assert re.search(rf"^\|.*`{re.escape(key)}`.* \| {key.longest} \| .", GROUPS, re.MULTILINE)


@pytest.mark.parametrize("policy", MatchPolicy)
def test_every_match_policy_is_explained(policy: MatchPolicy) -> None:
    assert f"| `{policy}`" in GROUPS


@pytest.mark.parametrize("example", examples("PodGroup"), ids=lambda example: example["metadata"]["name"])
def test_an_example_is_valid(example: dict[str, Any]) -> None:
    example["metadata"]["namespace"] = "default"
    assert spec_of_pod_group(convert(example, PodGroup)).invalid == ""


def test_the_configuration_for_in_tree_groups_is_read(tmp_path: Path) -> None:
    (profile,) = configuration_in(GROUPS.partition("## PodGroups of kube-scheduler's own API")[2], tmp_path).profiles
    args = profile.plugin_config["Coscheduling"]
    assert isinstance(args, CoschedulingArgs)
    assert args.in_tree_pod_groups


def test_the_configuration_for_groups_by_keys_is_read(tmp_path: Path) -> None:
    (profile,) = configuration_in(GROUPS.partition("## Groups by keys of your own")[2], tmp_path).profiles
    args = profile.plugin_config["Coscheduling"]
    assert isinstance(args, CoschedulingArgs)
    assert [source.name for source in args.group_sources] == ["lws", "kueue", "in-house"]


@pytest.mark.parametrize("source", PRESETS.values(), ids=lambda source: source.name)
def test_the_keys_of_a_preset_stand_in_its_row(source: GroupSource) -> None:
    (row,) = re.findall(rf"^\| `{source.name}` \|.*$", GROUPS, re.MULTILINE)
    said = set(re.findall(r"`([^`]*/[^`]*)`", row))
    assert said == {getattr(source, each.name) for each in fields(source) if each.name != "name"} - {""}


def named_in_architecture() -> set[str]:
    """Paths in the room, by the package of their row; below the table, those at the top of the room."""
    about = (DOCS / "architecture.md").read_text().split("## What knows gangs")[1].split("\n## ")[0]
    table, below = about.rsplit("|\n", 1)
    found, package = set(), ""
    for row in re.findall(r"^\| .*$", table + "|", re.MULTILINE)[1:]:
        _, first, _, files, _ = row.split("|")
        package = first.strip(" `") or package
        found |= {package + name for name in re.findall(r"`([\w/]+\.py)`", files)}
    return found | set(re.findall(r"`(\w+\.py)`", below))


def test_the_table_of_the_room_names_each_of_its_files() -> None:
    there = {str(path.relative_to(ROOM)) for path in ROOM.rglob("*.py") if path.name != "__init__.py"}
    assert named_in_architecture() == there
