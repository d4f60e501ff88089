"""Names by a key: a key without names is forgotten."""

from __future__ import annotations

from extender.framework.index import Index


def test_a_key_has_the_names_that_were_added_and_not_taken_away() -> None:
    index = Index()
    for key, name in (("a", "x"), ("a", "y"), ("b", "x")):
        index.add(key, name)
    index.discard("a", "x")
    assert (index["a"], index["b"], index["c"]) == ({"y"}, {"x"}, set())


def test_nothing_is_left_of_a_key_whose_last_name_goes() -> None:
    index = Index()
    index.add("a", "x")
    index.discard("a", "never there")
    index.discard("never there", "x")
    assert index
    assert list(index.keys()) == ["a"]
    index.discard("a", "x")
    assert not index
    assert not index.keys()
