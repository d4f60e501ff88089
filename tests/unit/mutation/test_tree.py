"""What `make mutants` makes of the tree before mutmut sees it, and what it takes for a change that no test could see."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.mutation.results import Equivalent, Mutant, equivalents, scores
from tests.mutation.tree import PROJECT, configure, unit_tests_of, without_decorators


@pytest.mark.parametrize(
    ("source", "spelt"),
    [
        pytest.param(
            """
            class A:
                @property
                def name(self):
                    return 1

                def plain(self):
                    return 2
            """,
            """
            class A:
                def name(self):
                    return 1
                name = property(name)

                def plain(self):
                    return 2
            """,
            id="a property",
        ),
        pytest.param(
            """
            @first
            @second(
                1,
            )
            def f():
                pass
            """,
            """
            def f():
                pass
            f = first(second(1)(f))
            """,
            id="two decorators, one over several lines",
        ),
        pytest.param("@classmethod\ndef f(cls): ...\n", "@classmethod\ndef f(cls): ...\n", id="one that mutmut knows"),
        pytest.param(
            "@property\n@abc.abstractmethod\ndef f(self): ...\n",
            "@property\n@abc.abstractmethod\ndef f(self): ...\n",
            id="one without a body",
        ),
        pytest.param("@f.setter\ndef f(self, x): ...\n", "@f.setter\ndef f(self, x): ...\n", id="a setter"),
        pytest.param("@dataclass\nclass A:\n    x: int\n", "@dataclass\nclass A:\n    x: int\n", id="a class"),
    ],
)
def test_a_decorator_is_spelt_out(source: str, spelt: str) -> None:
    assert without_decorators(dedent(source)) == dedent(spelt)


def test_what_is_spelt_out_is_the_same_program() -> None:
    source = """
    from contextlib import contextmanager
    class A:
        @property
        def one(self): return 1
        @contextmanager
        def two(self):
            yield 2
    """
    namespace: dict[str, Any] = {}
    exec(without_decorators(dedent(source)), namespace)
    made = namespace["A"]()
    with made.two() as two:
        assert (made.one, two) == (1, 2)


def test_every_file_can_be_spelt_out() -> None:
    for file in (PROJECT / "extender").rglob("*.py"):
        compile(without_decorators(file.read_text()), str(file), "exec")


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        pytest.param(
            ["extender/backend/cache/cache.py"], ["tests/unit/backend/cache"], id="the folder that mirrors it"
        ),
        pytest.param(["extender/profile.py"], ["tests/unit"], id="of a file in no room: all"),
        pytest.param(
            ["extender/backend/cache/cache.py", "extender/backend/no_such_room/x.py"],
            ["tests/unit/backend"],
            id="what lies in another is not named twice",
        ),
    ],
)
def test_the_tests_of_a_file_are_those_of_its_room(files: list[str], tests: list[str]) -> None:
    assert unit_tests_of(files) == tests


def test_mutmut_is_told_which_files_and_which_tests(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[mutmut]\nsource_paths = extender\n")
    for name in ("docs", "extender", "tests"):
        (tmp_path / name).mkdir()
    configure(tmp_path, ["extender/a.py", "extender/b.py"], ["tests/unit/a"])
    assert (tmp_path / "setup.cfg").read_text().split() == [
        "[mutmut]", "source_paths", "=", "extender", "only_mutate", "=", "extender/a.py", "extender/b.py",
        "pytest_add_cli_args_test_selection", "=", "tests/unit/a", "also_copy", "=", "docs", "setup.cfg",
    ]  # fmt: skip


@pytest.mark.parametrize("entry", equivalents(), ids=lambda entry: f"{Path(entry.file).stem}: {entry.removed[:40]}")
def test_a_change_that_no_test_can_see_has_a_reason_and_its_line_is_there(entry: Equivalent) -> None:
    assert len(entry.reason) > 20
    lines = {line.strip() for line in (PROJECT / entry.file).read_text().splitlines()}
    assert set(entry.removed.splitlines()) <= lines


def test_a_score_leaves_out_what_changes_nothing() -> None:
    def mutant(number: int) -> Mutant:
        return Mutant(f"extender.a.x_f__mutmut_{number}", "extender/a.py", "", "", "")

    found = {f"extender.a.x_f__mutmut_{number}": "killed" for number in range(10)}
    found["extender.a.x_f__mutmut_10"] = "skipped"
    [score] = scores(["extender/a.py"], found, [mutant(1)], [mutant(2), mutant(3)])
    assert str(score) == "extender/a.py: 7 of 8 die, 87.5 %; 2 equivalent"
