"""Who leads and who is in sync, in partitions that the controller leads (`replication.mode=isr`).

A decision about brokers may change thousands of partitions. `Drafts` holds them as the decision will leave them, and
gives one record for each topic. The rules are those of docs/replication.md: a set never becomes empty, since the last
one may be the last to know (11); who has lost something leaves, and if it was the last, whoever left before it without
a loss takes its place (12); of those that may lead, the preferred one does, or the one whose broker leads the fewest
(24).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from zurau.errors import Refused
from zurau.ids import BrokerId, Epoch, PartitionId, ReplicaId, TopicId
from zurau.machines.controller.commands import AlterPartition, ElectLeader
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ClusterImage, PartitionImage
from zurau.machines.controller.records import PartitionPlaced, PartitionsChanged
from zurau.machines.controller.sessions import BrokerSessions
from zurau.machines.controller.snapshot import placed
from zurau.wire.kafka.error_codes import ErrorCode


class Drafts:
    """Partitions as a decision will leave them. `active` are the brokers that may lead, as it will leave them."""

    def __init__(self, image: ClusterImage, sessions: BrokerSessions, active: Collection[BrokerId]) -> None:
        self._image = image
        self._sessions = sessions
        self._active = frozenset(active)
        self._changed: dict[PartitionId, PartitionImage] = {}

    def __getitem__(self, key: PartitionId) -> PartitionImage:
        return self._changed.get(key) or self._decided(key)

    def _decided(self, key: PartitionId) -> PartitionImage:
        """As it is before this decision."""
        return self._image.topics_by_id[key.topic_id].partitions[key.partition]

    def records(self) -> list[PartitionsChanged]:
        by_topic: dict[TopicId, list[PartitionPlaced]] = {}
        for key, changed in self._changed.items():
            by_topic.setdefault(key.topic_id, []).append(placed(changed))
        return [PartitionsChanged(topic_id=each, partitions=changed) for each, changed in by_topic.items()]

    # Changes

    def put(self, key: PartitionId, **changes: Any) -> PartitionImage:
        """Epochs grow by one in a decision; that of the leader also if it leads again in the end."""
        before, known = self._decided(key), self[key]
        if changes.get("leader", known.leader) != known.leader:
            changes["leader_epoch"] = before.leader_epoch + 1
        if "in_sync" in changes or "eligible" in changes:
            in_sync = changes.get("in_sync", known.in_sync)
            left = [each for each in known.in_sync if each not in in_sync]
            eligible = (*changes.get("eligible", known.eligible), *left)
            replicas = changes.get("replicas", known.replicas)
            there = [each for each in eligible if each.broker in replicas]
            changes["eligible"] = tuple(each for each in there if each not in in_sync)
        self._changed[key] = replace(known, partition_epoch=before.partition_epoch + 1, **changes)
        return self._changed[key]

    def leave(self, key: PartitionId, broker: BrokerId) -> None:
        """Not in sync any more, unless it is the last; and not the leader."""
        known = self[key]
        rest = tuple(each for each in known.in_sync if each.broker != broker) or known.in_sync
        leader = None if known.leader is not None and known.leader.broker == broker else known.leader
        if rest != known.in_sync or leader != known.leader:
            self.put(key, in_sync=rest, leader=leader)

    def leave_all(self, broker: BrokerId) -> None:
        for key, partition in self._image.partitions():
            if any(each.broker == broker for each in partition.in_sync):
                self.leave(key, broker)

    def lose(self, key: PartitionId, broker: BrokerId) -> None:
        """A broker's replica has lost what was not flushed, under whatever name it was counted."""
        known = self[key]
        if known.leader_epoch > 0:  # before anybody has led there was nothing to lose
            for replica in (*known.in_sync, *known.eligible):
                if replica.broker == broker:
                    self._forget(key, replica)

    def rename(self, key: PartitionId, broker: BrokerId, directory: str) -> None:
        """A broker's replica has lost what it had, and is another one from here on."""
        known = self[key]
        old, new = known.replica_on(broker), ReplicaId(broker, directory)
        if old is None or old == new:
            return
        directories = tuple(new.directory if each == old else each.directory for each in known.replica_ids)
        if not known.in_sync:
            self.put(key, directories=directories, first_voters=known.founders)
            return
        if known.leader_epoch > 0:
            self.put(key, directories=directories)
            for replica in (*known.in_sync, *known.eligible):
                if replica.broker == broker:
                    self._forget(key, replica)
        else:  # nobody has led, so nothing was lost
            in_sync, eligible = (
                tuple(sorted(new if each.broker == broker else each for each in names))
                for names in (known.in_sync, known.eligible)
            )
            self.put(key, directories=directories, in_sync=in_sync, eligible=eligible)
            self._drop_eligible(key, old)

    def _forget(self, key: PartitionId, replica: ReplicaId) -> None:
        """If it was the last in sync, whoever left that set before it has everything that more than one of them
        acknowledged."""
        self._drop_eligible(key, replica)
        known = self[key]
        rest = tuple(each for each in known.in_sync if each != replica) or known.eligible[-1:] or known.in_sync
        leader = None if known.leader == replica else known.leader
        if rest != known.in_sync or leader != known.leader:
            self.put(key, in_sync=rest, leader=leader)
            self._drop_eligible(key, replica)

    def _drop_eligible(self, key: PartitionId, replica: ReplicaId) -> None:
        known = self[key]
        if replica in known.eligible:
            self.put(key, eligible=tuple(each for each in known.eligible if each != replica))

    # Reassignment

    def retarget(self, key: PartitionId, target: tuple[BrokerId, ...], directory: str) -> None:
        """These brokers shall have it in the end. `directory` is what new replicas are called."""
        known = self[key]
        added = tuple(each for each in target if each not in known.replicas)
        self.put(
            key,
            replicas=(*known.replicas, *added),
            directories=(*known.directories, *[directory] * len(added)),
            target=target,
            origin=known.origin or known.replicas,
            first_voters=() if known.in_sync else known.founders,
        )

    def _finish_if_in_sync(self, key: PartitionId) -> None:
        """In in-sync mode a partition is where it shall be when all that were added are in sync."""
        known = self[key]
        in_sync = {each.broker for each in known.in_sync}
        if known.target and in_sync >= set(known.adding) and in_sync & set(known.target):
            self.finish(key)

    def finish(self, key: PartitionId) -> None:
        """Who shall not have it any more leaves."""
        known, names = self[key], dict(self[key].replica_ids)
        leader = known.leader if known.leader is None or known.leader.broker in known.target else None
        self.put(
            key,
            replicas=known.target,
            directories=tuple(names[each] for each in known.target),
            in_sync=tuple(each for each in known.in_sync if each.broker in known.target),
            leader=leader,
            target=(),
            origin=(),
        )

    # Leaders

    def begin(self, key: PartitionId, partition: PartitionImage) -> PartitionImage:
        """A new partition in in-sync mode: everybody is in sync whose broker is there."""
        there = [each for each in partition.replica_ids if each.broker in self._active]
        partition = replace(partition, in_sync=tuple(sorted(there)))
        leader = self.choose_leader(key, partition)
        return replace(partition, leader=leader, leader_epoch=0 if leader is None else 1)

    def is_able(self, key: PartitionId, partition: PartitionImage, replica: ReplicaId) -> bool:
        """Whether a replica could lead: it is there under this name, its broker is active, and says that it works."""
        return replica.broker in self._active and partition.has(replica) and self._sessions.works(replica.broker, key)

    def choose_leader(self, key: PartitionId, partition: PartitionImage) -> ReplicaId | None:
        """Somebody who could lead, and is counted as a leader from here on. On a drained broker only if nobody else
        could: it is to lead nothing, but better it than nobody."""
        able = [each for each in partition.in_sync if self.is_able(key, partition, each)]
        preferred = partition.preferred

        def rank(each: ReplicaId) -> tuple[bool, bool, int, ReplicaId]:
            return self._image.is_drained(each.broker), each != preferred, self._led[each.broker], each

        leader = min(able, key=rank, default=None)
        if leader is not None:
            self._led[leader.broker] += 1
        return leader

    def prefer(self, key: PartitionId) -> bool:
        """Let the preferred replica lead if it could, and somebody else instead of a drained broker. Returns whether
        that is a change."""
        partition = self[key]
        leader, drained = partition.leader, self._image.is_drained
        if leader is None or (leader == partition.preferred and not drained(leader.broker)):
            return False
        wants_preferred = not drained(partition.preferred.broker)
        able = [each for each in partition.in_sync if self.is_able(key, partition, each)]
        if wants_preferred and partition.preferred in able:
            self.put(key, leader=partition.preferred)
        elif drained(leader.broker) and not all(drained(each.broker) for each in able):
            self._led[leader.broker] -= 1
            self.put(key, leader=self.choose_leader(key, partition))
        return self[key].leader != leader

    def settle(self) -> None:
        """What follows from the changes, whatever they were: reassignments that are done now end, and every partition
        gets a leader that has none and could have one."""
        for key in list(self._changed):
            self._finish_if_in_sync(key)
        for key in sorted({*self._image.leaderless, *self._changed}):
            partition = self[key]
            if partition.in_sync and partition.leader is None:
                leader = self.choose_leader(key, partition)
                if leader is not None:
                    self.put(key, leader=leader)

    @cached_property
    def _led(self) -> Counter[BrokerId]:
        """How many partitions each broker leads."""
        leaders = (self[key].leader for key, _ in self._image.partitions())
        return Counter(leader.broker for leader in leaders if leader is not None)


def rebalance(image: ClusterImage, drafts: Drafts) -> list[PartitionsChanged]:
    """Give leadership back to those that are preferred, and take it from those that are drained."""
    for key, partition in image.partitions():
        if partition.leader is not None:
            drafts.prefer(key)
    return drafts.records()


def elect_leader(image: ClusterImage, drafts: Drafts, command: ElectLeader) -> Decided:
    """Replicas in sync are elected without being asked for; what can be asked for is the preferred one."""
    known = image.partition(command.partition)
    if known is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if known.leader == known.preferred or (command.is_unclean and known.leader is not None):
        raise Refused(ErrorCode.ELECTION_NOT_NEEDED, "it is led already")
    if command.is_unclean:
        raise Refused(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "no replica that has all that was acknowledged is there, and no other is elected: the rest would have to "
            "give up what they have. Bring one of them back: " + ", ".join(str(each.broker) for each in known.in_sync),
        )
    if not drafts.prefer(command.partition) or drafts[command.partition].leader != known.preferred:
        raise Refused(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"{known.preferred.broker} is not in sync, or drained")
    return Decided(drafts.records(), drafts[command.partition])


def alter_partition(image: ClusterImage, drafts: Drafts, command: AlterPartition) -> Decided:
    key = command.partition
    known = _check_current(image, command)
    _check_form(command)
    asked = zip(command.in_sync, command.broker_epochs, strict=True)
    barred = [
        each for each, epoch in asked if each not in known.in_sync and not _may_join(image, drafts, key, each, epoch)
    ]
    # The others join all the same, or one who never may would hold up a reassignment for ever. What was refused must
    # not be accepted later, when it comes a second time: so a refusal counts as a change.
    drafts.put(key, in_sync=tuple(sorted(each for each in command.in_sync if each not in barred)))
    drafts.settle()
    if barred:
        names = ", ".join(map(str, barred))
        return Decided(drafts.records(), Refused(ErrorCode.INELIGIBLE_REPLICA, f"{names} may not join those in sync"))
    return Decided(drafts.records(), drafts[key])


def _check_current(image: ClusterImage, command: AlterPartition) -> PartitionImage:
    """The partition, if the command is about its present state and from its leader."""
    known = image.partition(command.partition)
    if known is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not known.in_sync:
        raise Refused(ErrorCode.INVALID_REQUEST, "its replicas elect their leader: it has no in-sync set to change")
    if command.leader_epoch != known.leader_epoch or command.leader != known.leader:
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH, f"epoch {known.leader_epoch} has another leader")
    if command.partition_epoch != known.partition_epoch:
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, f"the partition is at epoch {known.partition_epoch}")
    return known


def _check_form(command: AlterPartition) -> None:
    if command.leader not in command.in_sync:
        raise Refused(ErrorCode.INVALID_REQUEST, "a leader is in sync with itself")
    if len(set(command.in_sync)) != len(command.in_sync) or len(command.broker_epochs) != len(command.in_sync):
        raise Refused(ErrorCode.INVALID_REQUEST, "an in-sync set names each replica once, with its broker's epoch")


def _may_join(image: ClusterImage, drafts: Drafts, key: PartitionId, replica: ReplicaId, broker_epoch: Epoch) -> bool:
    registered = image.brokers.get(replica.broker)
    return (
        registered is not None and registered.broker_epoch == broker_epoch and drafts.is_able(key, drafts[key], replica)
    )
