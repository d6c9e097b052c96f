from __future__ import annotations

from zurau.broker.producer_ids import BLOCK_IDS, ProducerIds
from zurau.errors import Refused
from zurau.pending import Pending, start
from zurau.wire.kafka.error_codes import ErrorCode


class SlowController:
    """Gives out blocks, when told to."""

    def __init__(self):
        self.asked = []
        self._next_id = 0

    def ask(self, command):
        self.asked.append(Pending())
        return self.asked[-1]

    def answer(self):
        self.asked[-1].resolve((self._next_id, self._next_id + BLOCK_IDS))
        self._next_id += BLOCK_IDS


def test_those_who_wait_for_a_block_share_it():
    controller = SlowController()
    ids = ProducerIds(controller)
    waiting = [start(ids.next()) for _ in range(3)]
    controller.answer()
    assert [pending.result() for pending in waiting] == [0, 1, 2]
    assert len(controller.asked) == 1


def test_a_block_is_asked_for_only_when_the_last_one_is_used_up():
    controller = SlowController()
    ids = ProducerIds(controller)
    first = start(ids.next())
    controller.answer()
    for _ in range(BLOCK_IDS - 1):
        assert start(ids.next()).is_done
    beyond = start(ids.next())
    assert not beyond.is_done
    controller.answer()
    assert (first.result(), beyond.result()) == (0, BLOCK_IDS)


def test_more_waiters_than_a_block_has_ids_are_all_served():
    controller = SlowController()
    ids = ProducerIds(controller)
    waiting = [start(ids.next()) for _ in range(BLOCK_IDS + 1)]
    controller.answer()
    controller.answer()
    assert [pending.result() for pending in waiting] == list(range(BLOCK_IDS + 1))


def test_after_a_refusal_the_controller_is_asked_again():
    controller = SlowController()
    ids = ProducerIds(controller)
    refused = start(ids.next())
    controller.asked[-1].fail(Refused(ErrorCode.KAFKA_STORAGE_ERROR))
    assert refused.is_done
    served = start(ids.next())
    controller.answer()
    assert served.result() == 0
