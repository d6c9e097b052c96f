"""Being a member of a classic consumer group: join, sync, heartbeat, leave.

The heartbeat runs in a thread with a connection of its own, because the caller may take long over its records. It
only reports what it hears; everything else happens in the caller's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import BrokerRefused, ClientError, check, error_code
from zurau.client.groups.assignment import (
    PROTOCOL_TYPE,
    RANGE,
    assign_ranges,
    assigned_partitions,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from zurau.client.retry import retry
from zurau.ids import TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.heartbeat import HeartbeatRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from zurau.wire.kafka.messages.leave_group import LeaveGroupRequest, MemberIdentity
from zurau.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from zurau.wire.kafka.schema import R, Request

NO_GENERATION = -1
STOP_PATIENCE_S = 1.0
LEAVE_PATIENCE_S = 2.0
#: The coordinator forgot us: join as somebody new.
_STRANGER = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
#: Our part in this generation is over: join again.
GENERATION_OVER = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, *_STRANGER}


@dataclass(frozen=True, slots=True)
class GroupSettings:
    session_timeout_ms: int = 30_000
    rebalance_timeout_ms: int = 60_000
    heartbeat_interval_s: float = 1.0


class Rejoin(ClientError):
    """This generation is over; not an error, but the way back to the top of `join`."""

    retriable = True


class Membership:
    """One member of one group. `is_over` says that it is time to join again."""

    def __init__(self, cluster: Cluster, group: str, topics: Iterable[str], settings: GroupSettings) -> None:
        self._cluster = cluster
        self._group = group
        self._topics = sorted(topics)
        self._settings = settings
        #: Joining and syncing take as long as the slowest member.
        self._patience_s = settings.rebalance_timeout_ms / 1000 + cluster.timeout_s
        self._heartbeat: Heartbeat | None = None
        self.member_id = ""
        self.generation = NO_GENERATION

    @property
    def is_over(self) -> bool:
        return self._heartbeat is None or self._heartbeat.is_over.is_set()

    def join(self) -> list[TopicPartition]:
        """Become part of the next generation; the partitions that are ours in it."""
        self._stop_heartbeat()
        assigned = retry(self._join_and_sync, self._patience_s, on_failure=lambda: self._cluster.forget(self._topics))
        self._heartbeat = Heartbeat(
            self._cluster.sibling(), self._group, self.generation, self.member_id, self._settings.heartbeat_interval_s
        )
        self._heartbeat.start()
        return assigned

    def end_generation(self) -> None:
        """The coordinator told us elsewhere that our part is over."""
        self._stop_heartbeat()

    def leave(self) -> None:
        """Tell the coordinator, so that the others need not wait for our session to run out.

        That is a courtesy: it is tried for a short time, and whether it succeeds is nobody's concern any more.
        """
        self._stop_heartbeat()
        if self.member_id:
            member = MemberIdentity(member_id=self.member_id, reason="the consumer was closed")
            request = LeaveGroupRequest(group_id=self._group, members=[member])
            with self._cluster.sibling(LEAVE_PATIENCE_S) as cluster, suppress(ClientError):
                cluster.retry(lambda: cluster.ask_coordinator(self._group, request))
            self.member_id = ""

    def _stop_heartbeat(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def _join_and_sync(self) -> list[TopicPartition]:
        joined = self._join()
        assignments = self._assign(joined) if joined.leader == joined.member_id else {}
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(partitions))
                for member, partitions in assignments.items()
            ],
        )
        answer = self._ask(request)
        self._check(answer.error_code, "syncing")
        self.generation = joined.generation_id
        return assigned_partitions(answer.assignment)

    def _join(self) -> JoinGroupResponse:
        """Join; the first time, the coordinator only tells us our name (KIP-394)."""
        while True:
            protocol = JoinGroupRequestProtocol(name=RANGE, metadata=encode_subscription(self._topics))
            request = JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=self._settings.session_timeout_ms,
                rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
                member_id=self.member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[protocol],
            )
            answer = self._ask(request)
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                continue
            self._check(answer.error_code, "joining")
            self.member_id = answer.member_id
            return answer

    def _ask(self, request: Request[R]) -> R:
        return self._cluster.ask_coordinator(self._group, request, self._patience_s)

    def _check(self, code: int, doing: str) -> None:
        if code in _STRANGER:
            self.member_id = ""
        if code in GENERATION_OVER:
            raise Rejoin(f"group {self._group!r} did not settle; is another member joining and leaving all the time?")
        check(code, f"{doing} group {self._group!r}")

    def _assign(self, joined: JoinGroupResponse) -> dict[str, list[TopicPartition]]:
        subscriptions = {member.member_id: subscribed_topics(member.metadata) for member in joined.members}
        self._cluster.refresh(sorted({topic for topics in subscriptions.values() for topic in topics}))
        known = self._cluster.metadata.topics
        return assign_ranges(subscriptions, lambda topic: len(known[topic].partitions) if topic in known else 0)


class Heartbeat(threading.Thread):
    """Says that we are alive, and listens for the end of the generation."""

    def __init__(self, cluster: Cluster, group: str, generation: int, member_id: str, interval_s: float) -> None:
        super().__init__(name=f"heartbeat of {group}", daemon=True)
        self._cluster = cluster
        self._group = group
        self._request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        self._interval_s = interval_s
        self._stopped = threading.Event()
        #: Set when the generation is over, for whatever reason.
        self.is_over = threading.Event()

    def run(self) -> None:
        with self._cluster:
            while not self._stopped.wait(self._interval_s) and not self.is_over.is_set():
                try:
                    self._cluster.retry(self._beat)
                except ClientError:
                    self.is_over.set()

    def stop(self) -> None:
        self._stopped.set()
        # It may be waiting for a broker that is gone; then it ends by itself later.
        self.join(timeout=STOP_PATIENCE_S)

    def _beat(self) -> None:
        answer = self._cluster.ask_coordinator(self._group, self._request)
        if answer.error_code in GENERATION_OVER:
            self.is_over.set()
        elif answer.error_code:
            raise BrokerRefused(error_code(answer.error_code), f"heartbeat of group {self._group!r}")
