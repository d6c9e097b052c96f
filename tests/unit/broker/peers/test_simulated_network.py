"""The network that brokers are simulated on does what networks do."""

from __future__ import annotations

from zurau.ids import BrokerId


def test_nobody_minds_faults_between_brokers_that_are_not_there(brokers):
    one, two = brokers.pair()
    brokers.network.stop(BrokerId(7))
    brokers.network.reset(7, 1)
    brokers.network.reset(1, 7)
    brokers.run()
    assert (one.heard, two.heard) == ([("connected", 2)], [("connected", 1)])


def test_a_good_day_ends_everything_that_is_slow_or_stalled(brokers):
    one, two = brokers.pair()
    network = brokers.network
    network.stall((1, 2))
    one.send(2, bytes(10_000))
    brokers.run()
    network.delay_ms, network.straggling, network.bytes_a_ms = 1000, 1.0, 1
    network.calm_down()
    brokers.run(20)
    assert two.names_of("received") == [bytes(10_000)]


def test_frames_without_records_arrive_too(brokers):
    one, two = brokers.pair()
    one.send(2, b"")
    brokers.run()
    assert two.names_of("received") == [b""]


def test_two_brokers_that_stop_at_the_same_time_lose_each_other_once(brokers):
    one, two = brokers.pair()
    one.peers.stop()
    two.peers.stop()
    brokers.run()
    assert one.heard == [("connected", 2), ("lost", 2)]
    assert two.heard == [("connected", 1), ("lost", 1)]


def test_what_is_sent_over_a_stream_that_is_broken_goes_nowhere(brokers):
    one, two = brokers.pair()
    brokers.network.notice_ms = 1000
    brokers.network.reset(1, 2)
    one.send(2, b"into the dark")
    brokers.run()
    assert two.names_of("received") == []


def test_a_process_that_ends_while_it_is_dialled_answers_nobody(brokers):
    one, two = brokers.start(1), brokers.start(2, knows=[1])
    one.is_over = True
    brokers.run(500)
    brokers.network.reset(1, 2)
    brokers.kill(1)
    brokers.start(1)
    brokers.run()
    assert two.heard == [("connected", 1)]
