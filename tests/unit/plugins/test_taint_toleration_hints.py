"""What wakes a pod that no node tolerated. kube-scheduler: .../plugins/tainttoleration/taint_toleration_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.plugins.taint_toleration import TaintToleration
from tests.objects import make_node, make_pod
from tests.unit.plugins.wakes import wakes

POD = make_pod().name("refused").toleration("mine", operator="Exists")
PLAIN = make_node().name("n")
THEIRS = PLAIN.taint("theirs")


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, PLAIN, True, id="a new node without taints"),
        pytest.param(None, PLAIN.taint("mine"), True, id="a new node with a taint that is tolerated"),
        pytest.param(None, THEIRS, False, id="a new node with a taint that is not"),
        pytest.param(None, PLAIN.taint("theirs", effect="PreferNoSchedule"), True, id="a taint that only advises"),
        pytest.param(THEIRS, PLAIN, True, id="the taint went"),
        pytest.param(THEIRS, PLAIN.taint("mine"), True, id="a tolerated taint took its place"),
        pytest.param(THEIRS, PLAIN.taint("worse", effect="NoExecute"), False, id="another one took its place"),
        pytest.param(PLAIN, PLAIN.taint("mine"), False, id="a node that was open stays so"),
        pytest.param(PLAIN, THEIRS, False, id="a taint came"),
        pytest.param(POD, POD.toleration("new", operator="Exists"), True, id="the pod tolerates more"),
        pytest.param(
            make_pod().name("other"),
            make_pod().name("other").toleration("theirs", operator="Exists"),
            False,
            id="another pod tolerates more",
        ),
    ],
)
def test_wakes(old: Any, new: Any, woken: bool) -> None:
    assert wakes(TaintToleration(), POD.obj(), old and old.obj(), new and new.obj()) is woken
