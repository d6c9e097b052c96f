"""Brokers that tell each other where they are."""

from __future__ import annotations

import pytest

from zurau.broker.identity import Identity
from zurau.broker.introductions import ADDRESSES_MAX, BROKERS_MAX, CALM_MS, MISSING_MS, Introductions
from zurau.broker.peers.hello import Hello, HelloAnswer, Place
from zurau.ids import Address, BrokerId
from zurau.pending import Pending, done
from zurau.simulation.world import VirtualClock

HOME, A, B = (Address(host, 9192) for host in ("home", "a", "b"))


class Desk:
    """Broker 3, what it asks and whom it dials."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.asked: list[Address] = []
        self.dialled: dict[BrokerId, Address] = {}
        self.connected: set[BrokerId] = set()
        self.members = {BrokerId(1), BrokerId(2)}
        self.answers: dict[Address, HelloAnswer] = {}
        identity = Identity(BrokerId(3), "cluster", bytes(16), is_clustered=True)
        self.introductions = Introductions(
            identity,
            b"incarnation",
            HOME,
            (HOME, A),
            self.clock,
            ask=self.ask,
            set_addresses=lambda addresses: self.dialled.update(addresses),
            connected=lambda: self.connected,
            is_member=lambda broker: broker in self.members,
        )

    def ask(self, address: Address, hello: Hello) -> Pending[HelloAnswer | None]:
        assert hello.place == Place(3, *HOME)
        self.asked.append(address)
        return done(self.answers.get(address))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_it_introduces_itself_to_the_list_and_learns_who_is_there(desk):
    desk.answers[A] = HelloAnswer(b"", "cluster", 1, places=(Place(1, *A), Place(2, *B), Place(3, "elsewhere", 1)))
    desk.introductions.begin()
    assert (desk.asked, desk.dialled) == ([A], {1: A, 2: B})
    assert desk.introductions.places == (Place(3, *HOME), Place(1, *A), Place(2, *B))


def test_what_another_cluster_says_is_not_believed(desk):
    desk.answers[A] = HelloAnswer(b"", "another", 1, places=(Place(1, *A),))
    desk.introductions.begin()
    desk.introductions.greeted(Hello(b"", b"", "another", 2, Place(2, *B)))
    assert desk.dialled == {}


def test_a_broker_that_has_moved_says_so_and_is_dialled_there(desk):
    desk.introductions.learn([Place(1, *A)])
    desk.introductions.greeted(Hello(b"", b"", "cluster", 1, Place(1, *B)))
    assert desk.dialled == {1: B}


def test_all_addresses_of_a_broker_that_is_missing_are_tried_in_turn(desk):
    desk.introductions.learn([Place(1, *A)])
    desk.introductions.learn([Place(1, *B)])
    desk.introductions.begin()
    tried = [desk.dialled[BrokerId(1)]]
    desk.clock.advance(MISSING_MS)
    tried.append(desk.dialled[BrokerId(1)])
    assert set(tried) == {A, B}
    assert B in desk.asked


def test_who_is_connected_with_all_introduces_itself_seldom(desk):
    desk.introductions.learn([Place(1, *A)])
    desk.connected.add(BrokerId(1))
    desk.introductions.begin()
    desk.clock.advance(CALM_MS - 1)
    assert desk.asked == [A]
    desk.clock.advance(1)
    desk.introductions.close()
    desk.clock.advance(CALM_MS)
    assert desk.asked == [A, A]


def test_a_few_addresses_are_remembered_and_the_newest_first(desk):
    places = [Place(1, f"host-{number}", 1) for number in range(ADDRESSES_MAX + 3)]
    for place in places:
        desk.introductions.learn([place])
    assert desk.introductions.places[1:] == (places[-1],)


def test_who_is_no_more_in_the_cluster_is_forgotten(desk):
    desk.introductions.learn([Place(1, *A)])
    desk.introductions.forget(BrokerId(1))
    desk.introductions.forget(BrokerId(1))
    assert desk.introductions.others == ()


def test_who_is_no_member_is_not_learnt_from_its_own_hello(desk):
    desk.introductions.greeted(Hello(b"", b"", "cluster", 7, Place(7, *B)))
    assert (desk.introductions.others, desk.dialled) == ((), {})


def test_what_is_said_at_an_address_of_the_list_is_believed_and_not_passed_on(desk):
    desk.answers[A] = HelloAnswer(b"", "cluster", 7, places=(Place(7, *A),))
    desk.introductions.begin()
    assert desk.introductions.is_known(BrokerId(7))
    assert desk.dialled == {7: A}
    assert desk.introductions.places == (Place(3, *HOME),)


def test_what_is_said_elsewhere_of_others_is_not_believed(desk):
    desk.introductions.learn([Place(1, *B)])
    desk.answers[B] = HelloAnswer(b"", "cluster", 1, places=(Place(7, "c", 1),))
    desk.introductions.begin()
    assert B in desk.asked
    assert not desk.introductions.is_known(BrokerId(7))
    assert desk.dialled == {1: B}


@pytest.mark.parametrize(
    "place", [Place(-5, *B), Place(2, "", 1), Place(2, "h" * 256, 1), Place(2, "b", 0), Place(2, "b", 65_536)], ids=str
)
def test_a_place_where_nobody_can_be_is_not_learnt(desk, place):
    desk.members.add(BrokerId(-5))
    desk.introductions.greeted(Hello(b"", b"", "cluster", place.broker, place))
    assert desk.introductions.others == ()


def test_as_long_as_anybody_may_be_a_member_only_so_many_are_learnt(desk):
    desk.members = range(10 * BROKERS_MAX)
    desk.introductions.learn([Place(broker, *B) for broker in range(4, BROKERS_MAX + 5)])
    assert len(desk.introductions.others) == BROKERS_MAX
