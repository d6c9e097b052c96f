from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.options.limits import EARLIEST, LATEST, AtEnd, AtOffsets, AtTime, AtTimes
from pyspark_zurau.options.read_options import parse_batch_options, parse_stream_options
from pyspark_zurau.options.selection import Assigned, Matching, Named
from pyspark_zurau.options.values import Values
from zurau.client.offsets import READ_COMMITTED
from zurau.client.security import Login, Security, Tls
from zurau.errors import SettingsError
from zurau.ids import TopicPartition

NEEDED = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "a"}


def batch(**options: str):
    return parse_batch_options(Values(NEEDED | options))


def stream(**options: str):
    return parse_stream_options(Values(NEEDED | options))


def only(**options: str):
    return parse_batch_options(Values({"kafka.bootstrap.servers": "127.0.0.1:9092"} | options))


def test_a_batch_reads_everything_unless_told_otherwise():
    assert (batch().starting, batch().ending) == (AtEnd(EARLIEST), AtEnd(LATEST))


def test_a_stream_starts_with_what_is_new_unless_told_otherwise():
    assert stream().starting == AtEnd(LATEST)


def test_other_defaults_are_those_of_the_kafka_connector():
    options = stream()
    assert options.fail_on_data_loss
    assert not options.with_headers
    assert options.max_trigger_delay_ms == 15 * 60 * 1000
    assert (options.attempts, options.attempt_interval_s) == (3, 0.01)
    assert options.poll_timeout_s == 120


def test_names_of_options_may_be_written_in_any_case():
    assert batch(STARTINGOFFSETS='{"a": {"0": 5}}').starting == AtOffsets({TopicPartition("a", 0): 5})


def test_topics_are_named_in_a_list_with_blanks_allowed():
    assert batch(subscribe=" a, b,,a ").selection == Named(("a", "b"))


def test_topics_can_be_matched_by_a_pattern():
    assert only(subscribePattern="logs-.*").selection == Matching("logs-.*")


def test_partitions_can_be_assigned_one_by_one():
    expected = frozenset({TopicPartition("a", 0), TopicPartition("a", 2)})
    assert only(assign='{"a": [0, 2]}').selection == Assigned(expected)


@pytest.mark.parametrize("value", ["nonsense", "[]", "{}", '{"a": 1}', '{"a": ["x"]}'])
def test_an_assignment_that_cannot_be_read_is_refused(value):
    with pytest.raises(SettingsError, match="assign"):
        only(assign=value)


def test_exactly_one_way_to_choose_topics_is_needed():
    with pytest.raises(SettingsError, match="not said"):
        only()
    with pytest.raises(SettingsError, match="exclude each other: subscribe, assign"):
        batch(assign='{"a": [0]}')


@pytest.mark.parametrize(("name", "value"), [("subscribe", " , "), ("subscribePattern", ""), ("subscribePattern", "(")])
def test_an_empty_or_broken_choice_of_topics_is_refused(name, value):
    with pytest.raises(SettingsError, match=name):
        only(**{name: value})


def test_the_bootstrap_servers_are_required():
    with pytest.raises(SettingsError, match=r"kafka\.bootstrap\.servers is missing"):
        parse_batch_options(Values({"subscribe": "a"}))


def test_one_moment_for_all_counts_before_moments_by_partition_and_these_before_offsets():
    offsets = {"startingOffsets": "earliest"}
    by_partition = offsets | {"startingOffsetsByTimestamp": '{"a": {"0": 7}}'}
    assert stream(**by_partition).starting == AtTimes({TopicPartition("a", 0): 7})
    assert stream(**by_partition, startingTimestamp="9").starting == AtTime(9)


@pytest.mark.parametrize("value", ["newest", '{"a": 3}', '{"a": {"0": "x"}}', '{"a": {"0": -3}}', '{"a": {"0": true}}'])
def test_offsets_that_cannot_be_read_are_refused(value):
    with pytest.raises(SettingsError, match="startingOffsets"):
        stream(startingOffsets=value)


@pytest.mark.parametrize("value", ["latest", '{"a": {"0": -1}}'])
def test_a_batch_cannot_start_at_the_end(value):
    with pytest.raises(SettingsError, match="cannot be latest"):
        batch(startingOffsets=value)


@pytest.mark.parametrize("value", ["earliest", '{"a": {"0": -2}}'])
def test_a_batch_cannot_end_at_the_start(value):
    with pytest.raises(SettingsError, match="cannot be earliest"):
        batch(endingOffsets=value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name):
    with pytest.raises(SettingsError, match=name):
        stream(**{name: "latest"})


def test_the_least_of_a_trigger_cannot_be_more_than_the_most():
    with pytest.raises(SettingsError, match="more than maxOffsetsPerTrigger"):
        stream(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="4")


@pytest.mark.parametrize("name", ["minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger"])
@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_counts_must_be_positive_numbers(name, value):
    with pytest.raises(SettingsError, match=name):
        stream(**{name: value})


@pytest.mark.parametrize(("text", "milliseconds"), [("100ms", 100), ("30s", 30_000), ("2 min", 120_000), ("7", 7)])
def test_delays_are_written_as_spark_writes_durations(text, milliseconds):
    assert stream(maxTriggerDelay=text).max_trigger_delay_ms == milliseconds


def test_a_delay_that_is_no_duration_is_refused():
    with pytest.raises(SettingsError, match="maxTriggerDelay"):
        stream(maxTriggerDelay="soon")


@pytest.mark.parametrize(
    "name",
    ["auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes"],
)
def test_settings_that_would_break_what_spark_promises_are_refused(name):
    with pytest.raises(SettingsError, match=f"kafka.{name} is not supported"):
        batch(**{f"kafka.{name}": "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.security.protocol", "SASL_SSL"),
        ("kafka.ssl.truststore.location", "x"),
        ("kafka.sasl.mechanism", "PLAIN"),
    ],
)
def test_a_connection_that_should_be_secure_is_never_made_in_the_clear(name, value):
    with pytest.raises(SettingsError, match=r"security.protocol|sasl.mechanism"):
        batch(**{name: value})


def test_settings_of_security_are_passed_on():
    login = {"kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "a", "kafka.sasl.password": "b"}
    options = batch(**{"kafka.security.protocol": "SASL_SSL", "kafka.ssl.ca.location": "ca.pem", **login})
    assert options.peer.security == Security(Tls("ca.pem"), Login("PLAIN", "a", "b"))


def test_settings_without_a_counterpart_are_named_once(caplog):
    for _ in range(2):
        batch(**{"kafka.connections.max.idle.ms": "5", "kafka.client.id": "me"})
    assert [record.getMessage() for record in caplog.records] == [
        "the option kafka.connections.max.idle.ms has no counterpart in this source and does nothing"
    ]


def test_settings_of_the_consumer_are_passed_on():
    options = batch(**{"kafka.isolation.level": "read_committed", "kafka.max.partition.fetch.bytes": "4096"})
    assert (options.fetch.isolation, options.fetch.partition_max_bytes) == (READ_COMMITTED, 4096)


def test_a_slip_of_the_pen_is_pointed_out():
    with pytest.raises(SettingsError, match="did you mean startingOffsets"):
        batch(startingOffset="earliest")


def test_options_of_others_are_let_pass():
    assert batch(checkpointLocation="somewhere", path="x") == batch()


def test_what_is_neither_true_nor_false_is_refused():
    with pytest.raises(SettingsError, match="failOnDataLoss"):
        batch(failOnDataLoss="maybe")
