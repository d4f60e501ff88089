"""The parity corpus: clusters, and what the real Go plugins of kube-scheduler 1.36.3 answered for them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]
DATA = Path(__file__).parent / "data"


def read(name: str) -> list[Json]:
    with gzip.open(DATA / name) as file:
        loaded: list[Json] = json.load(file)
    return loaded


def scenarios() -> list[tuple[Json, Json]]:
    return list(zip(read("scenarios.json.gz"), read("expected.json.gz"), strict=True))
