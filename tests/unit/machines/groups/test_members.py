"""Looking into subscriptions, which come from outside and may be anything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zurau.machines.groups.members import (
    DECODED_BYTES_MAX,
    has_more_to_give_up,
    means_the_same,
    mentions,
    subscribed_topics,
)
from zurau.wire.kafka.codec import encode_versioned
from zurau.wire.kafka.messages.consumer_protocol import ConsumerProtocolSubscription

TOPICS = st.lists(st.text("abc.-_", min_size=1, max_size=9), max_size=4)


@given(TOPICS, st.integers(0, 3))
def test_topics_are_read_from_every_version_of_a_subscription(topics, version):
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=topics), version)
    assert subscribed_topics(metadata) == frozenset(topics)


@given(TOPICS, st.text("abc.-_", min_size=1, max_size=9), st.integers(0, 3))
def test_a_topic_is_mentioned_when_it_is_subscribed_to(topics, other, version):
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=topics), version)
    assert mentions(metadata, other) is (other in topics)
    assert all(mentions(metadata, topic) for topic in topics)


@given(st.binary(max_size=5))
def test_what_is_too_short_for_a_subscription_may_mention_any_topic(metadata):
    assert mentions(metadata, "orders")


def test_what_counts_more_topics_than_it_has_bytes_may_mention_any_topic():
    assert mentions(bytes(2) + b"\x7f\xff\xff\xff" + bytes(20), "orders")


def test_subscriptions_too_large_to_look_at_are_not_the_same_and_may_have_more_to_give_up():
    one = encode_versioned(ConsumerProtocolSubscription(topics=["a", "b"], user_data=bytes(DECODED_BYTES_MAX)), 0)
    other = encode_versioned(ConsumerProtocolSubscription(topics=["b", "a"], user_data=bytes(DECODED_BYTES_MAX)), 0)
    assert not means_the_same("consumer", one, other)
    assert has_more_to_give_up(one, b"")


@given(st.binary(max_size=64))
def test_any_bytes_are_a_subscription_or_none(metadata):
    topics = subscribed_topics(metadata)
    assert topics is None or all(isinstance(topic, str) for topic in topics)


def test_the_order_of_topics_means_nothing():
    one = encode_versioned(ConsumerProtocolSubscription(topics=["a", "b"]), 0)
    other = encode_versioned(ConsumerProtocolSubscription(topics=["b", "a"]), 0)
    assert means_the_same("consumer", one, other)
    assert not means_the_same("connect", one, other)


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_any_bytes_may_be_asked_what_is_left_to_give_up(metadata, assignment):
    assert has_more_to_give_up(metadata, assignment) in (True, False)
