"""The three policies, by Koordinator's words."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.field_errors import FieldError
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy, parse_match_policy


@pytest.mark.parametrize("policy", MatchPolicy)
def test_each_is_read_by_its_word(policy: MatchPolicy) -> None:
    assert parse_match_policy(policy.value) is policy


@pytest.mark.parametrize("text", ["", "only_waiting", "ONCE-SATISFIED", "waiting-and-running "])
def test_no_other_word_is_one(text: str) -> None:
    with pytest.raises(FieldError, match='supported values: "only-waiting", "waiting-and-running", "once-satisfied"'):
        parse_match_policy(text)
