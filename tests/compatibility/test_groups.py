"""What groups can do beyond the usual: cooperative rebalancing, static members, and many members at once."""

from __future__ import annotations

import random

import pytest
from driver import CLIENTS, Member, available, named, wait_until

CONFLUENT = CLIENTS[0]
#: These have an assignor in common, so they can be members of one group.
SOCIABLE = named("confluent-kafka", "kafka-python", "aiokafka")
#: What each calls the same assignor.
COOPERATIVE_STICKY = {
    "confluent-kafka": "cooperative-sticky",
    "java": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "franz-go": "cooperative-sticky",
}


def each_of(*names: str):
    return pytest.mark.parametrize("client", named(*names), indirect=True, ids=lambda client: client.name)


@pytest.fixture
def client(request):
    return available(getattr(request, "param", CONFLUENT))


@each_of(*COOPERATIVE_STICKY)
def test_a_cooperative_rebalance_leaves_most_partitions_where_they_are(client, join, bootstrap, make_topic):
    topic = make_topic(partitions=4)
    strategy = {"partition.assignment.strategy": COOPERATIVE_STICKY[client.name]}
    first = join("cooperative-" + topic, topic, **strategy)
    wait_until("the first member has everything", lambda: first.assigned == {0, 1, 2, 3})
    second = join("cooperative-" + topic, topic, **strategy)
    wait_until("the second has half", lambda: len(second.assigned) == 2)
    wait_until("the first has kept the rest", lambda: first.assigned == {0, 1, 2, 3} - second.assigned)
    CONFLUENT.run("produce", bootstrap, topic=topic, count=100)
    wait_until("all is read", lambda: len(first.records) + len(second.records) == 100)


@each_of("confluent-kafka", "java")
def test_a_static_member_comes_back_to_its_partitions(client, join, bootstrap, make_topic):
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


@pytest.fixture
def members():
    """Members of any client; those still running at the end of the test are ended."""
    running: list[Member] = []
    yield running
    for member in running:
        member.die()


def share_all(members: list[Member], partitions: int) -> bool:
    """Every partition is held by exactly one of them."""
    return sorted(partition for member in members for partition in member.assigned) == list(range(partitions))


def test_members_of_different_libraries_share_one_group(members, bootstrap, make_topic):
    topic = make_topic(partitions=6)
    for client in SOCIABLE:
        members.append(client.join(bootstrap, "mixed-" + topic, topic))
    wait_until(
        "each has two of the six",
        lambda: share_all(members, 6) and all(len(member.assigned) == 2 for member in members),
    )
    CONFLUENT.run("produce", bootstrap, topic=topic, count=300)
    wait_until("all is read", lambda: sum(len(member.records) for member in members) >= 300)


def test_a_group_in_which_members_come_and_go_misses_nothing(members, bootstrap, make_topic):
    """Three libraries join, leave and die in random order while records arrive."""
    topic = make_topic(partitions=6)
    group = "restless-" + topic
    chance = random.Random(4711)
    gone: list[Member] = []
    for round_number in range(8):
        if len(members) < 2 or (len(members) < 5 and chance.random() < 0.6):
            members.append(chance.choice(SOCIABLE).join(bootstrap, group, topic))
        else:
            member = members.pop(chance.randrange(len(members)))
            gone.append(member)
            chance.choice((member.leave, member.die))()
        CONFLUENT.run("produce", bootstrap, topic=topic, count=50)
        if round_number % 3 == 2:
            wait_until("the group has settled", lambda: share_all(members, 6))
    wait_until("the group has settled", lambda: share_all(members, 6))
    wait_until("every record was read", lambda: len(places(members + gone)) == 400)


def places(members: list[Member]) -> set[tuple[int, int]]:
    return {(record["partition"], record["offset"]) for member in members for record in list(member.records)}
