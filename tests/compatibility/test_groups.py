"""What groups can do beyond the usual: cooperative rebalancing, static members, and many members at once."""

from __future__ import annotations

import pytest
from driver import CLIENTS, wait_until

CONFLUENT = CLIENTS[0]


@pytest.fixture
def client():
    return CONFLUENT


def test_a_cooperative_rebalance_leaves_most_partitions_where_they_are(join, bootstrap, make_topic):
    topic = make_topic(partitions=4)
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    first = join("cooperative-" + topic, topic, **strategy)
    wait_until("the first member has everything", lambda: first.assigned == {0, 1, 2, 3})
    second = join("cooperative-" + topic, topic, **strategy)
    wait_until("the second has half", lambda: len(second.assigned) == 2)
    wait_until("the first has kept the rest", lambda: first.assigned == {0, 1, 2, 3} - second.assigned)
    CONFLUENT.run("produce", bootstrap, topic=topic, count=100)
    wait_until("all is read", lambda: len(first.records) + len(second.records) == 100)


def test_a_static_member_comes_back_to_its_partitions(join, bootstrap, make_topic):
    topic = make_topic(partitions=4)
    group = "static-" + topic
    first = join(group, topic, session_timeout_ms=30_000, **{"group.instance.id": "one"})
    second = join(group, topic, session_timeout_ms=30_000, **{"group.instance.id": "two"})
    wait_until("both have half", lambda: len(first.assigned) == len(second.assigned) == 2)
    had, kept = second.assigned, first.assigned
    second.die()
    again = join(group, topic, session_timeout_ms=30_000, **{"group.instance.id": "two"})
    wait_until("it is back where it was", lambda: again.assigned == had)
    assert first.assigned == kept


def test_many_members_that_start_together_each_get_a_share(join, bootstrap, make_topic):
    topic = make_topic(partitions=8)
    members = [join("crowd-" + topic, topic) for _ in range(4)]
    wait_until(
        "each has two of the eight",
        lambda: (
            sorted(partition for member in members for partition in member.assigned) == list(range(8))
            and all(len(member.assigned) == 2 for member in members)
        ),
    )
    CONFLUENT.run("produce", bootstrap, topic=topic, count=400)
    wait_until("all is read", lambda: sum(len(member.records) for member in members) == 400)
    places = [(record["partition"], record["offset"]) for member in members for record in member.records]
    assert len(set(places)) == 400
