from __future__ import annotations

import pytest

from zurau.simulation.brokers.fibers import Ended, Fiber


def test_work_goes_from_hold_to_hold_when_it_is_resumed():
    seen = []

    def work() -> str:
        for number in range(2):
            seen.append(number)
            fiber.hold()
        return "done"

    fiber = Fiber(work)
    assert seen == []
    fiber.resume()
    assert (seen, fiber.is_done) == ([0], False)
    fiber.resume()
    fiber.resume()
    assert (seen, fiber.is_done, fiber.value) == ([0, 1], True, "done")


def test_two_pieces_of_work_take_turns_as_they_are_told():
    seen = []

    def work(name: str) -> None:
        seen.append(name)
        fibers[name].hold()
        seen.append(name)

    fibers = {name: Fiber(lambda name=name: work(name)) for name in "ab"}
    for name in "abba":
        fibers[name].resume()
    assert seen == ["a", "b", "b", "a"]


def test_an_error_is_kept_for_whoever_resumed_it():
    def work() -> None:
        raise ValueError("why")

    fiber = Fiber(work)
    fiber.resume()
    with pytest.raises(ValueError, match="why"):
        raise fiber.error


def test_work_of_a_process_that_is_no_more_is_unwound():
    seen = []

    def work() -> None:
        try:
            fiber.hold()
            seen.append("went on")
        finally:
            seen.append("unwound")

    fiber = Fiber(work)
    fiber.resume()
    fiber.end()
    assert (seen, fiber.is_done) == (["unwound"], True)
    assert isinstance(fiber.error, Ended)


def test_work_that_never_began_is_ended_without_a_trace():
    seen = []
    fiber = Fiber(lambda: seen.append("began"))
    fiber.end()
    assert (seen, fiber.is_done) == ([], True)
