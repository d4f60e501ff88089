"""A progress bar for work that takes long, where standard error is a terminal: what is piped, or over at once, shows none.

Used by simulate and evaluate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int, from_: int) -> Iterator[Callable[[int], None]]:
    """Yields what is called with how many of `total` are done. from_: with fewer there is no bar."""
    if total < from_ or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
