"""Sorting as Go's `sort.Slice` does it, down to where elements end that neither is less than the other.

Which of several pods of equal priority and start time preemption spares depends on it. Lists of up to twelve elements are
sorted by insertion, longer ones by pattern-defeating quicksort. Go: sort.Slice (package sort)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_INSERTION = 12
NINTHER_FROM = 50
SHIFTING_FROM = 50
MAX_SHIFTS = 5
MAX_MEDIAN_SWAPS = 12
WORD = 2**64 - 1


def sort_slice(items: list[T], less: Callable[[T, T], bool]) -> None:
    """In place. `less` need not be a true order: with one that is not, the outcome is Go's too."""
    _Sorter(items, less).sort(0, len(items), len(items).bit_length())


class _Sorter(Generic[T]):
    """`start` and `end` bound the part that is looked at, the end not included."""

    def __init__(self, items: list[T], less: Callable[[T, T], bool]) -> None:
        self._items = items
        self._is_less = less

    def _less(self, i: int, j: int) -> bool:
        return self._is_less(self._items[i], self._items[j])

    def _swap(self, i: int, j: int) -> None:
        items = self._items
        items[i], items[j] = items[j], items[i]

    def sort(self, start: int, end: int, bad_choices_left: int) -> None:
        balanced = partitioned = True
        while end - start > MAX_INSERTION:
            if bad_choices_left == 0:
                self._heap_sort(start, end)
                return
            if not balanced:
                self._break_patterns(start, end)
                bad_choices_left -= 1
            pivot, swaps = self._choose_pivot(start, end)
            rising = swaps == 0
            if swaps == MAX_MEDIAN_SWAPS:
                self._items[start:end] = self._items[start:end][::-1]
                pivot = end - 1 - (pivot - start)
                rising = True
            if balanced and partitioned and rising and self._nearly_sorted(start, end):
                return
            if start > 0 and not self._less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            middle, partitioned = self._partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= (end - start) // 8
            if left < right:
                self.sort(start, middle, bad_choices_left)
                start = middle + 1
            else:
                self.sort(middle + 1, end, bad_choices_left)
                end = middle
        self._insertion_sort(start, end)

    def _insertion_sort(self, start: int, end: int) -> None:
        for i in range(start + 1, end):
            self._sink(i, start)

    def _sink(self, i: int, stop: int) -> None:
        """Moves an element towards the front for as long as it is less than the one before it."""
        while i > stop and self._less(i, i - 1):
            self._swap(i, i - 1)
            i -= 1

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """(where the pivot ends, whether nothing had to move)."""
        self._swap(start, pivot)
        i, j = self._approach(start, start + 1, end - 1)
        untouched = i > j
        while i <= j:
            self._swap(i, j)
            i, j = self._approach(start, i + 1, j - 1)
        self._swap(j, start)
        return j, untouched

    def _approach(self, pivot: int, i: int, j: int) -> tuple[int, int]:
        while i <= j and self._less(i, pivot):
            i += 1
        while i <= j and not self._less(j, pivot):
            j -= 1
        return i, j

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Elements equal to the pivot to the front; the first that is greater."""
        self._swap(start, pivot)
        i, j = start + 1, end - 1
        while True:
            while i <= j and not self._less(start, i):
                i += 1
            while i <= j and self._less(start, j):
                j -= 1
            if i > j:
                return i
            self._swap(i, j)
            i, j = i + 1, j - 1

    def _nearly_sorted(self, start: int, end: int) -> bool:
        """Puts right what a few moves can; whether it is sorted then."""
        i = start + 1
        for _ in range(MAX_SHIFTS):
            while i < end and not self._less(i, i - 1):
                i += 1
            if i == end:
                return True
            if end - start < SHIFTING_FROM:
                return False
            self._swap(i, i - 1)
            if i - start >= 2:
                self._sink(i - 1, 0)
            if end - i >= 2:
                self._rise(i + 1, end)
        return False

    def _rise(self, i: int, end: int) -> None:
        while i < end and self._less(i, i - 1):
            self._swap(i, i - 1)
            i += 1

    def _break_patterns(self, start: int, end: int) -> None:
        length = end - start
        random, mask = length, (1 << length.bit_length()) - 1
        middle = start + length // 4 * 2
        for i in (middle - 1, middle, middle + 1):
            random = _xorshift(random)
            other = random & mask
            self._swap(i, start + (other - length if other >= length else other))

    def _choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """(the pivot, how many swaps the median took: none hints at a rising list, all at a falling one)."""
        length = end - start
        quarters = [start + length // 4 * n for n in (1, 2, 3)]
        swaps = 0
        if length >= NINTHER_FROM:
            for n, at in enumerate(quarters):
                quarters[n], more = self._median(at - 1, at, at + 1)
                swaps += more
        pivot, more = self._median(*quarters)
        return pivot, swaps + more

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        swaps = 0
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        if self._less(c, b):
            b, c, swaps = c, b, swaps + 1
        if self._less(b, a):
            a, b, swaps = b, a, swaps + 1
        return b, swaps

    def _heap_sort(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, end: int, first: int) -> None:
        while (child := 2 * root + 1) < end:
            if child + 1 < end and self._less(first + child, first + child + 1):
                child += 1
            if not self._less(first + root, first + child):
                return
            self._swap(first + root, first + child)
            root = child


def _xorshift(value: int) -> int:
    value ^= value << 13 & WORD
    value ^= value >> 7
    return value ^ (value << 17 & WORD)
