"""The connections of one broker with all others: one for each, dialled by the one with the larger id.

A connection that is lost is dialled again, sooner at first and at longer intervals later, and by chance a little
earlier or later, so that brokers that lost each other together do not come back together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from zurau.broker.peers.acquaintance import reason_to_keep, reason_unknown
from zurau.broker.peers.connection import PeerConnection
from zurau.broker.peers.frame_memory import FrameMemory
from zurau.counters import Counters
from zurau.ids import BrokerId
from zurau.ports import Buffer, Clock, Handshake, PeerListener, Randomness, Timer
from zurau.records.record import UNPACKED_BYTES_MAX
from zurau.settings import INT32_MAX, KIB, MIB, MINUTE_MS
from zurau.wire.peer.frame_reader import HEAD_BYTES_MAX

log = logging.getLogger("zurau.peers")

SCRATCH_BYTES = 256 * KIB
#: What a response has at most before its last batch (`response_max_bytes`), with room for what is about the batches.
RESPONSE_BYTES_MAX = 8 * MIB
BACK_OFF_MS = 50
BACK_OFF_MAX_MS = 1000
#: Connections whose handshake is still to come.
UNKNOWN_MAX = 100
#: The same warning is said once in so long.
REPEAT_MS = MINUTE_MS
WARNINGS_MAX = 100

Address = tuple[str, int]


def largest_frame(request_max_bytes: int) -> int:
    """What another broker may send at most: a head, a response, and a last batch of any size. A batch came in a request
    of a client, and may have been compressed in another way since."""
    batch_bytes_max = max(request_max_bytes, UNPACKED_BYTES_MAX)
    return min(INT32_MAX, HEAD_BYTES_MAX + RESPONSE_BYTES_MAX + batch_bytes_max)


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Target:
    """A broker that is dialled until it is there."""

    __slots__ = ("address", "attempts", "connection", "timer")

    def __init__(self, address: Address) -> None:
        self.address = address
        self.attempts = 0
        self.connection: PeerConnection | None = None
        self.timer: Timer | None = None

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class PeerConnections:
    """`Peers`, on transports that somebody else makes: `dial` is asked to connect to an address and to tell the
    connection; who has accepted one asks for it with `accepted`."""

    def __init__(
        self,
        handshake: Callable[[], Handshake],
        listener: PeerListener,
        clock: Clock,
        randomness: Randomness,
        dial: Callable[[Address, PeerConnection], None],
        counters: Counters,
        max_frame_bytes: int = largest_frame(0),
    ) -> None:
        self.handshake = handshake
        self.listener = listener
        self.clock = clock
        self.counters = counters
        #: Every connection reads into this one buffer; what it reads is cut into frames before another one reads.
        self.scratch = bytearray(SCRATCH_BYTES)
        self.frame_memory = FrameMemory()
        #: Of connections that begin from now on.
        self.max_frame_bytes = max_frame_bytes
        self._randomness = randomness
        self._dial_at = dial
        self._targets: dict[BrokerId, Target] = {}
        self._connected: dict[BrokerId, PeerConnection] = {}
        #: Accepted, and without a handshake or on their way out.
        self._others: dict[PeerConnection, None] = {}
        self._warned_ms: dict[str, float] = {}
        self._is_stopped = False
        #: Whether a broker that has dialled this one is of its cluster.
        self.is_known: Callable[[BrokerId], bool] = _anybody
        #: Called with what somebody asks who is not known yet, and the connection that waits for the answer.
        self.on_hello: Callable[[memoryview, PeerConnection], None] = _nobody_answers

    @property
    def connected(self) -> dict[BrokerId, Handshake]:
        return {broker: it.peer for broker, it in self._connected.items() if it.peer is not None}

    def set_addresses(self, addresses: Mapping[BrokerId, Address]) -> None:
        """Where the other brokers are. Those with smaller ids are dialled. A connection that is there stays when the
        address changes, and ends when a broker has none any more."""
        own_id = self.handshake().broker
        wanted = {broker: address for broker, address in addresses.items() if broker < own_id}
        for broker in [each for each in self._targets if each not in wanted]:
            left = self._targets.pop(broker)
            left.stop()
            if left.connection is not None:
                left.connection.leave(f"broker {own_id} has no address of broker {broker} any more")
        for broker, address in wanted.items():
            target = self._targets.get(broker)
            if target is None:
                target = self._targets[broker] = Target(address)
            elif target.address == address:
                continue
            target.address, target.attempts = address, 0
            if target.connection is None:
                target.stop()
                self._dial(broker, target)

    def send(self, to: BrokerId, frame: Sequence[Buffer]) -> None:
        connection = self._connected.get(to)
        if connection is not None:
            connection.send(frame)

    def greet_again(self) -> None:
        """Who this broker is has changed: connect anew, with a handshake that says so."""
        for connection in list(self._connected.values()):
            connection.leave(f"broker {self.handshake().broker} belongs to a cluster now, and connects anew")

    def leave_unknown(self) -> None:
        """Some may have been let in while nobody could say whether they are of the cluster."""
        own_id = self.handshake().broker
        for broker, connection in list(self._connected.items()):
            if not self.is_known(broker):
                connection.leave(reason_unknown(own_id, broker))

    def stop(self) -> None:
        """Say goodbye to all."""
        self._is_stopped = True
        for target in self._targets.values():
            target.stop()
        dialling = [target.connection for target in self._targets.values() if target.connection is not None]
        self._targets.clear()
        for connection in dict.fromkeys((*self._others, *self._connected.values(), *dialling)):
            connection.leave(f"broker {self.handshake().broker} stops")

    def warn(self, text: str) -> None:
        """Say what somebody has to do something about, and not in every attempt."""
        now_ms = self.clock.monotonic_ms()
        said_ms = self._warned_ms.get(text)
        if said_ms is not None and now_ms < said_ms + REPEAT_MS:
            return
        if len(self._warned_ms) >= WARNINGS_MAX:
            self._warned_ms.clear()
        self._warned_ms[text] = now_ms
        log.warning("%s", text)

    # What connections say

    def accepted(self, where: str) -> PeerConnection | None:
        """Somebody has connected to us; None: there are too many of whom nobody knows who they are."""
        if self._is_stopped or len(self._others) >= UNKNOWN_MAX:
            return None
        connection = PeerConnection(self, where)
        self._others[connection] = None
        return connection

    def hello(self, frame: memoryview, connection: PeerConnection) -> None:
        self.on_hello(frame, connection)

    def reason_to_refuse(self, newcomer: Handshake) -> str | None:
        """Why a new connection is refused: nobody knows it, or for the sake of one that is there."""
        if not self.is_known(newcomer.broker):
            return reason_unknown(self.handshake().broker, newcomer.broker)
        present = self._connected.get(newcomer.broker)
        if present is None or present.peer is None:
            return None
        return reason_to_keep(present.peer, newcomer)

    def greeted(self, connection: PeerConnection, peer: Handshake) -> None:
        """It is one of us. A connection that it had before is over."""
        present = self._connected.get(peer.broker)
        if present is not None:
            present.abort()
            self._lost(present, peer.broker, "it has connected anew")
        self._others.pop(connection, None)
        self._connected[peer.broker] = connection
        connection.connected_ms = self.clock.monotonic_ms()
        log.info("connected with %s", connection)
        self.listener.connected(peer)

    def gone(self, connection: PeerConnection, reason: str) -> None:
        self._others.pop(connection, None)
        broker = connection.peer.broker if connection.peer is not None else connection.dialled
        if broker is None:
            return
        has_lasted = False
        if self._connected.get(broker) is connection:
            has_lasted = self.clock.monotonic_ms() >= connection.connected_ms + BACK_OFF_MAX_MS
            self._lost(connection, broker, reason)
        target = self._targets.get(broker)
        if target is not None and target.connection is connection:
            if connection.peer is None:
                log.debug("cannot connect to %s: %s", connection, reason)
            target.connection = None
            target.attempts = 1 if has_lasted else target.attempts + 1
            back_off_ms = self._back_off_ms(target.attempts)
            target.timer = self.clock.call_later(back_off_ms, lambda: self._dial(broker, target))

    def _lost(self, connection: PeerConnection, broker: BrokerId, reason: str) -> None:
        del self._connected[broker]
        log.info("the connection with %s is lost: %s", connection, reason)
        self.listener.lost(broker)

    # Dialling

    def _dial(self, broker: BrokerId, target: Target) -> None:
        target.timer = None
        target.connection = PeerConnection(self, address_text(*target.address), broker)
        self._dial_at(target.address, target.connection)

    def _back_off_ms(self, attempts: int) -> float:
        longest_ms = min(BACK_OFF_MAX_MS, BACK_OFF_MS << min(attempts - 1, 30))
        return longest_ms / 2 + self._randomness.below(longest_ms // 2 + 1)


def _anybody(broker: BrokerId) -> bool:  # noqa: ARG001 - who it is makes no difference
    return True


def _nobody_answers(frame: memoryview, connection: PeerConnection) -> None:  # noqa: ARG001 - what it is about
    connection.leave("this broker does not answer to strangers")
