"""Which toleration tolerates which taint. Kubernetes: k8s.io/api/core/v1/toleration_test.go"""

from __future__ import annotations

import pytest

from extender.api.corev1 import Taint, Toleration


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration("gen", "Equal", "3", "NoSchedule"), True, id="all the same"),
        pytest.param(Toleration("gen", "", "3"), True, id="no operator is Equal, no effect is every effect"),
        pytest.param(Toleration("gen", "Equal", "2"), False, id="another value"),
        pytest.param(Toleration("gen", "Equal", "3", "NoExecute"), False, id="another effect"),
        pytest.param(Toleration("zone", "Equal", "3"), False, id="another key"),
        pytest.param(Toleration("gen", "Exists"), True, id="any value"),
        pytest.param(Toleration("", "Exists"), True, id="everything"),
        pytest.param(Toleration("", "Exists", "", "NoExecute"), False, id="everything of another effect"),
        pytest.param(Toleration("", "Equal", "3"), True, id="without a key the value alone is compared"),
        pytest.param(Toleration("gen", "Gt", "2"), False, id="Gt is behind a gate that is off"),
        pytest.param(Toleration("gen", "Lt", "4"), False, id="Lt is behind a gate that is off"),
        pytest.param(Toleration("gen", "Near", "3"), False, id="no such operator"),
    ],
)
def test_tolerates(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(Taint("gen", "3", "NoSchedule")) is tolerated
