"""Reads topics together with the other members of a group, and remembers how far it got.

Which partitions are ours may change whenever a member comes or goes. `poll` notices, commits what was handed out
before, joins again, and goes on from the committed offsets of its new assignment.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

from zurau.client.cluster.cluster import Cluster
from zurau.client.consumer.consumer import Consumer, PartitionRecords
from zurau.client.consumer.fetcher import GO_TO_END, GO_TO_START, FetchSettings
from zurau.client.errors import BrokerRefused, ClientError
from zurau.client.groups.membership import GENERATION_OVER, GroupSettings, Membership
from zurau.client.groups.offsets import commit_offsets, fetch_offsets
from zurau.client.offsets import end_offsets, start_offsets
from zurau.ids import Offset, TopicPartition

COMMIT_INTERVAL_S = 1.0
ROUND_S = 0.5
HURRY_S = 2.0


class GroupConsumer:
    """Use it in a `with` block; leaving commits and leaves the group.

    Records count as done once the next `poll` is called: that is when they are committed, at most once a second.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Iterable[str],
        *,
        start: str = GO_TO_START,
        fetch: FetchSettings | None = None,
        settings: GroupSettings | None = None,
    ) -> None:
        assert start in {GO_TO_START, GO_TO_END}
        self._cluster = cluster
        self._group = group
        self._start = start
        self._consumer = Consumer(cluster, fetch or FetchSettings(on_out_of_range=start))
        self._membership = Membership(cluster, group, topics, settings or GroupSettings())
        self._committed: dict[TopicPartition, Offset] = {}
        self._committed_s = time.monotonic()

    @property
    def assignment(self) -> list[TopicPartition]:
        return sorted(self._consumer.positions)

    @property
    def generation(self) -> int:
        """The group's, as this member knows it: it grows with every assignment."""
        return self._membership.generation

    @property
    def member_id(self) -> str:
        return self._membership.member_id

    @property
    def positions(self) -> dict[TopicPartition, Offset]:
        return self._consumer.positions

    def poll(self, timeout_s: float = ROUND_S) -> list[PartitionRecords]:
        """What has arrived for us. Calling it says that everything returned before is done."""
        if time.monotonic() - self._committed_s >= COMMIT_INTERVAL_S:
            self._commit_if_possible()
        if self._membership.is_over:
            self._rejoin()
        if not self._consumer.positions:
            # More members than partitions: nothing to read until that changes.
            time.sleep(min(timeout_s, ROUND_S))
            return []
        return self._poll_assigned(timeout_s)

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Go on from another offset; what lies between was not done, and is not committed."""
        self._consumer.seek(partition, offset)

    def commit(self) -> None:
        """Store how far we got."""
        self._commit(self._cluster)

    def close(self) -> None:
        """Commit and leave. Raises when what was read could not be committed, for somebody will read it again."""
        try:
            self._commit_if_possible()
        finally:
            self._consumer.close()
            self._membership.leave()

    def _close_in_a_hurry(self) -> None:
        """Something went wrong already, or somebody wants us to stop: commit and leave if that goes quickly."""
        with self._cluster.sibling(HURRY_S) as cluster, suppress(ClientError):
            self._commit(cluster)
        self._consumer.close()
        self._membership.leave()

    def _commit(self, cluster: Cluster) -> None:
        self._committed_s = time.monotonic()
        positions = self._consumer.positions
        changed = {
            partition: offset for partition, offset in positions.items() if self._committed.get(partition) != offset
        }
        if changed:
            generation, member_id = self._membership.generation, self._membership.member_id
            commit_offsets(cluster, self._group, changed, generation=generation, member_id=member_id)
            self._committed |= changed

    def _poll_assigned(self, timeout_s: float) -> list[PartitionRecords]:
        before = self._consumer.positions
        try:
            return self._consumer.poll(timeout_s)
        except (ClientError, KeyboardInterrupt, SystemExit):
            # What was on its way to the caller did not get there, and is not done.
            self._consumer.assign(before)
            raise

    def _commit_if_possible(self) -> None:
        """Commit, unless it is too late: then another member has our partitions and reads these records again."""
        try:
            self.commit()
        except BrokerRefused as error:
            if error.code not in GENERATION_OVER:
                raise
            self._membership.end_generation()

    def _rejoin(self) -> None:
        self._commit_if_possible()
        # From here on the old assignment may be somebody else's: whatever happens next, it is not committed again.
        self._consumer.assign({})
        assigned = self._membership.join()
        # Where the group begins without an offset is committed too: its next member begins there, not further on.
        self._committed = fetch_offsets(self._cluster, self._group, assigned)
        self._committed_s = time.monotonic()
        missing = [partition for partition in assigned if partition not in self._committed]
        find = start_offsets if self._start == GO_TO_START else end_offsets
        self._consumer.assign(self._committed | find(self._cluster, missing))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._close_in_a_hurry()
