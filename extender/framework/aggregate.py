"""Several errors as one text, as kube-scheduler words them: used by preemption, selectors and `evaluate`.

Kubernetes: k8s.io/apimachinery/pkg/util/errors (Aggregate)
"""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(errors: Iterable[str]) -> str:
    """Each text once; several in brackets, none as nothing."""
    once = list(dict.fromkeys(errors))
    return f"[{', '.join(once)}]" if len(once) > 1 else "".join(once)
