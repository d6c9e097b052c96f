"""Answers that are not there yet."""

from __future__ import annotations

import pytest

from zurau.pending import Pending, Running, all_of, any_of, done, start


def test_a_coroutine_that_waits_for_nothing_is_done_at_once():
    async def answer() -> int:
        return 42

    assert start(answer()).result() == 42


def test_a_coroutine_goes_on_when_what_it_awaits_arrives():
    awaited: Pending[int] = Pending()

    async def answer() -> int:
        return 1 + await awaited

    outcome = start(answer())
    assert not outcome.is_done

    awaited.resolve(41)

    assert outcome.result() == 42


def test_an_awaited_failure_is_raised_where_it_is_awaited():
    awaited: Pending[int] = Pending()

    async def answer() -> str:
        try:
            await awaited
        except ValueError as error:
            return f"caught {error}"
        return "nothing caught"

    outcome = start(answer())
    awaited.fail(ValueError("bad"))

    assert outcome.result() == "caught bad"


def test_an_error_in_a_coroutine_is_kept_for_whoever_asks():
    async def answer() -> int:
        raise KeyError("lost")

    with pytest.raises(KeyError):
        start(answer()).result()


def test_only_the_first_value_counts():
    pending: Pending[str] = Pending()

    pending.resolve("event")
    pending.fail(TimeoutError())
    pending.resolve("deadline")

    assert pending.result() == "event"


def test_whoever_waits_is_called_in_the_order_of_waiting():
    pending: Pending[None] = Pending()
    called: list[int] = []
    for number in range(3):
        pending.then(lambda _, number=number: called.append(number))

    pending.resolve(None)

    assert called == [0, 1, 2]


def test_any_of_is_done_with_the_first_and_all_of_with_the_last():
    first: Pending[None] = Pending()
    second: Pending[None] = Pending()
    one, every = any_of([first, second]), all_of([first, second])

    first.resolve(None)
    assert (one.is_done, every.is_done) == (True, False)

    second.resolve(None)
    assert every.is_done


def test_all_of_nothing_is_done_at_once():
    assert all_of([]).is_done
    assert all_of([done(1), done(2)]).is_done


def test_a_coroutine_that_is_ended_gives_back_what_it_holds_and_goes_no_further():
    awaited: Pending[None] = Pending()
    held, reached = ["a wait"], []

    async def answer() -> None:
        try:
            await awaited
            reached.append("the end")
        finally:
            held.clear()

    outcome = start(answer())
    outcome.then(lambda _: reached.append("a callback"))
    outcome.end()
    awaited.resolve(None)

    assert (held, reached, outcome.is_done) == ([], [], False)


def test_a_coroutine_that_is_ended_by_what_it_does_itself_stops_at_its_next_wait():
    reached: list[str] = []

    async def answer() -> None:
        await first
        outcome.end()
        reached.append("what was begun")
        await Pending()

    first: Pending[None] = Pending()
    outcome = start(answer())
    first.resolve(None)

    assert (reached, outcome.is_done) == (["what was begun"], False)


def test_whoever_resumes_decides_when_a_coroutine_goes_on():
    awaited: Pending[int] = Pending()
    ready: list[Running[int]] = []

    async def answer() -> int:
        return await awaited

    outcome = start(answer(), ready.append)
    awaited.resolve(42)
    assert not outcome.is_done

    ready[0].advance()

    assert outcome.result() == 42


def test_what_is_ended_can_be_ended_again():
    async def answer() -> int:
        return 42

    finished, plain = start(answer()), Pending()
    finished.end()
    plain.end()

    assert finished.result() == 42


def test_a_broken_invariant_is_raised_at_once_and_waits_for_nobody_to_ask():
    awaited: Pending[None] = Pending()

    async def answer() -> None:
        await awaited
        raise AssertionError("broken")

    start(answer())
    with pytest.raises(AssertionError, match="broken"):
        awaited.resolve(None)


def test_an_invariant_that_breaks_before_anything_is_awaited_is_raised_by_the_start():
    async def answer() -> None:
        raise AssertionError("broken")

    with pytest.raises(AssertionError, match="broken"):
        start(answer())
