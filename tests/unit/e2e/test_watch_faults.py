"""What befalls the lines of a watch in a fault run."""

from __future__ import annotations

import random

from tests.e2e.watch_faults import WatchFaults

LINES = [b'{"type":"MODIFIED","object":{"n":%d}}' % number for number in range(50)]
STREAM = b"".join(line + b"\n" for line in LINES)


def test_without_a_share_the_lines_are_as_they_came_however_they_were_cut_into_pieces() -> None:
    faults = WatchFaults(random.Random(1), 0)
    pieces = [STREAM[at : at + 7] for at in range(0, len(STREAM), 7)]
    assert b"".join(map(faults.treat, pieces)) == STREAM


def test_lines_come_twice_or_change_places_and_none_is_lost() -> None:
    treated = WatchFaults(random.Random(1), 0.5).treat(STREAM).splitlines()
    assert set(treated) == set(LINES)
    assert len(treated) > len(LINES)
    assert list(dict.fromkeys(treated)) != LINES


def test_bookmarks_are_lost_and_nothing_else() -> None:
    bookmark = b'{"type":"BOOKMARK","object":{}}\n'
    treated = WatchFaults(random.Random(1), 1).treat(bookmark * 3 + LINES[0] + b"\n")
    assert set(treated.splitlines()) == {LINES[0]}


def test_the_rest_of_a_line_waits_for_its_end() -> None:
    faults = WatchFaults(random.Random(1), 0)
    assert faults.treat(b"abc") == b""
    assert faults.treat(b"def\n") == b"abcdef\n"
