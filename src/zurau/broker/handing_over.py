"""A broker that is told to stop hands over what it leads first (controlled shutdown).

The controller moves the leaders that it names, and says when everybody has heard of it. Replicas that elect their
leader are handed over by this broker itself, and the metadata last, so that there is a controller until the end. Its
clients find the new leaders with the next question; none of them has an error to handle. What nobody else could lead
stays until the end, and so does everything when the others are not there: a broker stops all the same.
"""

from __future__ import annotations

import logging

from zurau.broker.heartbeats import Heartbeats
from zurau.broker.leader_moves import LeaderMoves
from zurau.broker.waiting import until
from zurau.ports import Clock

log = logging.getLogger("zurau.broker")

#: How long a broker waits for others to take over, at most.
HAND_OVER_MS = 10_000
#: How long it waits for a controller that does not answer at all.
NO_CONTROLLER_MS = 2000
LOOK_EVERY_MS = 20


async def hand_over(heartbeats: Heartbeats, moves: LeaderMoves, clock: Clock) -> None:
    began_ms = clock.monotonic_ms()
    heartbeats.want_shutdown()

    def is_done() -> bool:
        has_left = moves.leave()
        waited_ms = clock.monotonic_ms() - began_ms
        is_unheard = not heartbeats.is_heard and waited_ms > NO_CONTROLLER_MS
        return has_left and (heartbeats.may_stop or is_unheard)

    if await until(clock, is_done, every_ms=LOOK_EVERY_MS, at_most_ms=HAND_OVER_MS):
        log.info("everything that others can lead is handed over, in %d ms", clock.monotonic_ms() - began_ms)
    else:
        log.warning("not everything could be handed over within %d ms; stopping all the same", HAND_OVER_MS)
