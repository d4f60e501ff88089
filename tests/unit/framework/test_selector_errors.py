"""What kube-scheduler says of selectors that cannot be read."""

from __future__ import annotations

import pytest

from extender.api import corev1
from extender.api.metav1 import LabelSelector, LabelSelectorRequirement
from extender.framework.selector_errors import label_selector_error, preferred_terms_error

ALPHANUMERIC = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
)
NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


def _selector(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))


def test_a_selector_that_can_be_read_is_fine() -> None:
    for selector in (None, LabelSelector(), LabelSelector({"example.com/app": ""}), _selector("app", "In", "web")):
        assert label_selector_error(selector) == ""


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param(
            _selector("app", "Is", "web"), '"Is" is not a valid label selector operator', id="unknown operator"
        ),
        pytest.param(
            _selector("app", "In"),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no value to be in",
        ),
        pytest.param(
            _selector("app", "Exists", "web", "db"),
            'values: Invalid value: ["web","db"]: values set must be empty for exists and does not exist',
            id="values to exist with",
        ),
        pytest.param(
            LabelSelector({"app": "-"}),
            f'values[0][app]: Invalid value: "-": a valid label must be an empty string or {ALPHANUMERIC}'
            f"'MyValue',  or 'my_value',  or '12345', regex used for validation is '({NAME})?')",
            id="no label's value",
        ),
        pytest.param(
            _selector("a/b/c", "Exists"),
            f"key: Invalid value: \"a/b/c\": a valid label key must {ALPHANUMERIC}'MyName',  or 'my.name',  or '123-abc', "
            f"regex used for validation is '{NAME}') with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
            id="no label's key",
        ),
        pytest.param(
            _selector("/" + "n" * 64, "Exists"),
            f'key: Invalid value: "/{"n" * 64}": prefix part must be non-empty; name part must be no more than 63 bytes',
            id="an empty prefix, a long name",
        ),
    ],
)
def test_a_label_selector_that_cannot(selector: LabelSelector, text: str) -> None:
    assert label_selector_error(selector) == text


def test_all_that_is_wrong_with_preferred_terms_that_weigh_something() -> None:
    broken = corev1.NodeSelectorTerm(
        match_expressions=(
            corev1.NodeSelectorRequirement("gen", "Gt", ("1_0",)),
            corev1.NodeSelectorRequirement("gen", "Is", ()),
        ),
        match_fields=(corev1.NodeSelectorRequirement("metadata.name", "In", ("n1", "n2")),),
    )
    terms = [corev1.PreferredSchedulingTerm(0, broken), corev1.PreferredSchedulingTerm(1, broken)]
    assert preferred_terms_error(terms[:1]) == ""
    assert preferred_terms_error(terms) == (
        "[[1].matchExpressions[0].values[0]: Invalid value: \"1_0\": for 'Gt', 'Lt' operators, the value must be an integer, "
        '[1].matchExpressions[1].operator: Unsupported value: "Is": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", '
        '[1].matchFields[0].values: Invalid value: ["n1","n2"]: must have one element]'
    )
