"""Members of a group: they come and go, share partitions out among themselves, and commit what they own.

What all of them are told is held together: in one generation a partition has one owner, a commit of an older generation
is not taken, and what was committed is there in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zurau.simulation.brokers.clients.groups import GroupClient
from zurau.simulation.brokers.connection import Unreachable
from zurau.simulation.brokers.invariants import broken, require
from zurau.simulation.consumer import assignment_of, partitions_of
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.heartbeat import HeartbeatRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from zurau.wire.kafka.messages.leave_group import LeaveGroupRequest, MemberIdentity
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from zurau.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster

GROUP = "members"
SESSION_MS, REBALANCE_MS = 1000, 1000
#: How long a member waits for the others to join.
PATIENCE_MS = 4000
#: It is not, or no more, what it believed to be, and joins again.
AGAIN = frozenset({
    ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
})  # fmt: skip


class GroupBook:
    """What all members of the group were told."""

    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = range(partitions)
        #: By generation, its leader and partition.
        self._owners: dict[tuple[int, str, int], str] = {}
        #: The last one that was agreed upon. One that members have only joined for goes with its coordinator.
        self.generation = -1
        self._count = 0
        self._committed = dict.fromkeys(self.partitions, -1)
        self._unresolved: set[tuple[int, int]] = set()

    def owns(self, generation: int, leader: str, member: str, partitions: list[int]) -> None:
        self.generation = max(self.generation, generation)
        for index in partitions:
            owner = self._owners.setdefault((generation, leader, index), member)
            seen = f"{self.topic}-{index} belongs to {owner} and to {member} in generation {generation}"
            require(owner == member, "OneOwner", seen)

    def next_offset(self) -> int:
        self._count += 1
        return self._count

    def committed(self, offset: int, partitions: list[int], generation: int, latest: int) -> None:
        """`latest`: the generation that was known when this was asked for."""
        seen = f"a commit of generation {generation} is taken after {latest} has begun"
        require(generation >= latest, "OneOwner", seen)
        self._committed |= {index: max(offset, self._committed[index]) for index in partitions}

    def may_be_committed(self, offset: int, partitions: list[int]) -> None:
        self._unresolved |= {(index, offset) for index in partitions}

    def found(self, index: int, offset: int) -> None:
        if offset < self._committed[index] and (index, offset) not in self._unresolved:
            seen = f"{GROUP} finds {offset} for {self.topic}-{index}, and has committed {self._committed[index]}"
            broken("CommittedOffsetsNeverGoBack", seen)


class Member(GroupClient):
    def __init__(self, cluster: SimulatedCluster, number: int, book: GroupBook) -> None:
        super().__init__(cluster, f"member-{number}", GROUP)
        self._book = book
        self._member_id = ""
        self._generation = -1
        self._owned: list[int] = []

    async def run(self) -> None:
        while self.goes_on:
            if not await self._join():
                await self.rest()
                continue
            while self._is_member and not self.cluster.is_calm:
                await self._work()
                await self.think()
            if self.chance.random() < 0.3:
                await self._leave()
        while not await self._look():
            await self.rest()

    @property
    def _is_member(self) -> bool:
        return self._generation >= 0

    async def _join(self) -> bool:
        """Whether it is a member now, and knows what it owns."""
        self._generation, self._owned = -1, []
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="simulated", metadata=b"")],
        )
        answer = await self._try(request, 5, PATIENCE_MS)
        if answer is None:
            return False
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._member_id = answer.member_id
        if answer.error_code != ErrorCode.NONE:
            return False
        return await self._sync(answer)

    async def _sync(self, joined: Any) -> bool:
        members = sorted(member.member_id for member in joined.members)
        shares: dict[str, list[int]] = {member: [] for member in members}
        for index in self._book.partitions if members else ():
            shares[members[index % len(members)]].append(index)
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment_of(share))
                for member, share in shares.items()
            ],
        )
        answer = await self._try(request, 3, PATIENCE_MS)
        if answer is None or answer.error_code != ErrorCode.NONE:
            return False
        self._generation, self._owned = joined.generation_id, partitions_of(answer.assignment)
        self._book.owns(self._generation, joined.leader, self._member_id, self._owned)
        self.history.trace.note(f"{self.name} owns {self._owned} in generation {self._generation}")
        return True

    async def _work(self) -> None:
        if self._owned and self.chance.random() < 0.6:
            await self._commit()
        elif self.chance.random() < 0.05:
            await self._leave()
        else:
            await self._try(
                HeartbeatRequest(group_id=GROUP, generation_id=self._generation, member_id=self._member_id), 3
            )

    async def _commit(self) -> None:
        generation, owned, latest = self._generation, self._owned, self._book.generation
        offset = self._book.next_offset()
        items = [OffsetCommitRequestPartition(partition_index=index, committed_offset=offset) for index in owned]
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=generation,
            member_id=self._member_id,
            topics=[OffsetCommitRequestTopic(name=self._book.topic, partitions=items)],
        )
        answer = await self._try(request, 7)
        codes = set() if answer is None else {each.error_code for each in answer.topics[0].partitions}
        if codes == {ErrorCode.NONE}:
            self._book.committed(offset, owned, generation, latest)
        else:
            self._book.may_be_committed(offset, owned)

    async def _leave(self) -> None:
        await self._try(LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=self._member_id)]), 3)
        self._member_id, self._generation, self._owned = "", -1, []

    async def _look(self) -> bool:
        """When nothing goes wrong any more."""
        topics = [OffsetFetchRequestTopic(name=self._book.topic, partition_indexes=list(self._book.partitions))]
        answer = await self._try(OffsetFetchRequest(group_id=GROUP, topics=topics), 5)
        if answer is None or answer.error_code != ErrorCode.NONE:
            return False
        for each in answer.topics[0].partitions:
            self._book.found(each.partition_index, each.committed_offset)
        return True

    async def _try(self, request: Any, version: int, timeout_ms: float | None = None) -> Any:
        """The answer, whatever it says; None if there is none."""
        try:
            answer = await self.ask_coordinator(request, version, timeout_ms)
        except Unreachable:
            return None
        codes = [answer.error_code] if hasattr(answer, "error_code") else []
        codes += [each.error_code for topic in getattr(answer, "topics", ()) for each in topic.partitions]
        if any(code != ErrorCode.NONE for code in codes):
            self._refused(codes)
        return answer

    def _refused(self, codes: list[int]) -> None:
        self._generation = -1
        if ErrorCode.UNKNOWN_MEMBER_ID in codes:
            self._member_id = ""
        if not AGAIN.issuperset(codes):
            self.refused(set(codes) - AGAIN)
