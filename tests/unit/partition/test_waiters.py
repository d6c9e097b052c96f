"""Who waits for which offset."""

from __future__ import annotations

import pytest

from zurau.partition.waiters import Waiters


def test_those_at_or_below_the_high_watermark_are_released():
    waiters = Waiters()
    low, high = waiters.wait(5), waiters.wait(9)

    waiters.release(5)

    assert (low.is_done, high.is_done) == (True, False)
    assert len(waiters) == 1


def test_a_wait_that_was_given_up_leaves_nothing_behind():
    waiters = Waiters()
    for _ in range(1000):
        waiters.forget(7, waiters.wait(7))

    assert len(waiters) == 0
    assert len(waiters._offsets) == 1


def test_a_wait_for_the_same_offset_works_after_the_others_gave_up():
    waiters = Waiters()
    waiters.forget(7, waiters.wait(7))
    waiting = waiters.wait(7)

    waiters.release(7)

    assert waiting.is_done


def test_everyone_fails_when_the_partition_is_gone():
    waiters = Waiters()
    waiting = waiters.wait(3)

    waiters.fail_all(RuntimeError("gone"))

    with pytest.raises(RuntimeError, match="gone"):
        waiting.result()


def test_a_released_waiter_may_wait_again_from_its_callback():
    waiters = Waiters()
    again = []
    waiters.wait(1).then(lambda _: again.append(waiters.wait(2)))

    waiters.release(1)
    assert not again[0].is_done
    waiters.release(2)

    assert again[0].is_done
