"""Consumers read from followers in their rack (KIP-392), on three brokers that stand in a rack each."""

from __future__ import annotations

import pytest
from three_brokers import Cluster, Node

from zurau.api.kafka.follower_reads import NO_REPLICA
from zurau.api.kafka.reading import FOLLOWERS_EVERY_MS
from zurau.ids import TopicPartition
from zurau.settings import MIB
from zurau.simulation.client import records_in
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic

MODES = pytest.mark.parametrize("mode", ["quorum", "isr"])
VERSION = 12
T = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.pass_time(10_000)
    return cluster


def ask(node: Node, rack_id: str, offset: int = 0, *, version: int = VERSION, epoch: int = -1, session=(0, -1), **rest):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=MIB, current_leader_epoch=epoch)
    request = FetchRequest(
        min_bytes=1, rack_id=rack_id, session_id=session[0], session_epoch=session[1],
        topics=[FetchTopic(topic="t", partitions=[wanted])], **({"max_wait_ms": 0} | rest),
    )  # fmt: skip
    return node.ask(request, version)


def fetch(node: Node, rack_id: str, offset: int = 0, **circumstances):
    return node.wait(ask(node, rack_id, offset, **circumstances)).responses[0].partitions[0]


def values(data) -> list[bytes | None]:
    return [record.value for record in records_in(data.records)]


def topic(cluster: Cluster, mode: str) -> tuple[Node, Node, str]:
    """The leader of a topic with two records, a follower, and the follower's rack."""
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(8000)
    assert cluster.produce("t", b"a", b"b") == ErrorCode.NONE
    cluster.pass_time(1000)
    leader = cluster.leader_of("t")
    follower = next(node for node in cluster.nodes.values() if node is not leader)
    return leader, follower, f"rack-{follower.id}"


@MODES
def test_a_consumer_is_sent_to_the_follower_in_its_rack_and_served_there(cluster, mode):
    leader, follower, rack = topic(cluster, mode)
    sent = fetch(leader, rack, max_wait_ms=10_000)
    assert (sent.error_code, sent.preferred_read_replica, values(sent)) == (ErrorCode.NONE, follower.id, [])
    served = fetch(follower, rack)
    assert (served.preferred_read_replica, served.high_watermark, values(served)) == (NO_REPLICA, 2, [b"a", b"b"])


@pytest.mark.parametrize("rack", ["", "elsewhere", None])
def test_a_consumer_of_another_rack_or_of_the_leaders_stays_with_the_leader(cluster, rack):
    leader, _, _ = topic(cluster, "quorum")
    data = fetch(leader, f"rack-{leader.id}" if rack is None else rack)
    assert (data.preferred_read_replica, values(data)) == (NO_REPLICA, [b"a", b"b"])


def test_who_is_too_old_for_racks_stays_with_the_leader_and_followers_refuse_it(cluster):
    leader, follower, rack = topic(cluster, "quorum")
    assert values(fetch(leader, rack, version=10)) == [b"a", b"b"]
    assert fetch(follower, rack, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetch(follower, "").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@MODES
def test_nobody_is_sent_to_a_follower_that_is_not_there(cluster, mode):
    leader, follower, rack = topic(cluster, mode)
    follower.lose_power()
    cluster.pass_time(5000)
    assert cluster.produce("t", b"c") == ErrorCode.NONE
    assert values(fetch(leader, rack)) == [b"a", b"b", b"c"]


def test_nobody_is_sent_to_a_follower_for_what_it_has_not_got(cluster):
    leader, _, rack = topic(cluster, "quorum")
    data = fetch(leader, rack, offset=3)
    assert (data.preferred_read_replica, data.error_code) == (NO_REPLICA, ErrorCode.OFFSET_OUT_OF_RANGE)


def test_a_follower_does_not_call_out_of_range_what_its_leader_may_have(cluster):
    _, follower, rack = topic(cluster, "quorum")
    assert fetch(follower, rack, offset=3).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert fetch(follower, rack, offset=-1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_follower_fences_leader_epochs_as_a_leader_does(cluster):
    leader, follower, rack = topic(cluster, "isr")
    epoch = leader.broker.partitions[T].leader_epoch
    assert fetch(follower, rack, epoch=epoch).error_code == ErrorCode.NONE
    assert fetch(follower, rack, epoch=epoch - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetch(follower, rack, epoch=epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@MODES
def test_a_long_poll_at_a_follower_wakes_when_it_hears_what_is_committed(cluster, mode):
    _, follower, rack = topic(cluster, mode)
    poll = ask(follower, rack, 2, max_wait_ms=10_000)
    assert not poll.is_done
    assert cluster.produce("t", b"c") == ErrorCode.NONE
    assert values(follower.wait(poll).responses[0].partitions[0]) == [b"c"]


@MODES
def test_a_follower_that_hears_no_leader_sends_consumers_away_also_in_a_session(cluster, mode):
    _, follower, rack = topic(cluster, mode)
    first = follower.wait(ask(follower, rack, 2, session=(0, 0)))
    cluster.cut_off.add(follower.id)
    cluster.pass_time(5 * FOLLOWERS_EVERY_MS)
    assert fetch(follower, rack).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    nothing_named = FetchRequest(
        max_wait_ms=0, min_bytes=1, rack_id=rack, session_id=first.session_id, session_epoch=1, topics=[]
    )
    told = follower.tell(nothing_named, VERSION)
    assert told.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
