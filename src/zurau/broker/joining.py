"""How brokers that are told of each other become one cluster.

A directory that is new belongs to no cluster yet. It joins the one that any of the others is in. Only when all of them
answer and none is in a cluster does the one with the smallest id found a new one; so a broker that has lost its disk
never begins an empty cluster of its own. Until then it waits, and says for whom.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec.structs import replace

from zurau.broker.identity import ID_BYTES, Identity, new_identity, save_identity
from zurau.ids import BrokerId, id_text
from zurau.pending import Pending
from zurau.ports import Clock, Disk, Handshake, Randomness, Timer

log = logging.getLogger("zurau.broker")

#: How often a broker that waits says so.
SAY_AGAIN_MS = 5000


class Joining:
    """Told which brokers are connected, it finds out who this one is."""

    def __init__(
        self,
        disk: Disk,
        randomness: Randomness,
        clock: Clock,
        broker_id: BrokerId,
        others: tuple[BrokerId, ...],
        known: Identity | None,
    ) -> None:
        """`known`: what the directory says, if it belongs to a cluster already."""
        self._disk = disk
        self._randomness = randomness
        self._clock = clock
        self._others = others
        self.identity = known or new_identity(broker_id, randomness)
        self._connected: dict[BrokerId, Handshake] = {}
        self._timer: Timer | None = None
        #: Done when this broker belongs to a cluster.
        self.joined: Pending[None] = Pending()
        #: Called when it does, and others have to hear of it.
        self.on_joined: Callable[[], None] = lambda: None
        if known is not None:
            self.joined.resolve(None)
        else:
            self._say_later()

    @property
    def waits_for(self) -> list[BrokerId]:
        return [broker for broker in self._others if broker not in self._connected]

    def connected(self, peer: Handshake) -> None:
        self._connected[peer.broker] = peer
        if not self.joined.is_done:
            self._look()

    def lost(self, broker: BrokerId) -> None:
        self._connected.pop(broker, None)

    def _look(self) -> None:
        clusters = {peer.cluster_id for peer in self._connected.values()} - {""}
        if clusters:
            # Two of them cannot be: brokers of different clusters do not talk to each other.
            self._belong_to(min(clusters), is_founder=False)
        elif not self.waits_for and self.identity.broker_id < min(self._others):
            self._belong_to(id_text(self._randomness.bytes(ID_BYTES)), is_founder=True)

    def _belong_to(self, cluster_id: str, *, is_founder: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.identity = replace(self.identity, cluster_id=cluster_id, is_founder=is_founder)
        save_identity(self._disk, self.identity)
        log.info("broker %d %s cluster %s", self.identity.broker_id, "founds" if is_founder else "joins", cluster_id)
        self.joined.resolve(None)
        self.on_joined()

    def _say_later(self) -> None:
        self._timer = self._clock.call_later(SAY_AGAIN_MS, self._say)

    def _say(self) -> None:
        missing = ", ".join(map(str, self.waits_for)) or f"broker {min(self._others)} to found the cluster"
        log.warning("this broker is in no cluster yet, and waits for: %s", missing)
        self._say_later()
