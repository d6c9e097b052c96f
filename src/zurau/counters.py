"""What a node counts about itself, for whoever shows a broker's health.

Plain numbers: the node adds to them as things happen, anybody may read them at any time.
"""

from __future__ import annotations

import msgspec


class Counters(msgspec.Struct):
    """Since the start of the process, unless it says otherwise."""

    #: Open right now.
    connections: int = 0
    connections_accepted: int = 0
    #: Turned away at the door: max.connections, or no descriptors left.
    connections_refused: int = 0
    #: Closed because of what they sent.
    protocol_violations: int = 0
    #: Closed as the largest holders of unfinished requests when queued.max.request.bytes was used up.
    closed_for_request_memory: int = 0
    #: Closed because they did not take their answers when queued.max.response.bytes was used up.
    closed_for_response_memory: int = 0
    #: Bytes held right now by requests that have arrived in part, wait their turn or wait for something.
    request_bytes: int = 0
    #: Bytes held right now by answers that their clients have not taken.
    response_bytes: int = 0
    #: Fetches that had to wait until there was room for their answers.
    fetches_delayed: int = 0
    #: Steps of the loop that took longer than 100 ms, and the longest of all steps.
    slow_steps: int = 0
    slowest_step_ms: float = 0.0
