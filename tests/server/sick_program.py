"""`serve` with a whole scheduler whose Coscheduling raises at every pod: `python -m tests.server.sick_program '{"port": 1, ...}'`.

Its clock runs 30 times as fast as others. Used by tests/server/test_health.py.
"""

from extender.server import serve  # isort: skip  - patches: everything else comes after

import json
import sys
import time
from typing import Any

from extender.client.embedded import EmbeddedAPI
from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.scheduler import factory
from extender.scheduler.interface import Verbs
from extender.server.options import ServeOptions
from tests.server.test_health import FASTER, SICK


def build(offload: Any) -> Verbs:
    return factory.build(
        ExtenderConfiguration(), EmbeddedAPI(), offload=offload, clock=lambda: FASTER * time.monotonic()
    )


def raises_for_the_sick(pre_filter: Any) -> Any:
    def faulty(self: Coscheduling, state: object, pod: Any, nodes: object) -> Any:
        if pod.name.startswith(SICK):
            raise KeyError("a fault of ours")
        return pre_filter(self, state, pod, nodes)

    return faulty


def main(text: str) -> int:
    setattr(Coscheduling, "pre_filter", raises_for_the_sick(Coscheduling.pre_filter))  # noqa: B010
    return serve.run(build, ServeOptions(**json.loads(text)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
