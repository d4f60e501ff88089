"""Comments, names and pages have a thing of the field as their subject: a member, a gang, a node, a preemptor, kube-scheduler.

"Who may start" leaves a reader to guess: a pod, a group, or a replica of ours? Users, tenants, owners and operators are people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.documented import PROJECT

WITHOUT_A_SUBJECT = [
    "whoever",
    "whomever",
    "somebody",
    "nobody",
    "everybody",
    "anybody",
    "someone",
    "anyone",
    "everyone",
    "whom",
    "who",
]
PEOPLE = ["user", "tenant", "owner", "operator"]
FOUND = re.compile(
    rf"(?<!\w)(?:{'|'.join(WITHOUT_A_SUBJECT)}|no[ _]one)(?!\w)"  # words of a sentence
    rf"|_(?:{'|'.join(WITHOUT_A_SUBJECT)})(?=_|\b)"  # words of a name
    r"|(?<![\w'])Whose\b",  # a sentence; within one, `pods whose room is free` is plain
    re.IGNORECASE,
)
NO_NOUN = re.compile(
    r"\bwhose(?: \w+)? (?:it|they) (?:is|are|was|were)\b"  # `whose turn it is`: the pods that are due
    r"|\bwhose\b(?=\s*[=,.:;)\]])",  # the name of a variable
    re.IGNORECASE,
)
BEGUN_BY = re.compile(r"(?<!\w)(?:nobody|somebody|everybody|anybody)_\w+", re.IGNORECASE)  # the name of a variable
HEARING = re.compile(r"\b(?:hears?|heard)\b", re.IGNORECASE)
"""A pod has a message, and a program is told: where users read, neither hears."""
FOR_USERS = ["README.md", "SECURITY.md", "docs/*.md", "docs/tasks/*.md", "manifests/**/*", "extender/cli/*.py"]
PERSON = re.compile(rf"\b(?:{'|'.join(PEOPLE)})s?[ _]who$", re.IGNORECASE)
READ = [
    "extender/**/*.py",
    "tests/**/*.py",
    "tests/**/*.go",
    "docs/**/*.md",
    "manifests/**/*",
    "README.md",
    "CONTRIBUTING.md",
    "Makefile",
    "setup.cfg",
]


def without_a_subject(text: str) -> list[str]:
    """The words that name no thing, each once for each place where it stands."""
    found = []
    for match in FOUND.finditer(text):
        before = text[max(0, match.start() - 20) : match.end()]
        if not (PERSON.search(before) or match.group() == "whose"):
            found.append(match.group())
    return found + BEGUN_BY.findall(text) + NO_NOUN.findall(text)


def files(patterns: Sequence[str] = READ) -> Iterator[Path]:
    for pattern in patterns:
        yield from (file for file in sorted(PROJECT.glob(pattern)) if file.is_file() and file != Path(__file__))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("Nobody is evicted.", ["Nobody"], id="a sentence"),
        pytest.param("def test_who_waits_is_told() -> None:", ["_who"], id="the name of a test"),
        pytest.param("nobody_yet = True", ["nobody_yet"], id="the name of a variable"),
        pytest.param("Whose time has come is planned.", ["Whose"], id="a sentence that begins so"),
        pytest.param("pods whose room is free", [], id="a relative clause of a thing"),
        pytest.param("pods whose turn it is", ["whose turn it is"], id="a clause that says of no thing what it does"),
        pytest.param("whose = (role, name)", ["whose"], id="a variable that is named after no thing"),
        pytest.param("a tenant who may create pods", [], id="a person"),
        pytest.param("whole gangs, GangExtenderNobodyLeads", [], id="part of a word, and an alert's name"),
    ],
)
def test_what_is_found(text: str, found: list[str]) -> None:
    assert without_a_subject(text) == found


def test_every_sentence_and_every_name_has_a_subject() -> None:
    found = [
        f"{file.relative_to(PROJECT)}:{number}: {' '.join(words)}"
        for file in files()
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (words := without_a_subject(line))
    ]
    assert found == []


def test_where_users_read_no_pod_hears() -> None:
    found = [
        f"{file.relative_to(PROJECT)}:{number}: {' '.join(words)}"
        for file in files(FOR_USERS)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (words := HEARING.findall(line))
    ]
    assert found == []
