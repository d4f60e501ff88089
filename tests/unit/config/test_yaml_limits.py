"""Small files that would become large ones, or end the process: refused with their line, in clusters and configurations."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.api.codec import DecodeError
from extender.client.embedded.documents import read_documents
from extender.config.yaml_file import ConfigurationError, read_document

NINE = ", ".join(["*a{}"] * 9)


def laughs(levels: int, line: str) -> str:
    """Each level names the one before it nine times."""
    rows = ["kind: Pod", "a0: &a0 {x: 1, y: 2}"]
    rows += [line.format(number, number, *[number - 1] * 9) for number in range(1, levels)]
    return "\n".join(rows) + "\n"


HOSTILE = [
    pytest.param(laughs(12, "a{}: &a{} [" + NINE + "]"), "too large", id="lists of lists by aliases"),
    pytest.param(laughs(12, "a{}: &a{} {{<<: [" + NINE + "]}}"), "too large", id="mappings merged into mappings"),
    pytest.param(laughs(2000, "a{}: &a{} {{b: *a{}}}"), "", id="a chain of aliases"),
    pytest.param("kind: Pod\na: " + "[" * 100_000 + "]" * 100_000, ":2: too deeply nested", id="brackets"),
    pytest.param("kind: Pod\na: " + '{"b":' * 100_000 + "1" + "}" * 100_000, ":2: too deeply nested", id="braces"),
    pytest.param("kind: Pod\na:\n" + "- " * 100_000 + "1", ":3: too deeply nested", id="a list in a list in a list"),
    pytest.param("kind: Pod\n" + "".join(" " * i + "a:\n" for i in range(400)), "too deeply nested", id="indented"),
    pytest.param("kind: Pod\na: &a [*a]", "", id="an alias of what it stands in"),
]


@pytest.mark.parametrize(("text", "said"), HOSTILE)
def test_of_a_cluster(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(DecodeError) as refused:
        read_documents(file)
    assert str(refused.value).startswith(f"{file}:")
    assert said in str(refused.value)


@pytest.mark.parametrize(("text", "said"), HOSTILE)
def test_of_a_configuration(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"too large|too deeply|recursion"):
        read_document(file)


def test_aliases_of_a_few_thousand_values_are_no_harm(tmp_path: Path) -> None:
    """As in a file in which many pods share one spec."""
    pods = "".join(
        f"---\nkind: Pod\nbase: &spec {{a: [1, 2, 3]}}\nspec: *spec\nmore: {{<<: *spec, n: {i}}}\n" for i in range(999)
    )
    file = tmp_path / "cluster.yaml"
    file.write_text(pods)
    found = read_documents(file)
    assert len(found) == 999
    assert found[7].object["more"] == {"a": [1, 2, 3], "n": 7}


def test_brackets_in_texts_do_not_nest(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(f"kind: Pod\na: '{'[' * 5000}'\nb: '{'{' * 5000}'\n")
    (found,) = read_documents(file)
    assert len(found.object["a"]) == 5000
