"""Tells the controller, again and again, that this broker is alive and how far it has followed the metadata."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from zurau.errors import Refused
from zurau.machines.controller.commands import BrokerHeartbeat, BrokerHeartbeatReply, ControllerCommand
from zurau.pending import Pending, start
from zurau.ports import Clock, Timer


class Heartbeats:
    def __init__(
        self,
        submit: Callable[[ControllerCommand], Pending[BrokerHeartbeatReply]],
        heartbeat: Callable[[], BrokerHeartbeat],
        clock: Clock,
        interval_ms: int,
    ) -> None:
        self._submit = submit
        self._heartbeat = heartbeat
        self._clock = clock
        self._interval_ms = interval_ms
        self._timer: Timer | None = None
        #: Done when the controller has heard that this start of the broker has seen its registration.
        self.unfenced: Pending[None] = Pending()

    def begin(self) -> None:
        self._timer = self._clock.call_later(self._interval_ms, self.begin)
        start(self._beat())

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def _beat(self) -> None:
        with suppress(Refused):  # the next one may be heard
            reply = await self._submit(self._heartbeat())
            if not reply.is_fenced and not self.unfenced.is_done:
                self.unfenced.resolve(None)
