"""Files that are no YAML, or no sensible one."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config.yaml_file import ConfigurationError, Mistake, read_document


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "f.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_come_with_the_lines_they_stand_on(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "a: 1\nb:\n  - c: x\n  - d: 2021-01-01\n"))
    assert document.value == {"a": 1, "b": [{"c": "x"}, {"d": "2021-01-01"}]}
    assert document.lines["b[1].d"] == 4


def test_an_error_names_the_line_of_the_field_or_of_what_is_around_it(tmp_path: Path) -> None:
    path = written(tmp_path, "a: 1\nb:\n  c: 2\n")
    error = read_document(path).error([Mistake("b.missing", "Required value"), Mistake("a", "bad"), Mistake("", "all")])
    assert str(error) == f"{path}:1: all\n{path}:1: a: bad\n{path}:2: b.missing: Required value"


def test_a_key_that_stands_twice_is_a_mistake(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "a: 1\nb: 2\na: 3\n"))
    assert document.mistakes == [Mistake("a", "Duplicate key")]
    assert document.lines["a"] == 3


def test_merged_keys_may_be_overridden(tmp_path: Path) -> None:
    text = "base: &base {a: 1, b: 2}\none: &one\n  <<: *base\n  b: 3\ntwo: *one\n"
    document = read_document(written(tmp_path, text))
    assert document.mistakes == []
    assert document.value["one"] == document.value["two"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("a: [1, 2\nb: 3\n", 2, id="an open bracket"),
        pytest.param("a: 1\n---\nb: 2\n", 3, id="two documents"),
        pytest.param("a: !!python/object/apply:os.system [ls]\n", 1, id="a tag that builds objects"),
        pytest.param("a: &a [*a]\n", 1, id="a list that contains itself"),
        pytest.param("a: *nothing\n", 1, id="an alias of nothing"),
        pytest.param("x: " + "[" * 100 + "]" * 100, 1, id="a hundred brackets deep"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        read_document(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    "text", ["a: 1\n---\n", "a: 1\n---\n# no more\n---\n", "---\na: 1\n...\n", "a: 1\n---\nnull\n"]
)
def test_empty_documents_may_follow(tmp_path: Path, text: str) -> None:
    assert read_document(written(tmp_path, text)).value == {"a": 1}


@pytest.mark.parametrize("text", ["a: 1\n---\n---\nb: 2\n", "---\n---\n---\na: 1\n"])
def test_a_second_document_with_content_is_told(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        read_document(path)
    assert str(caught.value) == f"{path}:4: expected a single document"


def test_a_small_file_cannot_become_a_large_one(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(ConfigurationError, match="too large"):
        read_document(written(tmp_path, "\n".join(levels)))


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a: \x00"])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError, match=str(path)):
        read_document(path)


def test_an_empty_file_is_an_empty_document(tmp_path: Path) -> None:
    assert read_document(written(tmp_path, "")).value is None
