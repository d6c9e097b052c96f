"""Where the brokers of a cluster are: told to each other again and again, so that one that has moved is found.

An address is known from the registration in the metadata, from the broker itself, or from what others have heard. All
of them are tried in turn until one leads to that broker.

Anybody can say hello. Only who is a member is learnt, that is, whom the metadata knows. The metadata of a broker that
was away for long may not know those who are in the cluster now: so it believes what is said at the addresses that it
was given at its start, and does not pass that on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from zurau.broker.identity import Identity
from zurau.broker.joining import Ask
from zurau.broker.peers.hello import Hello, HelloAnswer, Place
from zurau.ids import Address, BrokerId
from zurau.pending import Pending
from zurau.ports import Clock, Timer

#: How often a broker introduces itself while it misses somebody, and how often it does anyway.
MISSING_MS = 1000
CALM_MS = 30_000
#: Addresses that are remembered of one broker.
ADDRESSES_MAX = 4
#: Brokers that are remembered: an answer to a hello names all of them.
BROKERS_MAX = 500
#: The longest name of a host.
HOST_CHARACTERS_MAX = 255
PORT_MAX = 0xFFFF


class Introductions:
    """`set_addresses` is told whom to connect to; `connected` says with whom that has succeeded. `is_member`: whether
    the metadata knows a broker; as long as there is none, it may be anybody."""

    def __init__(
        self,
        identity: Identity,
        incarnation: bytes,
        own_address: Address,
        listed: Sequence[Address],
        clock: Clock,
        *,
        ask: Ask,
        set_addresses: Callable[[Mapping[BrokerId, Address]], None],
        connected: Callable[[], Iterable[BrokerId]],
        is_member: Callable[[BrokerId], bool],
    ) -> None:
        self._identity = identity
        self._incarnation = incarnation
        self._own_place = Place(identity.broker_id, *own_address)
        self._listed = tuple(listed)
        self._clock = clock
        self._ask = ask
        self._set_addresses = set_addresses
        self._connected = connected
        self._is_member = is_member
        #: Whom they last spoke of at each address of the list.
        self._listed_members: dict[Address, frozenset[BrokerId]] = {}
        #: Of each other broker, the newest first.
        self._known: dict[BrokerId, list[Address]] = {}
        #: Which of them is tried at present.
        self._tried: dict[BrokerId, int] = {}
        self._timer: Timer | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        """Every member, this broker included."""
        members = ((broker, known) for broker, known in self._known.items() if self._is_member(broker))
        return (self._own_place, *(Place(broker, *known[0]) for broker, known in members))

    @property
    def others(self) -> tuple[BrokerId, ...]:
        return tuple(sorted(self._known))

    def begin(self) -> None:
        """Introduce this broker to all that it does not see, and to all that it was told of at its start."""
        missing = self.others_missing()
        for broker in missing:
            self._tried[broker] = self._tried.get(broker, 0) + 1
        self._dial()
        hello = Hello(
            self._incarnation,
            self._identity.directory_id,
            self._identity.cluster_id,
            self._identity.broker_id,
            self._own_place,
        )
        addresses = [address for broker in missing for address in self._known[broker]]
        for address in dict.fromkeys((*self._listed, *addresses)):
            if address != self._own_place.address:
                self._ask(address, hello).then(partial(self._heard, address))
        self._timer = self._clock.call_later(MISSING_MS if missing or not self._known else CALM_MS, self.begin)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def others_missing(self) -> list[BrokerId]:
        connected = set(self._connected())
        return [broker for broker in self.others if broker not in connected]

    def is_known(self, broker: BrokerId) -> bool:
        """It is a member, by the metadata or by what is said at the addresses of the list."""
        return self._is_member(broker) or any(broker in members for members in self._listed_members.values())

    def greeted(self, hello: Hello) -> None:
        """Another broker says where it is."""
        if hello.cluster_id == self._identity.cluster_id and hello.place is not None:
            self.learn([hello.place])

    def _heard(self, address: Address, asked: Pending[HelloAnswer | None]) -> None:
        answer = asked.result()
        if answer is None or answer.cluster_id != self._identity.cluster_id:
            return
        if address in self._listed:
            self._listed_members[address] = frozenset(BrokerId(place.broker) for place in answer.places)
        self.learn(answer.places)

    def learn(self, places: Iterable[Place]) -> None:
        """The newest is believed first. Who is no member is not learnt."""
        has_changed = False
        for place in filter(self._may_be_learnt, places):
            broker = BrokerId(place.broker)
            known = self._known.setdefault(broker, [])
            if place.address not in known[:1]:
                known[:] = [place.address, *(each for each in known if each != place.address)][:ADDRESSES_MAX]
                self._tried[broker] = 0
                has_changed = True
        if has_changed:
            self._dial()

    def _may_be_learnt(self, place: Place) -> bool:
        broker = BrokerId(place.broker)
        if broker < 0 or broker == self._identity.broker_id:
            return False
        if not 0 < len(place.host) <= HOST_CHARACTERS_MAX or not 0 < place.port <= PORT_MAX:
            return False
        return self.is_known(broker) and (broker in self._known or len(self._known) < BROKERS_MAX)

    def forget(self, broker: BrokerId) -> None:
        """It is none of the cluster's any more."""
        if self._known.pop(broker, None) is not None:
            self._dial()

    def _dial(self) -> None:
        self._set_addresses(
            {broker: known[self._tried.get(broker, 0) % len(known)] for broker, known in self._known.items()}
        )
