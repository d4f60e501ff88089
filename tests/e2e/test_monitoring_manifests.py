"""manifests/monitoring as kustomize renders it: the base of the runbooks is one setting."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.e2e.control_plane import MANIFESTS, ControlPlane

SHIPPED = "https://gang-extender.example.com/runbooks.html"
OWN = "https://wiki.example.com/on-call/gangs"


@pytest.mark.parametrize("page", [SHIPPED, OWN], ids=["as shipped", "set"])
def test_the_runbook_of_each_alert_is_a_url_below_the_page_that_is_set(
    plane: ControlPlane, tmp_path: Path, page: str
) -> None:
    folder = tmp_path / "monitoring"
    shutil.copytree(MANIFESTS / "monitoring", folder)
    file = folder / "kustomization.yaml"
    file.write_text(file.read_text().replace(SHIPPED, page))
    text = plane.kubectl("kustomize", str(folder))
    (rules,) = (each for each in yaml.safe_load_all(text) if each["kind"] == "PrometheusRule")
    found = [rule for group in rules["spec"]["groups"] for rule in group["rules"]]
    assert {rule["alert"]: rule["annotations"]["runbook_url"] for rule in found} == {
        rule["alert"]: f"{page}#{rule['alert'].lower()}" for rule in found
    }
    assert found
    assert "gang-extender-runbooks" not in text
