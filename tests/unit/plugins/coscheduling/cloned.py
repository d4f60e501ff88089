"""How many nodes a question clones: what it costs, apart from the machine that it is asked on."""

from __future__ import annotations

import pytest

from extender.framework.node_info import NodeInfo


def counted_clones(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of each node that is cloned from now on."""
    cloned: list[str] = []
    clone = NodeInfo.clone

    def counted(self: NodeInfo) -> NodeInfo:
        cloned.append(self.name)
        return clone(self)

    monkeypatch.setattr(NodeInfo, "clone", counted)
    return cloned
