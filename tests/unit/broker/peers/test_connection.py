"""One connection: who is refused, what is too much, and what is told of large frames."""

from __future__ import annotations

import pytest

from zurau.broker.peers import connection as connection_module
from zurau.broker.peers.acquaintance import reason_to_refuse
from zurau.broker.peers.connection import PATIENCE_MS, PeerConnection
from zurau.ids import BrokerId
from zurau.ports import Handshake
from zurau.settings import KIB, MIB
from zurau.simulation.peers import address_of
from zurau.wire.peer.frames import Kind, encode_frame
from zurau.wire.peer.handshake import encode_goodbye, encode_handshake


class Recorded:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.written = b""
        self.calls: list[str] = []
        self.queued = 0

    def write(self, pieces) -> None:
        self.written += b"".join(pieces)

    def queued_bytes(self) -> int:
        return self.queued

    def unsent_bytes(self) -> int:
        return self.queued

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")


def accepted(broker) -> tuple[PeerConnection, Recorded]:
    connection, transport = broker.peers.accepted("somewhere:1234"), Recorded()
    connection.made(transport)
    return connection, transport


def feed(connection: PeerConnection, data: bytes) -> None:
    while data:
        buffer = connection.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        connection.received(count)
        data = data[count:]


def handshake(number: int, **said) -> Handshake:
    fields = {"cluster_id": "one", "directory_id": bytes([number]) * 16, "incarnation": bytes([200 + number]) * 16}
    return Handshake(**{"broker": BrokerId(number), "is_metadata_empty": False, **fields, **said})


def greeted(broker, number: int = 2) -> tuple[PeerConnection, Recorded]:
    connection, transport = accepted(broker)
    feed(connection, b"".join(encode_handshake(handshake(number))))
    return connection, transport


# Who is refused


def test_a_broker_of_another_cluster_is_refused_and_both_sides_say_what_to_do(brokers, caplog):
    one, two = brokers.start(1, cluster_id="one"), brokers.start(2, knows=[1], cluster_id="two")
    brokers.run()
    assert one.heard == two.heard == []
    advice = (
        "broker 1 is in the cluster one and broker 2 in two; correct the address that led from one to the other, or "
        "start one of them with an empty --dir so that it can join"
    )
    assert f"ending the connection of broker-2: {advice}" in caplog.messages
    assert f"broker 1 at broker-1:9095 has ended the connection: {advice}" in caplog.messages


def test_whoever_names_no_cluster_is_refused(brokers):
    one, two = brokers.start(1, cluster_id="one"), brokers.start(2, knows=[1], cluster_id="")
    brokers.run()
    assert one.heard == two.heard == []


def test_a_second_broker_with_an_id_that_is_connected_is_refused(brokers):
    one, _ = brokers.pair()
    _, transport = greeted(one, 2)
    assert transport.calls == []
    connection, transport = accepted(one)
    feed(connection, b"".join(encode_handshake(handshake(2, directory_id=b"x" * 16))))
    assert transport.calls == ["close"]
    assert b"start one of them with another --node-id" in transport.written
    assert one.names_of("connected") == [2, 2]


def test_a_broker_with_a_new_disk_is_let_in_when_its_old_connection_has_ended(brokers):
    one, _ = brokers.pair()
    brokers.network.notice_ms = 1000
    brokers.kill(2)
    brokers.start(2, knows=[1], directory_id=b"new disk".ljust(16))
    brokers.run()
    assert one.heard == [("connected", 2), ("lost", 2), ("connected", 2)]
    assert one.peers.connected[BrokerId(2)].directory_id == b"new disk".ljust(16)


def test_a_wrong_address_is_named(brokers, caplog):
    brokers.start(1)
    three = brokers.start(3)
    three.peers.set_addresses({BrokerId(2): address_of(BrokerId(1))})
    brokers.run()
    assert three.heard == []
    assert any("correct the address of broker 2" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("theirs", "dialled", "reason"),
    [
        (handshake(5, incarnation=handshake(4).incarnation), BrokerId(5), "reached itself"),
        (handshake(4, incarnation=b"x" * 16), None, "two brokers have the id 4"),
        (handshake(3), None, "the one with the larger id dials"),
        (handshake(3), BrokerId(2), "is broker 3 and not 2"),
        (handshake(5), None, None),
        (handshake(3), BrokerId(3), None),
    ],
)
def test_a_broker_talks_only_to_whom_it_should(theirs, dialled, reason):
    found = reason_to_refuse(handshake(4), theirs, dialled, "there:1")
    assert found is None if reason is None else reason in found


def test_garbage_instead_of_a_handshake_ends_the_connection(brokers):
    one = brokers.start(1)
    connection, transport = accepted(one)
    feed(connection, b"GET / HTTP/1.1\r\nHost: example\r\n\r\n")
    assert transport.calls == ["close"]
    assert one.counters.protocol_violations == 1
    assert one.heard == []


def test_a_frame_that_the_listener_does_not_accept_ends_the_connection(brokers):
    one, two = brokers.pair()
    one.refuses_frames = True
    two.send(1, b"nonsense")
    brokers.run(20)
    one.refuses_frames = False
    brokers.run()
    assert one.heard == [("connected", 2), ("lost", 2), ("connected", 2)]
    assert one.counters.protocol_violations == 1


def test_a_second_handshake_is_refused(brokers):
    one = brokers.start(1)
    connection, transport = greeted(one)
    feed(connection, b"".join(encode_handshake(handshake(2))))
    assert transport.calls == ["close"]


def test_what_follows_a_goodbye_is_not_heard(brokers):
    one = brokers.start(1)
    connection, transport = greeted(one)
    said = b"".join((*encode_goodbye("enough"), *encode_frame(Kind.SESSION_REQUEST, [])))
    feed(connection, said)
    feed(connection, said)
    assert transport.calls == ["abort"]
    assert one.names_of("received") == []


# Patience


def test_who_does_not_say_who_it_is_has_to_go(brokers):
    _, transport = accepted(brokers.start(1))
    brokers.run(PATIENCE_MS)
    assert transport.calls == ["abort"]


def test_a_dialled_broker_that_does_not_answer_is_given_up_and_dialled_again(brokers):
    one, two = brokers.start(1), brokers.start(2)
    brokers.network.stall((1, 2))
    two.peers.set_addresses({BrokerId(1): address_of(BrokerId(1))})
    brokers.run(PATIENCE_MS + 10)
    brokers.network.mend((1, 2))
    brokers.run()
    assert one.heard == [("connected", 2)]
    assert two.heard == [("connected", 1)]


def test_a_connection_that_is_made_too_late_is_closed_at_once(brokers):
    two = brokers.start(2)
    connection, transport = PeerConnection(two.peers, "there:1", BrokerId(1)), Recorded()
    brokers.run(PATIENCE_MS)
    connection.made(transport)
    assert (transport.calls, transport.written) == (["abort"], b"")


def test_who_does_not_take_the_last_word_is_aborted_after_a_while(brokers):
    one = brokers.start(1)
    connection, transport = greeted(one)
    connection.leave("enough")
    connection.leave("enough")
    brokers.run(PATIENCE_MS)
    assert transport.calls == ["close", "abort"]


def test_nothing_is_sent_behind_the_last_word(brokers):
    connection, transport = greeted(brokers.start(1))
    connection.leave("enough")
    written = transport.written
    connection.send([b"more"])
    assert transport.written == written


# Large frames


def test_a_broker_that_takes_nothing_is_cut_off(brokers):
    one, _ = brokers.pair()
    brokers.network.stall((1, 2))
    one.send(2, bytes(connection_module.QUEUED_BYTES_MAX + 128 * KIB))
    assert one.names_of("lost") == []
    one.send(2, b"one too many")
    assert one.names_of("lost") == [], "never from within a send"
    brokers.run(10)
    assert one.names_of("lost") == [2]


def test_one_frame_may_be_larger_than_what_may_be_queued(brokers):
    one, two = brokers.pair()
    one.send(2, bytes(connection_module.QUEUED_BYTES_MAX + 1))
    brokers.run()
    assert [len(received) for received in two.names_of("received")] == [connection_module.QUEUED_BYTES_MAX + 1]


def test_both_sides_hear_of_a_large_frame_while_it_is_underway(brokers):
    one, two = brokers.pair()
    brokers.network.bytes_a_ms = 1000
    one.send(2, bytes(1 * MIB))
    brokers.run(900)
    assert 6 <= len(two.names_of("progressed")) <= 9
    assert 6 <= len(one.names_of("progressed")) <= 9
    assert two.names_of("received") == []
    brokers.run()
    assert two.heard[-1][0] == "received"


def test_nothing_is_told_of_a_large_frame_that_does_not_move(brokers):
    one, two = brokers.pair()
    brokers.network.stall((1, 2))
    one.send(2, bytes(1 * MIB))
    brokers.run()
    assert one.names_of("progressed") == two.names_of("progressed") == []


def test_frames_that_arrive_quickly_are_not_told_in_parts(brokers):
    one, two = brokers.pair()
    for _ in range(10):
        one.send(2, bytes(1 * MIB))
    brokers.run()
    assert two.names_of("progressed") == []


def test_a_connection_that_breaks_within_a_frame_gives_none_of_it(brokers):
    one, two = brokers.pair()
    brokers.network.bytes_a_ms = 1000
    one.send(2, bytes(1 * MIB))
    brokers.run(500)
    brokers.network.reset(1, 2)
    brokers.run()
    assert two.names_of("received") == []
    assert two.names_of("lost", "connected") == [1, 1, 1]
