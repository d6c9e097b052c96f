"""Tells the controller, again and again, that this broker is alive and how far it has followed the metadata."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from zurau.errors import Refused
from zurau.machines.controller.commands import BrokerHeartbeat, BrokerHeartbeatReply
from zurau.pending import Pending, start
from zurau.ports import Clock, Timer

#: A controller that is silent for so long is a problem, and not the next one being elected.
UNHEARD_MS = 5000
#: How often a broker that wants to stop asks whether it may.
SHUTDOWN_INTERVAL_MS = 50


class Heartbeats:
    def __init__(
        self,
        submit: Callable[[BrokerHeartbeat], Pending[BrokerHeartbeatReply]],
        heartbeat: Callable[[bool], BrokerHeartbeat],
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
        #: By the wall clock: since when the controller has not answered, once that is longer than a moment.
        self._failing_since_ms: int | None = None
        self._wants_shutdown = False
        #: Since this broker wants to stop: the controller has answered; and nobody needs this broker any more.
        self.is_heard = False
        self.may_stop = False

    def want_shutdown(self) -> None:
        """Ask the controller, from now on and more often, whether this broker may stop."""
        self._wants_shutdown = True
        self._interval_ms = min(self._interval_ms, SHUTDOWN_INTERVAL_MS)
        self.close()
        self.begin()

    def begin(self) -> None:
        self._timer = self._clock.call_later(self._interval_ms, self.begin)
        start(self._beat())

    def say_now(self) -> None:
        """Between two beats, if it has begun: somebody may think that this broker is gone."""
        if self._timer is not None:
            start(self._beat())

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def unheard_since_ms(self) -> int | None:
        since_ms = self._failing_since_ms
        return since_ms if since_ms is not None and self._clock.now_ms() - since_ms > UNHEARD_MS else None

    async def _beat(self) -> None:
        self._failing_since_ms = self._failing_since_ms or self._clock.now_ms()
        with suppress(Refused):  # the next one may be heard
            asked = self._wants_shutdown
            reply = await self._submit(self._heartbeat(asked))
            self._failing_since_ms = None
            if asked:
                self.is_heard, self.may_stop = True, self.may_stop or reply.should_shut_down
            if not reply.is_fenced and not self.unfenced.is_done:
                self.unfenced.resolve(None)
