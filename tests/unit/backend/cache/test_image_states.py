"""Which nodes have which image, and that what is said of them is counted once for each change."""

from __future__ import annotations

from typing import Any

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.image_states import ImageStates


def a_node(name: str, **sizes: int) -> corev1.Node:
    images: list[dict[str, Any]] = [{"names": [image], "sizeBytes": size} for image, size in sizes.items()]
    return convert({"metadata": {"name": name}, "status": {"images": images}}, corev1.Node)


def counted(states: ImageStates, node: str) -> dict[str, tuple[int, int]]:
    return {name: (each.size, each.num_nodes) for name, each in states.summaries(node).items()}


def test_the_same_dict_is_given_until_some_node_changes() -> None:
    states = ImageStates()
    states.set_node(a_node("n1", a=10))
    before = states.summaries("n1")
    assert states.summaries("n1") is before
    states.set_node(a_node("n1", a=10))
    assert states.summaries("n1") is before
    states.set_node(a_node("n2", a=10))
    assert counted(states, "n1") == {"a": (10, 2)}


def test_a_node_that_goes_leaves_nothing_behind() -> None:
    states = ImageStates()
    states.set_node(a_node("n1", a=10))
    states.set_node(a_node("n2", a=20, b=5))
    assert counted(states, "n2") == {"a": (10, 2), "b": (5, 1)}
    states.remove_node("n2")
    assert states.summaries("n2") == {}
    assert counted(states, "n1") == {"a": (10, 1)}
    states.remove_node("n1")
    assert not any((states._states, states._names, states._summaries))


def test_nodes_that_are_cloned_together_have_one_summary_of_an_image_that_they_share() -> None:
    """It says how many had the image then: one more node, and the next are told of it."""
    states = ImageStates()
    for name in ("n1", "n2"):
        states.set_node(a_node(name, a=10))
    first, second = states.summaries("n1")["a"], states.summaries("n2")["a"]
    assert first is second
    states.set_node(a_node("n3", a=10))
    assert (first.num_nodes, states.summaries("n3")["a"].num_nodes) == (2, 3)


def test_an_image_that_is_pulled_anew_on_its_only_node_has_its_new_size() -> None:
    states = ImageStates()
    for size in (10, 5000):
        states.set_node(a_node("n1", app=size))
    assert counted(states, "n1") == {"app": (5000, 1)}
    for size in (7, 8):
        states.set_node(a_node("n2", app=size))
    assert counted(states, "n2") == {"app": (5000, 2)}, "as the first node that has it says"
