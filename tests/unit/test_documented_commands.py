"""Each block of commands in README, docs/ and CONTRIBUTING is run by a test, or stands in a short list with the reason why not."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.documented import BESIDE_PAGES, PAGES, PROJECT, PROMPT, Block, blocks
from tests.documented_commands import MAKE, NOT_RUN, RUN_BY, all_shell_blocks, blocks_run_by, keys_of

LANGUAGES = re.compile(r"sh|text|yaml|json|mermaid|\{\w+\}")
ASSIGNED = re.compile(r"\w+=\S*")


def named(block: Block) -> str:
    return f"{block.page.relative_to(PROJECT)}: {block.first_line}"


@pytest.mark.parametrize("page", [*PAGES, *BESIDE_PAGES], ids=lambda page: str(page.relative_to(PROJECT)))
def test_each_block_says_what_it_is(page: Path) -> None:
    """So that no command hides in one that nothing looks at."""
    unmarked = [block.first_line for block in blocks(page) if not LANGUAGES.fullmatch(block.language)]
    assert [line for line in unmarked if not line.startswith(PROMPT)] == []


@pytest.mark.parametrize("block", all_shell_blocks(), ids=named)
def test_a_block_of_commands_is_in_one_row(block: Block) -> None:
    assert len(keys_of(block)) == 1


@pytest.mark.parametrize("key", [*RUN_BY, *NOT_RUN], ids=": ".join)
def test_a_row_is_about_one_block(key: tuple[str, str]) -> None:
    assert len([block for block in all_shell_blocks() if key in keys_of(block)]) == 1


@pytest.mark.parametrize("test", sorted(set(RUN_BY.values())))
def test_the_test_of_a_row_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^def {name}\(", (PROJECT / "tests" / file).read_text(), re.MULTILINE)


def commands() -> list[str]:
    lines = [line.partition("#")[0].strip() for block in blocks_run_by(MAKE) for line in block.text.splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


@pytest.mark.parametrize("command", commands())
def test_make_and_pytest_know_what_they_are_given(command: str) -> None:
    """What they do then is what CI does; here make only says which commands it would run."""
    words = [word for word in shlex.split(command) if word != "..."]
    variables = [word for word in words if ASSIGNED.fullmatch(word)]
    program, *rest = [word for word in words if word not in variables]
    if program == "make":
        done = subprocess.run(
            ["make", "-n", *rest, *variables], cwd=PROJECT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert (program, rest[:2]) == (".venv/bin/python", ["-m", "pytest"])
        assert [word for word in rest[2:] if not word.startswith("-") and not (PROJECT / word).exists()] == []
