"""The other brokers of a cluster: how this one came to be one of them, where they are, and the connections to them."""

from __future__ import annotations

import socket
from functools import partial

from msgspec import structs

from zurau.broker.broker import Broker
from zurau.broker.identity import Identity, load_identity, read_identity
from zurau.broker.introductions import Introductions
from zurau.broker.joining import Joining
from zurau.broker.peers.connection import PeerConnection
from zurau.broker.peers.connections import largest_frame
from zurau.broker.peers.hello import (
    NOBODY,
    Hello,
    HelloAnswer,
    Place,
    decode_hello,
    encode_answer,
)
from zurau.errors import Refused
from zurau.ids import Address, BrokerId
from zurau.machines.controller.commands import ReserveBrokerId
from zurau.machines.controller.image import PEER_LISTENER, ClusterImage, Listener
from zurau.node.acceptor import bind
from zurau.node.peers import PeerSockets
from zurau.node.run_futures import as_future
from zurau.node.settings import NodeSettings, parse_address, parse_join, peer_address_of
from zurau.node.turns import LoopTurns
from zurau.pending import Pending, all_of, done, start
from zurau.ports import Handshake, World
from zurau.wire.peer.handshake import MINOR_VERSION

_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - what is bound to these can be reached by some other name


class Cluster:
    """Finds out who this broker is, then serves the broker that is made of it."""

    def __init__(self, settings: NodeSettings, world: World, turns: LoopTurns) -> None:
        self._settings = settings
        self._world = world
        self._listed = parse_join(settings.join)
        listening_at = peer_address_of(settings)
        assert listening_at is not None, "a broker that lets nobody in has no cluster"
        self._listening_at = listening_at
        self._incarnation = world.randomness.bytes(16)
        self._sockets = PeerSockets(self._handshake, self, world.clock, world.randomness, turns, world.counters)
        self._sockets.connections.on_hello = self._greeted
        self._own_address: Address | None = (
            parse_address(settings.advertise_peer, "--advertise-peer") if settings.advertise_peer else None
        )
        self._seen_as = ""
        self._bound: list[socket.socket] = []
        self._identity: Identity | None = None
        self._joining: Joining | None = None
        self._introductions: Introductions | None = None
        self._broker: Broker | None = None

    @property
    def expected_brokers(self) -> int:
        """How many there will be at least, by what this one was told."""
        return max(1, len(self._listed))

    @property
    def others(self) -> tuple[BrokerId, ...]:
        """Those that are known."""
        return self._introductions.others if self._introductions is not None else ()

    @property
    def listener(self) -> Listener:
        """Where other brokers find this one."""
        assert self._own_address is not None, "it has joined"
        return Listener(PEER_LISTENER, *self._own_address)

    def reachable(self, address: Address) -> Address:
        """An address that others can use: instead of all of its own, the host by which this broker is known."""
        return Address(self._host, address.port) if address.host in _EVERYWHERE else address

    @property
    def _host(self) -> str:
        if self._own_address is not None and self._own_address.host not in _EVERYWHERE:
            return self._own_address.host
        return self._seen_as or socket.gethostname()

    async def join(self) -> Identity:
        """Listen for the others, and wait until this broker belongs to a cluster. One that was alone until now listens
        when it is open (`open_to_others`)."""
        node_id = self._settings.node_id
        wanted_id = BrokerId(node_id) if node_id >= 0 else None
        world = self._world
        self._identity = read_identity(world.disk, wanted_id)
        self._bound = await bind(*self._listening_at, "--peer")
        if self._identity is None and self._listed:
            self._identity = await self._join(wanted_id)
        elif self._identity is None:
            self._identity = load_identity(world.disk, world.randomness, wanted_id)
        elif self._identity.is_clustered:
            self._sockets.listen(self._bound)
        await self._find_own_address()
        assert self._own_address is not None, "it was found"
        self._introductions = Introductions(
            self._identity,
            self._incarnation,
            self._own_address,
            self._listed,
            world.clock,
            ask=self._sockets.ask,
            set_addresses=self._sockets.set_addresses,
            connected=lambda: self._sockets.connections.connected,
            is_member=self._is_member,
        )
        self._sockets.connections.is_known = self._introductions.is_known
        if self._joining is not None:
            self._introductions.learn(self._joining.places)
        return self._identity

    async def _join(self, wanted_id: BrokerId | None) -> Identity:
        joining = self._joining = Joining(
            self._world.disk,
            self._world.randomness,
            self._world.clock,
            addresses=self._listed,
            wanted_id=wanted_id,
            incarnation=self._incarnation,
            own_address=self._own_address,
            ask=self._sockets.ask,
        )
        self._sockets.listen(self._bound)
        joining.begin()
        try:
            identity: Identity = await as_future(joining.joined)
        finally:
            joining.close()
        self._own_address, self._seen_as = joining.own_address, joining.seen_as
        return identity

    async def _find_own_address(self) -> None:
        """Where others find this broker: as the list has it, if it can be reached there; or where it listens."""
        bound_at = Address(*self._bound[0].getsockname()[:2])
        if self._own_address is None and bound_at in self._listed:
            self._own_address = bound_at
        if self._own_address is None and self._identity is not None and self._identity.is_clustered:
            self._own_address = await as_future(self._reach_itself())
        if self._own_address is None:
            self._own_address = self.reachable(bound_at)

    def _reach_itself(self) -> Pending[Address | None]:
        found: Pending[Address | None] = Pending()

        def look(address: Address, asked: Pending[HelloAnswer | None]) -> None:
            answer = asked.result()
            if answer is not None and answer.incarnation == self._incarnation and not found.is_done:
                found.resolve(address)
            elif answer is not None:
                self._seen_as = answer.seen_as

        identity = self._identity
        assert identity is not None, "who it is has been read"
        hello = Hello(self._incarnation, identity.directory_id, identity.cluster_id, identity.broker_id)
        asked = [self._sockets.ask(address, hello) for address in self._listed]
        for address, each in zip(self._listed, asked, strict=True):
            each.then(partial(look, address))
        all_of(asked).then(lambda _: None if found.is_done else found.resolve(None))
        return found

    async def open_to_others(self, broker: Broker) -> None:
        """It was alone until now."""
        await as_future(start(broker.open_to_others()))
        self._identity = broker.identity
        self._sockets.listen(self._bound)
        self.serve(broker)

    def serve(self, broker: Broker) -> None:
        """From now on it is this broker that hears the others."""
        assert self._introductions is not None, "it has joined"
        self._broker = broker
        self._sockets.connections.max_frame_bytes = largest_frame(broker.settings.socket_request_max_bytes)
        broker.use_peers(self._sockets)
        broker.on_brokers = self._learn_registered
        self._introductions.begin()
        for peer in self._sockets.connections.connected.values():
            broker.connected(peer)

    async def stop(self) -> None:
        self._broker = None
        if self._introductions is not None:
            self._introductions.close()
        await self._sockets.stop()

    # What other brokers say

    def connected(self, peer: Handshake) -> None:
        if self._broker is not None:
            self._broker.connected(peer)

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        if self._broker is not None:  # or else it is said again
            self._broker.received(sender, frame)

    def progressed(self, broker: BrokerId) -> None:
        if self._broker is not None:
            self._broker.progressed(broker)

    def lost(self, broker: BrokerId) -> None:
        if self._broker is not None:
            self._broker.lost(broker)

    def _handshake(self) -> Handshake:
        identity = self._identity
        if identity is None:
            return Handshake(BrokerId(NOBODY), "", bytes(16), self._incarnation, is_metadata_empty=True)
        return Handshake(
            identity.broker_id,
            identity.cluster_id,
            identity.directory_id,
            self._incarnation,
            is_metadata_empty=False,
            minor_version=MINOR_VERSION,
        )

    def _greeted(self, frame: memoryview, connection: PeerConnection) -> None:
        hello = decode_hello(frame)
        seen_as = connection.where.rpartition(":")[0].strip("[]")
        self._answer(hello, seen_as).then(lambda answer: connection.answer_and_close(encode_answer(answer.result())))

    def _answer(self, hello: Hello, seen_as: str) -> Pending[HelloAnswer]:
        identity, introductions = self._identity, self._introductions
        if identity is None:
            return done(HelloAnswer(self._incarnation, seen_as=seen_as))
        places: tuple[Place, ...] = ()
        if introductions is not None:
            introductions.greeted(hello)
            places = introductions.places
        answer = HelloAnswer(self._incarnation, identity.cluster_id, identity.broker_id, seen_as, places=places)
        return start(self._give_id(hello, answer)) if hello.joins and not hello.cluster_id else done(answer)

    async def _give_id(self, hello: Hello, answer: HelloAnswer) -> HelloAnswer:
        host, port = hello.place.address if hello.place is not None else ("", 0)
        if self._broker is None:
            return structs.replace(answer, problem="the cluster is starting")
        try:
            given = await self._broker.controller.submit(
                ReserveBrokerId(hello.directory_id, BrokerId(hello.broker), host, port)
            )
        except Refused as refused:
            return structs.replace(answer, problem=refused.message or refused.code.name)
        return structs.replace(answer, given_id=given)

    def _learn_registered(self, image: ClusterImage) -> None:
        """What the metadata says of where brokers are, and who is none."""
        assert self._introductions is not None, "it has joined"
        for broker in self._introductions.others:
            if not self._introductions.is_known(broker):
                self._introductions.forget(broker)
        listeners = ((broker.broker_id, broker.listener(PEER_LISTENER)) for broker in image.brokers.values())
        self._introductions.learn(Place(broker, each.host, each.port) for broker, each in listeners if each is not None)
        self._sockets.connections.leave_unknown()

    def _is_member(self, broker: BrokerId) -> bool:
        """Whether the metadata knows it; without metadata it may be anybody."""
        return self._broker is None or self._broker.metadata.is_member(broker)
