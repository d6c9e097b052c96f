"""Which id a directory gets that joins the cluster."""

from __future__ import annotations

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.errors import Refused
from zurau.ids import BrokerId
from zurau.log.settings import LogSettings
from zurau.machines.controller.commands import RegisterBroker, ReserveBrokerId
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import PEER_LISTENER, RESERVED_IDS_MAX, Listener
from zurau.machines.controller.records import encode_record
from zurau.machines.controller.snapshot import freeze
from zurau.settings import INT32_MAX
from zurau.wire.kafka.error_codes import ErrorCode

LONG_AFTER_MS = 1_000_000


class Registry:
    def __init__(self) -> None:
        self.controller = Controller(BrokerSettings(), LogSettings())
        self._offset = 0

    def ask(self, command, now_ms: int = 0):
        decision = self.controller.decide(1, command, now_ms)
        for record in decision.records:
            self.controller.apply(record, self._offset)
            self._offset += 1
        ((_, reply),) = decision.replies
        if isinstance(reply, Refused):
            raise reply
        return reply

    def register(self, broker: int, directory: bytes, host: str = "") -> None:
        listeners = (Listener(PEER_LISTENER, host, 9192),) if host else ()
        self.ask(RegisterBroker(BrokerId(broker), directory * 16, directory * 16, listeners))


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.register(1, b"a", "host1")
    return registry


def reserve(directory: bytes, wanted: int = -1, host: str = "") -> ReserveBrokerId:
    return ReserveBrokerId(directory * 16, BrokerId(wanted), host, 9192)


def test_ids_are_given_out_one_after_the_other_and_a_directory_keeps_its_own(registry):
    assert [registry.ask(reserve(directory)) for directory in (b"b", b"c", b"b")] == [2, 3, 2]
    registry.register(2, b"b")
    assert [registry.ask(reserve(directory)) for directory in (b"b", b"d")] == [2, 4]


def test_an_id_that_is_wanted_is_given_unless_somebody_has_it(registry):
    assert registry.ask(reserve(b"b", wanted=7)) == 7
    for taken in (1, 7):
        with pytest.raises(Refused, match="is in use by another directory"):
            registry.ask(reserve(b"c", wanted=taken))


def test_who_comes_with_an_empty_disk_to_the_place_of_a_broker_that_is_gone_is_that_broker(registry):
    with pytest.raises(Refused, match="the broker id 1 is in use"):
        registry.ask(reserve(b"b", host="host1"))
    assert registry.ask(reserve(b"b", host="host1"), LONG_AFTER_MS) == 1


def test_nobody_gets_an_id_before_the_broker_that_forms_the_cluster_has_its_own():
    with pytest.raises(Refused) as refused:
        Registry().ask(reserve(b"b"))
    assert refused.value.code is ErrorCode.BROKER_NOT_AVAILABLE


def test_nobody_registers_under_an_id_that_was_given_to_somebody_else(registry):
    registry.ask(reserve(b"b"))
    with pytest.raises(Refused, match="was given to another directory"):
        registry.register(2, b"c")


def test_ids_that_were_given_out_are_in_a_snapshot(registry):
    registry.ask(reserve(b"b"))
    again = Controller(BrokerSettings(), LogSettings())
    for offset, record in enumerate(freeze(registry.controller.image)()):
        again.apply(encode_record(record), offset)
    assert again.image.reserved_ids == {2: b"b" * 16}


def test_of_too_many_ids_that_nobody_registers_under_the_oldest_is_given_again(registry):
    directories = [bytes([number]) for number in (200, 201)]
    strangers = [bytes([number]) for number in range(100, 100 + RESERVED_IDS_MAX)]
    given = [registry.ask(reserve(each)) for each in strangers]
    assert [registry.ask(reserve(each)) for each in directories] == given[:2]
    assert len(registry.controller.image.reserved_ids) == RESERVED_IDS_MAX
    assert registry.ask(reserve(strangers[0])) == given[2]
    with pytest.raises(Refused, match="was given to another directory"):
        registry.register(given[1], strangers[1])


def test_who_wants_a_certain_id_takes_the_place_of_the_oldest_too(registry):
    given = [registry.ask(reserve(bytes([number]))) for number in range(100, 100 + RESERVED_IDS_MAX)]
    assert registry.ask(reserve(b"\xff", wanted=700)) == 700
    assert set(registry.controller.image.reserved_ids) == {*given[1:], 700}


def test_when_the_largest_id_is_taken_the_smallest_that_is_free_is_given(registry):
    registry.ask(reserve(b"b", wanted=INT32_MAX))
    assert registry.ask(reserve(b"c")) == 2


@pytest.mark.parametrize("command", [reserve(b"b", wanted=INT32_MAX + 1), reserve(b"")], ids=["broker", "directory"])
def test_what_cannot_be_an_id_is_refused(registry, command):
    with pytest.raises(Refused) as refused:
        registry.ask(command)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
