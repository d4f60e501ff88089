"""What the page shows, computed on one thread for all its viewers while there are any, and told as what changes.

    (no thread) --first viewer--> updates, each with a rest after it in proportion to its work --last viewer goes--> (no thread)

A viewer gets the whole at first and each change after that; one that is too slow for the changes that are kept gets the whole again.
Fulfils interface.Feed; the server asks for it. No counterpart upstream.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from extender import metrics
from extender.api import codec
from extender.crash import guarded
from extender.plugins.coscheduling.report.page.picture import Change, Picture
from extender.scheduler.interface import FeedClosedError, TooManyViewersError

MAX_VIEWERS = 64
MAX_CHANGES = 32  # that are kept for viewers which are behind
LEAST_SECONDS = 0.1  # between two updates
MOST_SECONDS = 5.0
REST = 100  # a rest is so many times as long as the work before it: the page has at most a hundredth of one CPU
AFTER_A_FAULT_SECONDS = 1.0


def rest_after(worked: float) -> float:
    """Seconds, from seconds."""
    return max(LEAST_SECONDS, min(worked * REST, MOST_SECONDS))


class _Edition:
    """One change, or the whole, with its texts: each is encoded once for all viewers of a namespace. version: of the picture by then."""

    def __init__(self, version: int, change: Change) -> None:
        self.version = version
        self._change = change
        self._texts: dict[str, bytes] = {}

    def text(self, namespace: str) -> bytes:
        """Empty where nothing in it is for that namespace."""
        known = self._texts.get(namespace)
        if known is None:
            change = self._change.of_namespace(namespace) if namespace else self._change
            known = self._texts[namespace] = b"" if change.says_nothing else codec.encode(change)
        return known


class ClusterFeed:
    """new_picture: called whenever a first viewer comes, or after a fault. check: raises NotSyncedError before the whole cluster has been
    seen."""

    def __init__(self, new_picture: Callable[[], Picture], check: Callable[[], None]) -> None:
        self._new_picture = new_picture
        self._check = check
        self._changed = threading.Condition()  # guards everything below but _picture, which is the thread's own
        self._viewers: set[ClusterViewer] = set()
        self._version = (
            0  # grows with each change, and never starts again: a viewer's own is never that of another picture
        )
        self._changes: deque[_Edition] = deque(maxlen=MAX_CHANGES)
        self._whole: _Edition | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._picture: Picture | None = None

    def open(self, namespace: str = "") -> ClusterViewer:
        self._check()
        with self._changed:
            if self._stopping:
                raise FeedClosedError
            if len(self._viewers) >= MAX_VIEWERS:
                raise TooManyViewersError(f"{MAX_VIEWERS} look at the page already")
            viewer = ClusterViewer(self, namespace)
            self._viewers.add(viewer)
            if self._thread is None:
                self._start()
        metrics.page_viewers.set(len(self._viewers))
        return viewer

    def stop(self) -> None:
        """Every viewer is told. Harmless a second time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def next(self, viewer: ClusterViewer, seconds: float) -> bytes:
        """Of the viewer alone."""
        until = time.monotonic() + seconds
        while True:
            with self._changed:
                edition = self._edition_for(viewer)
                while edition is None:
                    left = until - time.monotonic()
                    if left <= 0:
                        return b""
                    self._changed.wait(left)
                    edition = self._edition_for(viewer)
            if text := edition.text(viewer.namespace):
                return text

    def close(self, viewer: ClusterViewer) -> None:
        with self._changed:
            self._viewers.discard(viewer)
            self._changed.notify_all()
        metrics.page_viewers.set(len(self._viewers))

    # Under the lock

    def _edition_for(self, viewer: ClusterViewer) -> _Edition | None:
        if self._stopping or viewer not in self._viewers:
            raise FeedClosedError
        behind = not self._changes or self._changes[0].version > viewer.version + 1
        if viewer.version and not (behind and viewer.version < self._version):
            if viewer.version == self._version:
                return None
            viewer.version += 1
            return self._changes[viewer.version - self._changes[0].version]
        viewer.version = 0
        if self._whole is None:
            self._changed.notify_all()  # the thread: a whole is wanted
            return None
        viewer.version = self._whole.version
        return self._whole

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._thread = None
            self._viewers.clear()
            raise

    # The thread

    def _run(self) -> None:
        while not self._ends():
            if not guarded("page", self._turn):
                self._drop_picture()
                with self._changed:
                    self._changed.wait(AFTER_A_FAULT_SECONDS)

    def _ends(self) -> bool:
        """Whether the thread is over: the picture has gone before another thread can begin."""
        if self._has_viewers():
            return False
        self._drop_picture()
        with self._changed:
            if self._has_viewers():
                return False
            self._thread = None
            return True

    def _has_viewers(self) -> bool:
        return bool(self._viewers) and not self._stopping

    def _turn(self) -> None:
        """One update, and the rest after it."""
        if self._picture is None:
            self._picture = self._new_picture()
        picture = self._picture
        before = picture.watch.seconds
        change = picture.update()
        with self._changed:
            if not change.says_nothing:
                self._version += 1
                self._changes.append(_Edition(self._version, change))
                self._whole = None
            wanted = self._whole is None and any(not viewer.version for viewer in self._viewers)
        if wanted:
            whole = picture.whole()
            with self._changed:
                self._version = max(self._version, 1)
                self._whole = _Edition(self._version, whole)
        worked = picture.watch.seconds - before
        metrics.page_work.inc(worked)
        self._rest(worked)

    def _rest(self, worked: float) -> None:
        """A viewer that has just come is not kept waiting."""
        with self._changed:
            self._changed.notify_all()
        time.sleep(LEAST_SECONDS)
        until = time.monotonic() + rest_after(worked) - LEAST_SECONDS
        with self._changed:
            while (left := until - time.monotonic()) > 0 and self._is_content():
                self._changed.wait(left)

    def _is_content(self) -> bool:
        """Lock held. Whether no viewer waits for a whole, and there are any."""
        return self._has_viewers() and all(each.version for each in self._viewers)

    def _drop_picture(self) -> None:
        picture, self._picture = self._picture, None
        with self._changed:
            self._whole = None
            self._changes.clear()
            self._version += 1
        if picture is not None:
            guarded("page", picture.close)


class ClusterViewer:
    """Fulfils interface.Viewer. version: up to which change it has been told; 0: it needs the whole."""

    def __init__(self, feed: ClusterFeed, namespace: str) -> None:
        self._feed = feed
        self.namespace = namespace
        self.version = 0

    def next(self, seconds: float) -> bytes:
        return self._feed.next(self, seconds)

    def close(self) -> None:
        self._feed.close(self)
