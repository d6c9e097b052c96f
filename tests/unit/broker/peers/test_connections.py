"""Brokers find each other, lose each other and find each other again."""

from __future__ import annotations

import logging
from itertools import pairwise

from zurau.broker.peers import connections
from zurau.broker.peers.connections import RESPONSE_BYTES_MAX, largest_frame
from zurau.ids import BrokerId
from zurau.records.record import UNPACKED_BYTES_MAX
from zurau.replica.core.settings import ReplicaSettings
from zurau.settings import INT32_MAX, MIB
from zurau.simulation.peers import address_of
from zurau.wire.peer.frame_reader import HEAD_BYTES_MAX


def test_the_broker_with_the_larger_id_dials_the_other(brokers):
    one, two = brokers.start(1, knows=[2]), brokers.start(2)
    brokers.run()
    assert one.heard == two.heard == []
    two.peers.set_addresses({BrokerId(1): address_of(BrokerId(1))})
    brokers.run()
    assert one.heard == [("connected", 2)]
    assert two.heard == [("connected", 1)]


def test_each_side_hears_who_the_other_is(brokers):
    one = brokers.start(1, rack="east")
    two = brokers.start(2, knows=[1], rack="west")
    brokers.run()
    assert one.peers.connected == {2: two.handshake}
    assert two.peers.connected == {1: one.handshake}


def test_frames_go_both_ways_and_keep_their_order(brokers):
    one, two = brokers.pair()
    for number in range(3):
        one.send(2, b"to two: %d" % number)
        two.send(1, b"to one: %d" % number)
    brokers.run()
    assert one.names_of("received") == [b"to one: 0", b"to one: 1", b"to one: 2"]
    assert two.names_of("received") == [b"to two: 0", b"to two: 1", b"to two: 2"]


def test_what_is_sent_as_soon_as_the_other_is_known_arrives(brokers):
    one = brokers.start(1)
    one.connected = lambda peer: one.send(2, b"welcome")
    two = brokers.start(2, knows=[1])
    brokers.run()
    assert two.heard == [("connected", 1), ("received", b"welcome")]


def test_what_is_sent_to_a_broker_that_is_not_connected_is_dropped(brokers):
    one = brokers.start(1)
    one.send(2, b"hello?")
    two = brokers.start(2, knows=[1])
    brokers.run()
    assert two.heard == [("connected", 1)]


def test_a_broker_that_is_not_there_yet_is_dialled_until_it_is(brokers):
    two = brokers.start(2, knows=[1])
    brokers.run()
    brokers.start(1)
    brokers.run()
    assert two.heard == [("connected", 1)]


def test_a_lost_connection_is_told_and_made_again(brokers):
    one, two = brokers.pair()
    brokers.network.reset(1, 2)
    brokers.run()
    assert one.heard == [("connected", 2), ("lost", 2), ("connected", 2)]
    assert two.heard == [("connected", 1), ("lost", 1), ("connected", 1)]


def test_intervals_between_attempts_grow_up_to_a_second(brokers):
    two = brokers.start(2)
    dialled_ms: list[float] = []
    dial = two.peers._dial_at
    two.peers._dial_at = lambda *to: (dialled_ms.append(brokers.clock.monotonic_ms()), dial(*to))
    two.peers.set_addresses({BrokerId(1): address_of(BrokerId(1))})
    brokers.run(10_000)
    intervals = [later - earlier for earlier, later in pairwise(dialled_ms)]
    assert 25 <= intervals[0] <= 60
    assert all(500 <= interval <= 1010 for interval in intervals[6:])


def test_a_connection_that_has_lasted_is_made_again_soon(brokers):
    _, two = brokers.pair()
    brokers.run()
    brokers.network.notice_ms = 0
    brokers.network.reset(1, 2)
    brokers.run(60)
    assert two.heard[-2:] == [("lost", 1), ("connected", 1)]


def test_an_address_that_changes_is_dialled_at_once(brokers):
    two = brokers.start(2)
    two.peers.set_addresses({BrokerId(1): ("nowhere", 1)})
    brokers.run(10_000)
    brokers.start(1)
    two.peers.set_addresses({BrokerId(1): address_of(BrokerId(1))})
    brokers.run(10)
    assert two.heard == [("connected", 1)]


def test_to_be_told_the_same_addresses_again_changes_nothing(brokers):
    _, two = brokers.pair()
    two.peers.set_addresses({BrokerId(1): address_of(BrokerId(1))})
    brokers.run()
    assert two.heard == [("connected", 1)]


def test_a_connection_stays_when_only_the_address_changes(brokers):
    _, two = brokers.pair()
    two.peers.set_addresses({BrokerId(1): ("elsewhere", 1)})
    brokers.run()
    assert two.heard == [("connected", 1)]


def test_a_broker_without_an_address_is_left(brokers):
    one, two = brokers.pair()
    two.peers.set_addresses({})
    brokers.run()
    assert one.heard == [("connected", 2), ("lost", 2)]
    assert two.heard == [("connected", 1), ("lost", 1)]


def test_a_broker_whose_address_is_taken_away_is_dialled_no_more(brokers):
    two = brokers.start(2, knows=[1])
    brokers.run()
    two.peers.set_addresses({})
    brokers.start(1)
    brokers.run()
    assert two.heard == []


def test_a_broker_whose_address_is_taken_away_while_it_is_dialled_stays_away(brokers):
    brokers.start(1)
    two = brokers.start(2, knows=[1])
    two.peers.set_addresses({})
    brokers.run()
    assert two.heard == []


def test_a_broker_that_starts_again_takes_the_place_of_its_last_start(brokers):
    one, _ = brokers.pair()
    brokers.network.notice_ms = 1_000_000
    brokers.kill(2)
    brokers.start(2, knows=[1])
    brokers.run()
    assert one.heard == [("connected", 2), ("lost", 2), ("connected", 2)]


def test_the_end_of_a_connection_that_was_replaced_is_not_told_again(brokers):
    one, _ = brokers.pair()
    brokers.network.notice_ms = 3000
    brokers.kill(2)
    brokers.start(2, knows=[1])
    brokers.run()
    assert one.names_of("lost") == [2]


def test_a_stop_says_goodbye_to_everybody_and_lets_nobody_in(brokers):
    one, two = brokers.pair()
    one.peers.stop()
    brokers.run()
    assert one.heard[-1] == ("lost", 2)
    assert two.heard[-1] == ("lost", 1)
    assert one.peers.accepted("somewhere") is None


def test_a_stop_ends_attempts_that_are_underway_or_to_come(brokers):
    started = brokers.start(3, knows=[1, 2])
    brokers.run(1)
    started.peers.stop()
    brokers.start(1)
    brokers.start(2)
    brokers.run()
    assert started.heard == []


def test_only_so_many_may_come_who_do_not_say_who_they_are(brokers, monkeypatch):
    monkeypatch.setattr(connections, "UNKNOWN_MAX", 2)
    one = brokers.start(1)
    assert [one.peers.accepted("somewhere") is not None for _ in range(3)] == [True, True, False]


def test_a_broker_that_is_turned_away_tries_again(brokers, monkeypatch):
    monkeypatch.setattr(connections, "UNKNOWN_MAX", 0)
    brokers.start(1)
    two = brokers.start(2, knows=[1])
    brokers.run()
    assert two.heard == []
    monkeypatch.setattr(connections, "UNKNOWN_MAX", 1)
    brokers.run()
    assert two.heard == [("connected", 1)]


def test_the_same_warning_is_logged_once_a_minute(brokers, caplog):
    peers = brokers.start(1).peers
    for _ in range(3):
        peers.warn("wrong")
    brokers.run(connections.REPEAT_MS)
    peers.warn("wrong")
    assert caplog.messages == ["wrong", "wrong"]


def test_warnings_of_many_kinds_are_not_remembered_for_ever(brokers, caplog, monkeypatch):
    monkeypatch.setattr(connections, "WARNINGS_MAX", 2)
    peers = brokers.start(1).peers
    for text in ("a", "b", "c", "c", "a"):
        peers.warn(text)
    assert caplog.messages == ["a", "b", "c", "a"]


def test_addresses_are_written_as_people_write_them():
    assert connections.address_text("10.0.0.1", 9095) == "10.0.0.1:9095"
    assert connections.address_text("::1", 9095) == "[::1]:9095"


def test_a_broker_that_stops_is_no_reason_for_a_warning(brokers, caplog):
    one, _ = brokers.pair()
    one.peers.stop()
    brokers.run(10)
    assert caplog.messages == []


def test_connections_that_come_and_go_are_logged(brokers, caplog):
    caplog.set_level(logging.INFO)
    brokers.pair()
    brokers.network.reset(1, 2)
    brokers.run()
    assert "connected with broker 1 at broker-1:9095" in caplog.messages
    assert "the connection with broker 1 at broker-1:9095 is lost: the stream is broken" in caplog.messages


def test_a_stalled_direction_delays_and_does_not_lose(brokers):
    one, two = brokers.pair()
    brokers.network.stall((1, 2))
    one.send(2, b"late")
    brokers.run()
    assert two.names_of("received") == []
    brokers.network.mend((1, 2))
    brokers.run()
    assert two.names_of("received") == [b"late"]


def test_a_broker_that_is_not_of_the_cluster_is_refused_and_hears_why(brokers, caplog):
    one = brokers.start(1)
    one.peers.is_known = lambda broker: broker != 7
    brokers.start(2, knows=[1])
    brokers.start(7, knows=[1])
    brokers.run()
    assert one.heard == [("connected", 2)]
    assert "does not know of a broker 7" in caplog.text


def test_who_turns_out_not_to_be_of_the_cluster_is_left(brokers):
    one, _ = brokers.pair()
    one.peers.is_known = lambda broker: False
    one.peers.leave_unknown()
    brokers.run()
    assert one.heard == [("connected", 2), ("lost", 2)]


def test_the_largest_frame_has_room_for_a_head_a_response_and_one_more_batch():
    assert ReplicaSettings().response_max_bytes < RESPONSE_BYTES_MAX
    assert largest_frame(MIB) == HEAD_BYTES_MAX + RESPONSE_BYTES_MAX + UNPACKED_BYTES_MAX
    assert largest_frame(500 * MIB) == HEAD_BYTES_MAX + RESPONSE_BYTES_MAX + 500 * MIB
    assert largest_frame(INT32_MAX) == INT32_MAX


def test_a_member_that_announces_more_than_there_can_be_is_left(brokers, caplog):
    one, two = brokers.pair()
    two.peers.send(BrokerId(1), [(largest_frame(0) + 1).to_bytes(4, "big") + bytes(16)])
    brokers.run()
    assert one.heard[1] == ("lost", 2)
    assert f"a frame of {largest_frame(0) + 1} bytes" in caplog.text
