"""Memory that somebody else fills: compiled and plain do the same."""

from __future__ import annotations

import pytest

from zurau.records.buffers import filled, pure_filled

BOTH = pytest.mark.parametrize("fill_new", [filled, pure_filled])


@BOTH
@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_what_was_filled_is_returned_and_nothing_behind_it(fill_new, count):
    def fill(view: memoryview) -> int:
        view[:count] = b"abcde"[:count]
        return count

    assert fill_new(5, fill) == b"abcde"[:count]


@BOTH
def test_an_error_while_filling_is_raised(fill_new):
    def fail(_: memoryview) -> int:
        raise BlockingIOError

    with pytest.raises(BlockingIOError):
        fill_new(5, fail)


def test_the_memory_cannot_be_changed_once_the_bytes_are_out():
    kept: list[memoryview] = []

    def fill(view: memoryview) -> int:
        kept.append(view)
        view[:] = b"abc"
        return 3

    assert filled(3, fill) == b"abc"
    with pytest.raises(ValueError, match="released"):
        kept[0][0] = 0
