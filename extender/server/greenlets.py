"""The greenlets that there are, for stacks.py. The worker follows them from its start on.

They are counted as they are spawned: a search of the heap for them would not see those that gc.freeze has put aside.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import gevent
from gevent import Greenlet

from extender.server.stacks import Task

_known: weakref.WeakSet[Greenlet] = weakref.WeakSet()


def follow() -> None:
    """Once in each process, before any is spawned that counts."""
    Greenlet.add_spawn_callback(_known.add)


def greenlets() -> Iterator[Task]:
    """Those that wait: all but the one that asks. Threads of Python's own module go by their names."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for each in list(_known):
        if not each.dead:
            yield Task(names.get(id(each), each.name), each.gr_frame)
    hub = gevent.get_hub()
    yield Task("hub", hub.gr_frame)
