from __future__ import annotations

import pytest

from zurau.api.kafka import elect_leaders
from zurau.ids import TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

OFFSETS = "__consumer_offsets"
PREFERRED, UNCLEAN = 0, 1


def elect(ask, broker, version, topics, election_type=PREFERRED):
    wanted = None if topics is None else [TopicPartitions(topic=name, partitions=[0]) for name in topics]
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted)
    answer = ask(elect_leaders, request, version, broker)
    assert answer.error_code == ErrorCode.NONE
    return [
        (topic.topic, one.error_code) for topic in answer.replica_election_results for one in topic.partition_result
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_partition_that_is_led_by_its_only_replica_needs_no_election(ask, broker, version):
    assert elect(ask, broker, version, [OFFSETS]) == [(OFFSETS, ErrorCode.ELECTION_NOT_NEEDED)]


def test_whoever_asks_for_all_partitions_hears_only_of_trouble(ask, broker):
    assert elect(ask, broker, 2, None) == []
    del broker.partitions[TopicPartition(OFFSETS, 0)]
    assert elect(ask, broker, 2, None) == [(OFFSETS, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    assert elect(ask, broker, 2, None, UNCLEAN) == [(OFFSETS, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]


def test_an_election_of_another_kind_is_refused(ask, broker):
    wanted = [TopicPartitions(topic=OFFSETS, partitions=[0])]
    answer = ask(elect_leaders, ElectLeadersRequest(election_type=7, topic_partitions=wanted), 2, broker)
    (topic,) = answer.replica_election_results
    codes = [answer.error_code, *(one.error_code for one in topic.partition_result)]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2


def test_an_unknown_partition_has_no_leader(ask, broker):
    assert elect(ask, broker, 2, ["nowhere"]) == [("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
