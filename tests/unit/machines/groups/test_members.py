"""Looking into subscriptions, which come from outside and may be anything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zurau.machines.groups.members import has_more_to_give_up, means_the_same, subscribed_topics
from zurau.wire.kafka.codec import encode_versioned
from zurau.wire.kafka.messages.consumer_protocol import ConsumerProtocolSubscription

TOPICS = st.lists(st.text("abc.-_", min_size=1, max_size=9), max_size=4)


@given(TOPICS, st.integers(0, 3))
def test_topics_are_read_from_every_version_of_a_subscription(topics, version):
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=topics), version)
    assert subscribed_topics(metadata) == frozenset(topics)


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
