"""Items that are made ahead by another thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pyspark_zurau.reading.prefetch import DEPTH, prefetch


def test_items_come_in_their_order():
    assert list(prefetch(iter(range(1000)))) == list(range(1000))


def test_what_went_wrong_comes_after_the_items_before_it():
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("damaged")

    ahead = prefetch(items())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="damaged"):
        next(ahead)


def test_items_are_made_while_nobody_takes_any():
    made, enough = [], threading.Event()

    def items() -> Iterator[int]:
        for number in range(DEPTH + 1):
            made.append(number)
            if len(made) > DEPTH:
                enough.set()
            yield number

    ahead = prefetch(items())
    next(ahead)
    assert enough.wait(30)
    assert list(ahead) == list(range(1, DEPTH + 1))


def test_leaving_early_ends_the_thread_and_closes_the_items():
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            while True:
                yield 0
        finally:
            closed.set()

    ahead = prefetch(items())
    next(ahead)
    ahead.close()
    assert closed.is_set()
    assert "zurau-ahead" not in [thread.name for thread in threading.enumerate()]
