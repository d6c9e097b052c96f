"""The other brokers of a cluster: where they are, the connections to them, and how this one came to be one of them."""

from __future__ import annotations

from zurau.broker.broker import Broker
from zurau.broker.identity import Identity, read_identity
from zurau.broker.joining import Joining
from zurau.errors import SettingsError
from zurau.ids import BrokerId
from zurau.node.acceptor import bind
from zurau.node.peers import PeerSockets
from zurau.node.run_futures import as_future
from zurau.node.settings import NodeSettings, parse_address, parse_voters
from zurau.node.turns import LoopTurns
from zurau.ports import Handshake, World


class Cluster:
    """Connects to the others first, then serves the broker that is made of what they say."""

    def __init__(self, settings: NodeSettings, world: World, turns: LoopTurns) -> None:
        self._own_id = BrokerId(settings.node_id)
        self._addresses = parse_voters(settings.quorum_voters)
        if self._own_id not in self._addresses:
            raise SettingsError(
                f"--quorum-voters {settings.quorum_voters!r} does not name this broker, {self._own_id}; the list is "
                "the same for all brokers, this one included"
            )
        self._listening_at = parse_address(settings.peer, "--peer") if settings.peer else self._addresses[self._own_id]
        self._incarnation = world.randomness.bytes(16)
        self._joining = Joining(
            world.disk,
            world.randomness,
            world.clock,
            self._own_id,
            self.others,
            read_identity(world.disk, self._own_id),
        )
        self._joining.on_joined = self._tell_others
        self._sockets = PeerSockets(self._handshake, self, world.clock, world.randomness, turns, world.counters)
        self._broker: Broker | None = None

    @property
    def others(self) -> tuple[BrokerId, ...]:
        return tuple(sorted(self._addresses.keys() - {self._own_id}))

    async def join(self) -> Identity:
        """Listen for the others, dial them, and wait until this broker belongs to a cluster."""
        self._sockets.listen(await bind(*self._listening_at, "--peer"))
        self._sockets.set_addresses(self._addresses)
        await as_future(self._joining.joined)
        return self._joining.identity

    def serve(self, broker: Broker) -> None:
        """From now on it is this broker that hears the others."""
        self._broker = broker
        broker.use_peers(self._sockets)
        for peer in self._sockets.connections.connected.values():
            broker.connected(peer)

    async def stop(self) -> None:
        self._broker = None
        await self._sockets.stop()

    # What other brokers say

    def connected(self, peer: Handshake) -> None:
        self._joining.connected(peer)
        if self._broker is not None:
            self._broker.connected(peer)

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        if self._broker is not None:  # or else it is said again
            self._broker.received(sender, frame)

    def progressed(self, broker: BrokerId) -> None:
        if self._broker is not None:
            self._broker.progressed(broker)

    def lost(self, broker: BrokerId) -> None:
        self._joining.lost(broker)
        if self._broker is not None:
            self._broker.lost(broker)

    def _handshake(self) -> Handshake:
        identity = self._joining.identity
        return Handshake(
            identity.broker_id,
            identity.cluster_id,
            identity.directory_id,
            self._incarnation,
            is_metadata_empty=not identity.cluster_id,
        )

    def _tell_others(self) -> None:
        """Who connected before knows a broker without a cluster."""
        self._sockets.connections.greet_again()
