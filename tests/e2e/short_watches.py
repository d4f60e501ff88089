"""`gang-extender` whose watches last fewer seconds, and their back-off likewise: `python -m tests.e2e.short_watches 5 serve ...`.

What the end of a watch or its silence leads to is seen within seconds then, of every kind at once, and one test's failures do not
make the next one wait. Used by test_lines.
"""

from extender.server import serve as serve  # isort: skip  - patches: everything else comes after

import sys

from extender.cli import main as command
from extender.client import backoff, informer
from extender.retry import Retry

if __name__ == "__main__":
    setattr(informer, "WATCH_SECONDS", float(sys.argv[1]))  # noqa: B010
    backoff.RETRY = Retry(0.2, 1.0)
    sys.exit(command.main(sys.argv[2:]))
