"""What `gang-extender demo` says to type next can be typed where it was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.cli import demo


@pytest.mark.parametrize(
    ("program", "typed"),
    [
        pytest.param(".venv/bin/gang-extender", ".venv/bin/gang-extender", id="by its path, as from `make demo`"),
        pytest.param("on-path/gang-extender", "gang-extender", id="found by $PATH"),
        pytest.param("extender/cli/main.py", "gang-extender", id="python -m"),
    ],
)
def test_the_command_as_it_was_typed(program: str, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "on-path" / "gang-extender"
    file.parent.mkdir()
    file.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(file.parent))
    assert demo.as_typed(program) == typed


@pytest.mark.parametrize(("keep", "expected"), [(True, True), (False, False)])
def test_the_ports_of_the_documentation_are_taken_where_they_are_free_and_asked_for(
    keep: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_is_free", lambda port: True)
    assert (demo._ports(keep=keep) == (8888, 8889)) is expected
    monkeypatch.setattr(demo, "_is_free", lambda port: port != 8889)
    assert demo._ports(keep=keep) != (8888, 8889)
