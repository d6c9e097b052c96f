"""A whole broker in an invented world: it is asked in real frames and can lose power at any moment."""

from __future__ import annotations

from typing import Any

from zurau.api.client import Client
from zurau.api.kafka.dispatch import answer
from zurau.broker.broker import Broker
from zurau.broker.caller import ANONYMOUS, Caller
from zurau.broker.identity import load_identity
from zurau.broker.settings import BrokerSettings
from zurau.broker.upkeep import Upkeep
from zurau.errors import raise_if_broken
from zurau.ids import Address, BrokerId
from zurau.log.settings import LogSettings
from zurau.machines.groups.settings import GroupSettings
from zurau.pending import Pending, start
from zurau.simulation.disk import SimulatedDisk
from zurau.simulation.world import VirtualClock, make_world
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.schema import Message

CLIENT = Client(Caller(ANONYMOUS, "127.0.0.1", "PLAINTEXT"), Address("127.0.0.1", 9092))


class SimulatedBroker:
    """A broker on a disk that forgets; the disk and the clock stay when the broker goes."""

    def __init__(
        self,
        seed: int,
        log_settings: LogSettings,
        broker_settings: BrokerSettings | None = None,
        disk: SimulatedDisk | None = None,
    ) -> None:
        self._seed = seed
        self._log_settings = log_settings
        self._broker_settings = broker_settings or BrokerSettings(offsets_topic_num_partitions=2)
        self.disk = disk or SimulatedDisk(seed)
        self.clock = VirtualClock()
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Open the broker on whatever the disk holds."""
        self.starts += 1
        world = make_world(self.disk, self.clock, self._seed * 1000 + self.starts, self.disk.boot_id)
        identity = load_identity(self.disk, world.randomness, BrokerId(1))
        self.broker = Broker(world, identity, self._broker_settings, self._log_settings, GroupSettings())
        self.wait(start(self.broker.open()))
        Upkeep(self.broker).start()

    def lose_power(self) -> None:
        """Everything that was not flushed may be gone; nobody gets an answer any more."""
        self.clock.forget_timers()
        self.disk.crash()

    def kill(self) -> None:
        """The process ends at once; what it wrote is there, flushed or not."""
        self.clock.forget_timers()

    def stop(self) -> None:
        """Stop in good order."""
        self.broker.close()
        self.clock.forget_timers()

    def ask(self, request: Message, version: int, client: Client = CLIENT) -> Pending[Any]:
        """The decoded response; it may arrive as time passes."""
        header = RequestHeader(request.api_key, version, 1, "simulated")
        frame = memoryview(bytearray(b"".join(encode_request(header, request))))[4:]
        response: Pending[Any] = Pending()

        def decoded(pieces: Pending[Any]) -> None:
            try:
                frame = memoryview(b"".join(pieces.result()))[4:]
            except Exception as error:  # noqa: BLE001 - carried to whoever asked
                raise_if_broken(error)
                response.fail(error)
            else:
                response.resolve(decode_response(header, frame) if frame else None)

        answer(frame, client, self.broker)[1].then(decoded)
        return response

    def wait(self, pending: Pending[Any], patience_ms: int = 60_000) -> Any:
        """Let time pass until the answer is there."""
        for _ in range(patience_ms):
            if pending.is_done:
                return pending.result()
            self.clock.advance(1)
        raise TimeoutError("no answer came")

    def tell(self, request: Message, version: int, client: Client = CLIENT) -> Any:
        """Ask and wait."""
        return self.wait(self.ask(request, version, client))
