"""An API server in memory, for first minutes, demos and tests: the same contract as the real one.

Objects are kept as the JSON they came as, and decoded on the way out.
"""

from extender.client.embedded.api import EmbeddedAPI

__all__ = ["EmbeddedAPI"]
