"""`serve` with the fake verbs, as a process of its own: `python -m tests.server.program '{"port": 1, ...}'`.

Used by tests/server/service.py.
"""

from extender.server import serve  # isort: skip  - patches: everything else comes after

import json
import sys

from extender.server.options import ServeOptions
from tests.fakes.verbs import FakeVerbs


def main(text: str) -> int:
    options = json.loads(text)
    options["allowed_client_names"] = tuple(options.get("allowed_client_names", ()))
    return serve.run(FakeVerbs, ServeOptions(**options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
