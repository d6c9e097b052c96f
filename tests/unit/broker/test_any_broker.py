"""Batches given to a broker that does not lead their partition."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.msgpack import encode
from tests.unit.broker.three_brokers import Cluster

from zurau.broker import any_broker
from zurau.broker.any_broker import AppendBatch
from zurau.broker.deliveries import FindPositions, ForgetDelivered, NoteDelivered
from zurau.broker.leadership import coordinator_of
from zurau.broker.peer_calls import CALLS_SINCE
from zurau.broker.reading_records import NO_OFFSET, Wanted
from zurau.errors import Refused
from zurau.ids import BrokerId, TopicId, TopicPartition
from zurau.pending import Pending, start
from zurau.ports import Handshake
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.error_codes import ErrorCode

ORDERS = TopicPartition("orders", 0)
TIMEOUT_MS = 10_000


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.pass_time(20_000)
    cluster.create("orders")
    cluster.pass_time()
    for node in cluster.nodes.values():
        for other in cluster.nodes.values():
            if other is not node:
                met(node, other)
    return cluster


def met(node, other) -> None:
    said = Handshake(other.id, "cluster", bytes([other.id] * 16), bytes(16), is_metadata_empty=False)
    node.broker.calls.connected(msgspec.structs.replace(said, minor_version=CALLS_SINCE))


def append(node, *values: bytes, name: TopicPartition = ORDERS, timeout_ms: int = TIMEOUT_MS) -> Pending:
    batch = memoryview(build_batch([NewRecord(None, value, timestamp=node.clock.now_ms()) for value in values]))
    return start(any_broker.append(name, batch, timeout_ms, None, node.broker))


def followers(cluster):
    leader = cluster.leader_of("orders")
    return [node for node in cluster.nodes.values() if node is not leader]


def test_a_batch_given_to_any_broker_is_in_the_log_of_the_leader(cluster):
    for number, node in enumerate(cluster.nodes.values()):
        appended = node.wait(append(node, b"%d" % number))
        assert appended.next_offset == appended.base_offset + 1
    assert cluster.read("orders") == [b"0", b"1", b"2"]


def test_while_nobody_leads_the_next_leader_is_waited_for_and_has_it_once(cluster):
    leader, (node, _) = cluster.leader_of("orders"), followers(cluster)
    leader.lose_power()
    for other in followers_left(cluster):
        other.broker.lost(leader.id)
    outcome = append(node, b"one")
    assert not outcome.is_done
    node.wait(outcome)
    assert cluster.read("orders") == [b"one"]


def followers_left(cluster):
    return [node for node in cluster.nodes.values() if node.broker is not None]


def test_when_nobody_comes_to_lead_it_is_refused_in_time_and_was_not_written(cluster):
    node, *others = cluster.nodes.values()
    for other in others:
        other.lose_power()
        node.broker.lost(other.id)
    node.clock.advance(5000)
    outcome = append(node, b"never", timeout_ms=2000)
    node.clock.advance(2500)
    with pytest.raises(Refused) as refused:
        outcome.result()
    assert refused.value.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)


def test_a_leader_that_is_cut_off_with_the_batch_may_have_it(cluster):
    leader, (node, _) = cluster.leader_of("orders"), followers(cluster)
    outcome = append(node, b"perhaps")
    cluster.cut_off.add(leader.id)
    node.broker.calls.lost(leader.id)
    with pytest.raises(Refused) as refused:
        outcome.result()
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT


def read(node, offset: int = NO_OFFSET, wait_ms: int = 0, name: TopicPartition = ORDERS) -> Pending:
    wanted = Wanted(offset, max_records=10, max_bytes=1 << 20, wait_ms=wait_ms)
    return start(any_broker.read_records(name, wanted, TIMEOUT_MS, None, node.broker))


def values(read) -> list[bytes]:
    return [record.value for record in read.records]


def test_records_are_read_at_any_broker(cluster):
    leader = cluster.leader_of("orders")
    leader.wait(append(leader, b"one", b"two"))
    for node in cluster.nodes.values():
        found = node.wait(read(node))
        assert values(found) == [b"one", b"two"]
        assert found.next_offset == found.high_watermark
        assert node.wait(read(node, found.next_offset)).records == ()


def test_whoever_waits_at_another_broker_is_told_when_there_is_something(cluster):
    leader, (node, _) = cluster.leader_of("orders"), followers(cluster)
    end = node.wait(read(node)).next_offset
    outcome = read(node, end, wait_ms=5000)
    node.clock.advance(1000)
    assert not outcome.is_done
    leader.wait(append(leader, b"news"))
    assert values(node.wait(outcome)) == [b"news"]


def test_a_reader_whose_leader_dies_reads_on_at_the_next_one(cluster):
    leader, (node, _) = cluster.leader_of("orders"), followers(cluster)
    leader.wait(append(leader, b"one"))
    leader.lose_power()
    for other in followers_left(cluster):
        other.broker.lost(leader.id)
    assert values(node.wait(read(node))) == [b"one"]


def test_an_offset_that_is_not_there_is_out_of_range_at_any_broker(cluster):
    for node in cluster.nodes.values():
        with pytest.raises(Refused, match="OFFSET_OUT_OF_RANGE"):
            node.wait(read(node, 1000))


def test_a_partition_that_is_not_there_is_said_not_to_be(cluster):
    node = cluster.nodes[BrokerId(1)]
    for name in (TopicPartition("nothing", 0), TopicPartition("orders", 1)):
        with pytest.raises(Refused, match="UNKNOWN_TOPIC_OR_PARTITION"):
            append(node, b"x", name=name).result()


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("Nonsense", b"\xc0", ErrorCode.UNSUPPORTED_VERSION),
        ("AppendBatch", b"\xc0", ErrorCode.INVALID_REQUEST),
        ("AppendBatch", encode(AppendBatch("nothing", 0, 1)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("AppendBatch", encode(AppendBatch("__consumer_offsets", 0, 1)), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_question_of_another_broker_that_makes_no_sense_is_refused(cluster, name, content, code):
    broker = cluster.nodes[BrokerId(1)].broker
    with pytest.raises(Refused) as refused:
        start(any_broker.answer(name, msgspec.Raw(content), memoryview(b""), broker)).result()
    assert refused.value.code is code


CONSUMER = "consumer-1-00000000"


def deliver(node, offset: int) -> None:
    topic_id = node.broker.image.topics["orders"].topic_id
    any_broker.note_delivered(NoteDelivered(CONSUMER, topic_id, {0: offset}), node.broker)
    node.clock.advance(10)


def position(node, *, acknowledges: bool = True) -> int | None:
    asked = FindPositions(CONSUMER, "orders", acknowledges)
    return node.wait(start(any_broker.find_positions(asked, TIMEOUT_MS, node.broker))).offsets.get(0)


def coordinator(cluster):
    (found,) = {coordinator_of(CONSUMER, node.broker) for node in followers_left(cluster)}
    return cluster.nodes[found]


def test_what_a_consumer_was_handed_at_one_broker_is_acknowledged_at_another(cluster):
    one, two, three = cluster.nodes.values()
    assert position(one) is None
    deliver(one, 5)
    assert position(two, acknowledges=False) is None
    assert position(three) == 5
    deliver(two, 7)
    one.wait(start(any_broker.forget_delivered(ForgetDelivered(CONSUMER), TIMEOUT_MS, one.broker)))
    assert position(three) == 5


def test_what_was_handed_out_before_the_coordinator_died_is_not_acknowledged_and_what_was_acknowledged_stays(cluster):
    deliver(cluster.nodes[BrokerId(1)], 5)
    assert position(cluster.nodes[BrokerId(1)]) == 5
    deliver(cluster.nodes[BrokerId(1)], 7)
    died = coordinator(cluster)
    died.lose_power()
    for other in followers_left(cluster):
        other.broker.lost(died.id)
    cluster.pass_time()
    assert [position(node) for node in followers_left(cluster)] == [5, 5]


def test_a_coordinator_that_was_replaced_meanwhile_has_forgotten_what_was_handed_out(cluster):
    home = coordinator(cluster)
    deliver(home, 7)
    runtime = home.broker.groups_of(CONSUMER)
    runtime.leadership_lost()
    runtime.leadership_established()
    cluster.pass_time()
    assert position(home) is None


def test_the_offsets_of_another_topic_of_the_same_name_are_not_acknowledged(cluster):
    home = coordinator(cluster)
    any_broker.note_delivered(NoteDelivered(CONSUMER, TopicId(bytes(16)), {0: 7}), home.broker)
    assert position(home) is None
