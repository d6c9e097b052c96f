"""Whose work is next."""

from __future__ import annotations

import pytest

from zurau.errors import Refused
from zurau.partition.fair_queue import FairOrder, FairQueue
from zurau.partition.unpacking import SMALL_BYTES, Unpacking
from zurau.records.compression import TooLarge
from zurau.simulation.world import make_world
from zurau.wire.kafka.error_codes import ErrorCode

LONG_MS = 1000


@pytest.fixture
def workers(disk, clock):
    return make_world(disk, clock).workers


@pytest.fixture
def queue(workers) -> FairQueue:
    return FairQueue(workers)


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def ask(queue, done):
    """Has a word written down when its turn comes."""
    return lambda client, word: queue.run(client, lambda: done.append(word))


def test_a_client_with_one_piece_does_not_wait_for_all_of_somebody_who_has_many(ask, clock, done):
    for number in range(5):
        ask("many", f"m{number}")
    ask("one", "o")
    clock.advance(LONG_MS)
    assert done == ["m0", "o", "m1", "m2", "m3", "m4"]


def test_clients_take_turns(ask, clock, done):
    for word in ("a1", "a2", "a3", "b1", "b2", "b3"):
        ask(word[0], word)
    clock.advance(LONG_MS)
    assert done == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_one_who_comes_anew_goes_before_those_who_had_their_turn(ask, clock, done):
    for client in ("a", "b", "c"):
        ask(client, client).then(lambda _, client=client: ask(client, client))
    ask("c", "c").then(lambda _: ask("new", "new"))
    clock.advance(LONG_MS)
    assert done == ["a", "b", "c", "c", "a", "b", "new", "c"]


def test_work_of_somebody_who_has_gone_is_not_begun(ask, clock, done):
    ask("a", "first")
    gone = ask("b", "gone")
    ask("c", "last")
    gone.resolve(None)
    clock.advance(LONG_MS)
    assert done == ["first", "last"]


def test_a_failure_reaches_whoever_asked_and_nobody_else(queue, ask, clock, done):
    failed = queue.run("a", lambda: {}[0])
    ask("b", "fine")
    clock.advance(LONG_MS)
    assert (type(failed.error), done) == (KeyError, ["fine"])


def test_a_closed_queue_tells_those_who_wait_and_those_who_come(ask, queue, clock):
    ask("a", "first")
    waiting = ask("a", "second")
    queue.close(lambda: Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "stopping"))
    assert "stopping" in str(waiting.error)
    assert "stopping" in str(ask("b", "late").error)


def test_what_unpacks_to_more_than_it_seemed_goes_on_where_more_is_allowed(workers, clock):
    limits: list[int] = []

    def work(limit_bytes: int) -> str:
        limits.append(limit_bytes)
        if limit_bytes <= SMALL_BYTES:
            raise TooLarge("more")
        return "done"

    outcome = Unpacking(workers).run("a", work)
    clock.advance(LONG_MS)
    assert outcome.result() == "done"
    assert limits[0] == SMALL_BYTES < limits[1]


def test_short_work_passes_by_what_takes_long(workers, clock):
    unpacking, done = Unpacking(workers), []
    for number in range(100):
        unpacking.run(number, lambda _: done.append("long"), likely_bytes=2 * SMALL_BYTES)
    unpacking.run("other", lambda _: done.append("short"))
    clock.advance(LONG_MS)
    assert done.index("short") <= 1


def test_whoever_asks_is_told_whose_piece_is_next():
    order = FairOrder()
    assert not order.is_next("a")
    order.add("a", "first")
    assert (order.is_next("a"), order.is_next("b")) == (True, False)


def test_pieces_of_a_kind_can_be_taken_out_of_their_turn():
    order: FairOrder[int] = FairOrder()
    for piece in range(6):
        order.add("anybody", piece)
    assert order.take(lambda piece: piece % 2 == 0) == [0, 2, 4]
    assert [order.next()[1] for _ in range(len(order))] == [1, 3, 5]


def test_pieces_of_a_kind_are_taken_together_and_the_others_keep_their_turns():
    order = FairOrder()
    for client, piece in (("a", "a1"), ("a", "b1"), ("b", "a2"), ("b", "b2")):
        order.add(client, piece)

    def is_wanted(piece: str) -> bool:
        return piece.startswith("a")

    assert (order.count(is_wanted), order.take(is_wanted)) == (2, ["a1", "a2"])
    assert [order.next(), order.next()] == [("a", "b1"), ("b", "b2")]


def test_a_client_that_is_busy_is_passed_over_and_keeps_its_turn():
    order: FairOrder[str] = FairOrder()
    for piece in ("a1", "b1", "a2"):
        order.add(piece[0], piece)
    assert order.next(lambda client: client == "a") == ("b", "b1")
    assert order.next(lambda client: client == "a") is None
    assert [order.next(), order.next(), order.next()] == [("a", "a1"), ("a", "a2"), None]


def test_a_client_whose_pieces_were_all_taken_has_no_turn():
    order: FairOrder[str] = FairOrder()
    for piece in ("a1", "b1"):
        order.add(piece[0], piece)
    assert order.take(lambda piece: piece == "a1") == ["a1"]
    assert [order.next(), order.next()] == [("b", "b1"), None]
