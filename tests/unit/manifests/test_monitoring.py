"""Alerts and dashboard are PromQL about metrics that there are, with labels that they have; each alert has its runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml

from extender.api.codec import to_builtins
from extender.metrics import REGISTRY
from extender.plugins.coscheduling.scheduling.phases import Phase
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from tests.exported_metrics import exported

PROJECT = Path(__file__).parents[3]
FOLDER = PROJECT / "manifests/monitoring"
BOARD = json.loads((FOLDER / "dashboard.json").read_text())
SCRAPED = {"pod", "namespace", "job", "instance", "container", "endpoint"}
"""Labels that Prometheus adds."""
PARTS = ("_bucket", "_sum", "_count")
"""Series of a histogram."""
EXPORTED = exported()


def rules() -> list[dict[str, Any]]:
    (file,) = yaml.safe_load_all((FOLDER / "rules.yaml").read_text())
    return [rule for group in file["spec"]["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def of_the_board() -> Iterator[tuple[str, str]]:
    """Panel and expression, with what Grafana fills in."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")


EXPRESSIONS = [
    *(pytest.param(rule["expr"], id=rule["alert"]) for rule in rules()),
    *(pytest.param(expression, id=title) for title, expression in of_the_board()),
]


class Read:
    """What an expression selects, and by which labels it puts together."""

    def __init__(self, expression: str) -> None:
        self.selected: list[tuple[str, dict[str, str]]] = []
        self.grouped: list[tuple[list[str], set[str]]] = []  # labels, and the metrics below that keep theirs
        promql.walk(promql.parse(expression), self._visit)

    def _visit(self, node: Any) -> None:
        if isinstance(node, promql.VectorSelector):
            self.selected.append((str(node.name), {each.name: each.value for each in node.matchers.matchers}))
        elif isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            below = node.expr
            while isinstance(below, promql.BinaryExpr) and str(below.op) in ("and", "unless"):
                below = below.lhs
            self.grouped.append((node.modifier.labels, {name for name, _ in Read(str(below)).selected}))


def labels_of(name: str) -> set[str]:
    """Of a series as it is scraped. Raises KeyError for one that is not."""
    for part in PARTS:
        if name.endswith(part) and name.removesuffix(part) in EXPORTED:
            return {*EXPORTED[name.removesuffix(part)], *SCRAPED, *(["le"] if part == "_bucket" else [])}
    return {*EXPORTED[name], *SCRAPED}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_series_and_label_is_there(expression: str) -> None:
    read = Read(expression)
    assert read.selected
    for name, matchers in read.selected:
        assert matchers.keys() <= labels_of(name), name
    for labels, names in read.grouped:
        assert all(set(labels) <= labels_of(name) for name in names), labels


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        pytest.param("sum(rate(gang_extender_requests_total[5m])", "unclosed", id="a parenthesis is missing"),
        pytest.param("rate(gang_extender_requests_total)", "expected type", id="a rate of no range"),
    ],
)
def test_what_is_no_promql_is_found(expression: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Read(expression)


def test_of_processes_only_ours_are_drawn() -> None:
    """Every program that Prometheus scrapes has those metrics."""
    drawn = [expression for _, expression in of_the_board() if "process_" in expression]
    assert drawn
    assert all("and on (pod) gang_extender_build_info" in expression for expression in drawn)


def test_values_of_labels_are_among_those_that_there_are() -> None:
    """Of closed lists."""
    known = {
        "reason": {reason.value for reason in UnschedulableReason},
        "phase": {phase.value for phase in Phase},
        "severity": {"error", "warning", "info"},
        "verb": {"filter", "prioritize", "preempt", "bind"},
        "result": {"ok", "error", "refused", "fault", "late", "in_time"},
    }
    expressions = [*(rule["expr"] for rule in rules()), *(expression for _, expression in of_the_board())]
    for name, matchers in (each for expression in expressions for each in Read(expression).selected):
        for label, value in matchers.items():
            if label in known:
                assert set(value.split("|")) <= known[label], f"{name}: {label}"


def test_an_alert_about_a_counter_with_labels_hears_of_the_first_event() -> None:
    """Its series begins with that, at 1, and Prometheus sees no increase in it."""
    for rule in rules():
        for name, window in re.findall(r"increase\((\w+)\[(\w+)\]", rule["expr"]):
            if REGISTRY.get_sample_value(name) is None:  # one without labels is there from the start
                assert f"or ({name} unless {name} offset {window}) > 0" in rule["expr"], rule["alert"]


HEADING = re.compile(r"^## (\w+)$", re.MULTILINE)
RUNBOOKS = PROJECT / "docs/runbooks.md"


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_has_words_and_a_runbook(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert (PROJECT / page) == RUNBOOKS
    assert anchor == rule["alert"].lower()
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["labels"]["severity"] in ("critical", "warning")


def test_one_setting_makes_a_url_of_every_runbook() -> None:
    """tests/e2e/test_monitoring_manifests.py: what kustomize makes of it."""
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    literals = {each["name"]: each.get("literals") for each in kustomization["configMapGenerator"]}
    ((page,), (replacement,)) = literals["gang-extender-runbooks"], kustomization["replacements"]
    assert re.fullmatch(r"page=https://[^#]+", page)
    assert replacement["source"] == {"kind": "ConfigMap", "name": "gang-extender-runbooks", "fieldPath": "data.page"}
    (target,) = replacement["targets"]
    assert target["fieldPaths"] == ["spec.groups.*.rules.*.annotations.runbook_url"]


def test_the_page_has_a_section_for_each_alert_in_their_order() -> None:
    assert HEADING.findall(RUNBOOKS.read_text()) == [rule["alert"] for rule in rules()]


def test_a_summary_uses_labels_that_the_expression_leaves() -> None:
    for rule in rules():
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        read = Read(rule["expr"])
        left = set(read.grouped[0][0]) if read.grouped else labels_of(read.selected[0][0])
        assert used <= left, rule["alert"]


def test_the_board_can_be_loaded() -> None:
    """Ids are given once, no two panels lie on each other, and every query asks the data source that is chosen."""
    everything = BOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells = [
        (x, y)
        for panel in everything
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    names = {each["name"] for each in BOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD))) <= {*names, "__rate_interval"}
    sources = [each["datasource"]["uid"] for panel in panels() for each in (panel, *panel["targets"])]
    assert set(sources) == {"${datasource}"}
    assert all(panel["title"] and panel["description"] for panel in panels())
    assert to_builtins(BOARD)["uid"] == "gang-extender"


def test_the_board_comes_with_the_rules() -> None:
    (overlay,) = yaml.safe_load_all((FOLDER / "kustomization.yaml").read_text())
    (config_map,) = (each for each in overlay["configMapGenerator"] if "files" in each)
    assert config_map["files"] == ["dashboard.json"]
    assert config_map["options"]["labels"] == {"grafana_dashboard": "1"}
