"""Directories that are in no cluster: who forms one, who joins, who waits."""

from __future__ import annotations

import pytest

from zurau.broker.identity import read_identity
from zurau.broker.joining import ROUND_MS, SAY_AGAIN_MS, Joining
from zurau.broker.peers.hello import Hello, HelloAnswer
from zurau.ids import Address, BrokerId
from zurau.pending import Pending
from zurau.simulation.disk import SimulatedDisk
from zurau.simulation.world import SeededRandomness, VirtualClock

A, B, C = (Address(host, 9192) for host in "abc")


class Machines:
    """Addresses, and whoever answers there."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.joining: dict[Address, Joining] = {}
        self.disks: dict[Address, SimulatedDisk] = {}
        #: Who is in a cluster, and which one that is.
        self.clusters: dict[Address, str] = {}
        self.next_id = 7
        self.refusal = ""
        self.asked_for: list[Hello] = []

    def start(self, at: Address, *listed: Address, wanted_id: int | None = None) -> Joining:
        number = len(self.joining) + 1
        self.disks[at] = SimulatedDisk(number)
        joining = self.joining[at] = Joining(
            self.disks[at],
            SeededRandomness(number),
            self.clock,
            addresses=listed or (A, B, C),
            wanted_id=None if wanted_id is None else BrokerId(wanted_id),
            incarnation=bytes([number]) * 16,
            own_address=None,
            ask=lambda address, hello: self.ask(at, address, hello),
        )
        joining.begin()
        return joining

    def ask(self, source: Address, address: Address, hello: Hello) -> Pending[HelloAnswer | None]:
        asked: Pending[HelloAnswer | None] = Pending()
        self.clock.call_later(1, lambda: asked.resolve(self.answer(source, address, hello)))
        return asked

    def answer(self, source: Address, address: Address, hello: Hello) -> HelloAnswer | None:
        if address in self.clusters:
            if not hello.joins:
                return HelloAnswer(b"member", self.clusters[address], 1, source.host)
            self.asked_for.append(hello)
            given = -1 if self.refusal else self.next_id
            return HelloAnswer(b"member", self.clusters[address], 1, source.host, given, self.refusal)
        joining = self.joining.get(address)
        if joining is None:
            return None
        if joining.joined.is_done:
            return HelloAnswer(b"%d" % id(joining), joining.joined.result().cluster_id, 1, source.host, self.next_id)
        return joining.answer(hello, source.host)

    def pass_time(self, duration_ms: float = 10 * ROUND_MS) -> None:
        self.clock.advance(duration_ms)


@pytest.fixture
def machines() -> Machines:
    return Machines()


def test_the_first_of_the_list_forms_a_cluster_when_all_answer_and_the_others_join_it(machines):
    one, two, three = (machines.start(address) for address in (A, B, C))
    machines.pass_time()
    formed = [each.joined.result() for each in (one, two, three)]
    assert len({identity.cluster_id for identity in formed}) == 1
    assert [identity.is_founder for identity in formed] == [True, False, False]
    assert [identity.broker_id for identity in formed] == [1, 7, 7]


@pytest.mark.parametrize("missing", [A, B, C])
def test_nobody_forms_a_cluster_while_one_of_the_list_does_not_answer(machines, missing):
    there = [machines.start(address) for address in (A, B, C) if address != missing]
    machines.pass_time()
    assert not any(joining.joined.is_done for joining in there)
    assert all(joining.waits_for == [f"an answer at {missing}"] for joining in there)
    machines.start(missing)
    machines.pass_time()
    assert all(joining.joined.is_done for joining in there)


def test_a_broker_that_waits_says_for_whom(machines, caplog):
    machines.start(A)
    machines.pass_time(2 * SAY_AGAIN_MS)
    assert "waits for: an answer at b:9192; an answer at c:9192" in caplog.text


def test_an_empty_directory_joins_the_cluster_that_any_of_them_is_in(machines):
    machines.clusters[C] = "theirs"
    joining = machines.start(A)
    machines.pass_time()
    identity = joining.joined.result()
    assert (identity.cluster_id, identity.broker_id, identity.is_founder) == ("theirs", 7, False)
    assert read_identity(machines.disks[A], None) == identity


def test_a_broker_that_is_not_in_the_list_joins_and_never_forms(machines):
    stranger = machines.start(Address("d", 9192), A)
    machines.start(A, A, B)
    machines.pass_time()
    assert not stranger.joined.is_done
    machines.start(B, A, B)
    machines.pass_time()
    assert not stranger.joined.result().is_founder


def test_an_id_that_was_asked_for_is_said_and_the_first_has_it(machines):
    one = machines.start(A, A, B, wanted_id=0)
    machines.start(B, A, B)
    machines.pass_time()
    assert one.joined.result().broker_id == 0


def test_it_says_where_it_is_when_it_asks_for_an_id(machines):
    machines.clusters[A] = "theirs"
    machines.start(B, wanted_id=5)
    machines.pass_time()
    assert [(hello.place.address, hello.broker) for hello in machines.asked_for] == [(B, 5)]


def test_who_is_refused_asks_again_and_says_why(machines):
    machines.clusters[A] = "theirs"
    machines.refusal = "the broker id 2 is in use"
    joining = machines.start(B)
    machines.pass_time()
    assert joining.waits_for == ["the broker id 2 is in use"]
    machines.refusal = ""
    machines.pass_time()
    assert joining.joined.is_done


def test_a_list_that_leads_to_two_clusters_is_not_followed(machines):
    machines.clusters |= {A: "one", B: "other"}
    joining = machines.start(C)
    machines.pass_time()
    assert not joining.joined.is_done
    assert "one, other" in joining.waits_for[0]


def test_it_knows_how_others_see_it(machines):
    machines.clusters[A] = "theirs"
    joining = machines.start(B)
    machines.pass_time()
    assert (joining.own_address, joining.seen_as) == (B, "b")
