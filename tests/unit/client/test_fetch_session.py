"""What a client names in the fetches of a session."""

from __future__ import annotations

from typing import cast

import pytest

from zurau.client.cluster.connection import Connection
from zurau.client.consumer.fetch_session import FetchSession, Wanted
from zurau.ids import TopicId, TopicPartition
from zurau.settings import INT32_MAX, MIB

ID, OTHER_ID = TopicId(bytes([1] * 16)), TopicId(bytes([2] * 16))
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def session() -> FetchSession:
    return FetchSession(cast("Connection", None), MIB)


def named(session: FetchSession, wanted) -> tuple[dict, dict]:
    topics, forgotten = session.next_fetch(wanted)
    return (
        {(each.topic_id, one.partition): one.fetch_offset for each in topics for one in each.partitions},
        {each.topic_id: each.partitions for each in forgotten},
    )


def test_the_first_fetch_names_everything(session):
    assert named(session, {A: Wanted(ID, 3), B: Wanted(ID, 4)}) == ({(ID, 0): 3, (ID, 1): 4}, {})


def test_later_ones_name_what_is_read_from_elsewhere_and_what_is_read_no_more(session):
    session.next_fetch({A: Wanted(ID, 0), B: Wanted(ID, 0)})
    session.answered(7)
    assert named(session, {A: Wanted(ID, 0), B: Wanted(ID, 5)}) == ({(ID, 1): 5}, {})
    session.answered(7)
    assert named(session, {A: Wanted(ID, 0)}) == ({}, {ID: [1]})
    session.answered(7)
    assert named(session, {A: Wanted(ID, 0)}) == ({}, {})


def test_a_topic_that_is_another_one_now_is_forgotten_and_named(session):
    session.next_fetch({A: Wanted(ID, 0)})
    session.answered(7)
    assert named(session, {A: Wanted(OTHER_ID, 0)}) == ({(OTHER_ID, 0): 0}, {ID: [0]})


def test_everything_is_named_again_when_there_is_no_session(session):
    session.next_fetch({A: Wanted(ID, 0)})
    session.answered(7)
    session.answered(0)
    assert (session.session_id, session.epoch) == (0, 0)
    assert named(session, {A: Wanted(ID, 0)}) == ({(ID, 0): 0}, {})


def test_fetches_are_numbered_and_after_the_greatest_number_comes_one(session):
    session.answered(7)
    assert session.epoch == 1
    session.epoch = INT32_MAX
    session.answered(7)
    assert session.epoch == 1
