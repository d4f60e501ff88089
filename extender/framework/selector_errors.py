"""What is wrong with a selector, in kube-scheduler's words; an API server lets none of these in.

The plugins refuse a pod by it (InterPodAffinity), or give up on it (PodTopologySpread, NodeAffinity's preferred terms).
Kubernetes: k8s.io/apimachinery/pkg/labels (NewRequirement), k8s.io/component-helpers/scheduling/corev1/nodeaffinity
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from extender.api import corev1
from extender.api.metav1 import LabelSelector
from extender.framework.aggregate import aggregate

NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
ALPHANUMERIC = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
LOWER_CASE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
MAX_NAME, MAX_SUBDOMAIN = 63, 253
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")


class SelectorError(ValueError):
    """A selector that cannot be read; the text is kube-scheduler's."""


def label_selector_error(selector: LabelSelector | None) -> str:
    """The first thing that is wrong, or "". A missing selector is fine: it selects nothing."""
    if selector is None:
        return ""
    for key, value in selector.match_labels.items():
        if problems := [*_key_problems(key, ""), *_value_problems(key, (value,), "")]:
            return aggregate(problems)
    for requirement in selector.match_expressions:
        if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f"{_quoted(requirement.operator)} is not a valid label selector operator"
        if problems := _requirement_problems(requirement.key, requirement.operator, requirement.values, ""):
            return aggregate(problems)
    return ""


def preferred_terms_error(terms: Iterable[corev1.PreferredSchedulingTerm]) -> str:
    """Of all terms that weigh something, everything that is wrong."""
    return aggregate(
        problem
        for index, term in enumerate(terms)
        if term.weight
        for problem in _term_problems(term.preference, f"[{index}]")
    )


def expression_is_readable(requirement: corev1.NodeSelectorRequirement) -> bool:
    """A term with one that is not matches no node. Asked for every node, so kept."""
    return _readable(requirement.key, requirement.operator, requirement.values)


@lru_cache(maxsize=4096)
def _readable(key: str, operator: str, values: tuple[str, ...]) -> bool:
    return operator in NODE_OPERATORS and not _requirement_problems(key, operator, values, "")


def _term_problems(term: corev1.NodeSelectorTerm, path: str) -> Iterable[str]:
    for index, requirement in enumerate(term.match_expressions):
        at = f"{path}.matchExpressions[{index}]"
        if requirement.operator not in NODE_OPERATORS:
            yield _unsupported(f"{at}.operator", requirement.operator, NODE_OPERATORS)
        else:
            yield from _requirement_problems(requirement.key, requirement.operator, requirement.values, at)
    for index, requirement in enumerate(term.match_fields):
        at = f"{path}.matchFields[{index}]"
        if requirement.operator not in FIELD_OPERATORS:
            yield _unsupported(f"{at}.operator", requirement.operator, FIELD_OPERATORS)
        elif len(requirement.values) != 1:
            yield _invalid(f"{at}.values", _listed(requirement.values), "must have one element")


def _requirement_problems(key: str, operator: str, values: tuple[str, ...], path: str) -> list[str]:
    """Of a key, a known operator and its values. Go: labels.NewRequirement."""
    at = _child(path, "values")
    problems = _key_problems(key, path)
    match operator:
        case "In" | "NotIn" if not values:
            problems.append(_invalid(at, "null", "for 'in', 'notin' operators, values set can't be empty"))
        case "Exists" | "DoesNotExist" if values:
            problems.append(_invalid(at, _listed(values), "values set must be empty for exists and does not exist"))
        case "Gt" | "Lt":
            if len(values) != 1:
                wanted = "for 'Gt', 'Lt' operators, exactly one value is required"
                problems.append(_invalid(at, _listed(values), wanted))
            wanted = "for 'Gt', 'Lt' operators, the value must be an integer"
            problems += [
                _invalid(f"{at}[{index}]", _quoted(value), wanted)
                for index, value in enumerate(values)
                if int64(value) is None
            ]
    return problems + _value_problems(key, values, path)


def int64(text: str) -> int | None:
    """As Go's strconv.ParseInt reads a label's value: an optional sign and ASCII digits. None for what is none."""
    if len(text) > MAX_NAME or not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@lru_cache(maxsize=4096)
def _name_problems(name: str) -> tuple[str, ...]:
    problems = []
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > MAX_NAME:
        problems.append(f"name part must be no more than {MAX_NAME} bytes")
    if not re.fullmatch(NAME, name):
        problems.append(f"name part {_must(f'must {ALPHANUMERIC}', NAME, 'MyName', 'my.name', '123-abc')}")
    return tuple(problems)


def _key_problems(key: str, path: str) -> list[str]:
    prefix, slash, name = key.rpartition("/")
    problems: list[str] = []
    if "/" in prefix:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        problems.append(
            f"a valid label key {_must(f'must {ALPHANUMERIC}', NAME, 'MyName', 'my.name', '123-abc')}{optional}"
        )
        return [_invalid(_child(path, "key"), _quoted(key), problems[0])]
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        if len(prefix.encode()) > MAX_SUBDOMAIN:
            problems.append(f"prefix part must be no more than {MAX_SUBDOMAIN} bytes")
        if not re.fullmatch(SUBDOMAIN, prefix):
            problems.append(f"prefix part {_must(LOWER_CASE, SUBDOMAIN, 'example.com')}")
    problems += _name_problems(name)
    return [_invalid(_child(path, "key"), _quoted(key), "; ".join(problems))] if problems else []


def _value_problems(key: str, values: Sequence[str], path: str) -> list[str]:
    at = _child(path, "values")
    found = []
    for index, value in enumerate(values):
        problems = []
        if len(value.encode()) > MAX_NAME:
            problems.append(f"must be no more than {MAX_NAME} bytes")
        if value and not re.fullmatch(NAME, value):
            form = f"a valid label must be an empty string or {ALPHANUMERIC}"
            problems.append(_must(form, f"({NAME})?", "MyValue", "my_value", "12345"))
        if problems:
            found.append(_invalid(f"{at}[{index}][{key}]", _quoted(value), "; ".join(problems)))
    return found


def _must(form: str, regex: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{form} (e.g. {shown}regex used for validation is '{regex}')"


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _listed(values: Sequence[str]) -> str:
    return json.dumps(list(values), separators=(",", ":"), ensure_ascii=False) if values else "null"


def _invalid(path: str, value: str, detail: str) -> str:
    return f"{path}: Invalid value: {value}: {detail}"


def _unsupported(path: str, value: str, supported: Sequence[str]) -> str:
    return f"{path}: Unsupported value: {_quoted(value)}: supported values: {', '.join(map(_quoted, supported))}"
