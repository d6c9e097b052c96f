"""A cluster as its controller sees it, played from numbers: brokers start, fall silent, fail and lose disks; leaders
propose; controllers are replaced. What must be true is checked after every record, and remembered apart from the code
that is tested.

A step is four small numbers, so that Hypothesis can shrink a play, and a seed can make one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from zurau.broker.settings import BrokerSettings
from zurau.errors import Refused
from zurau.ids import BrokerId, Epoch, PartitionId, ReplicaId, TopicId
from zurau.log.settings import LogSettings
from zurau.machines.controller.commands import (
    AlterConfigs,
    AlterPartition,
    BrokerHeartbeat,
    ConfigEdit,
    ConfigOperation,
    ControllerCommand,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ElectLeader,
    FinishReassignment,
    ReassignPartition,
    RegisterBroker,
    RenameReplica,
    ResourceType,
    UnregisterBroker,
)
from zurau.machines.controller.controller import Controller
from zurau.machines.controller.image import ClusterImage, PartitionImage
from zurau.machines.controller.records import decode_record, encode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.controller.snapshot import freeze
from zurau.machines.machine import Decision, RequestId, StateRecord
from zurau.wire.kafka.error_codes import ErrorCode

Step = tuple[int, int, int, int]
Partitions = dict[PartitionId, PartitionImage]

#: No reply: the controller has crashed.
LOST = object()
SESSION_MS = 1000
SETTINGS = BrokerSettings(broker_session_timeout_ms=SESSION_MS, leader_imbalance_check_interval_s=1)
BROKERS = 4
TOPICS = 3


def new_controller() -> Controller[LogSettings]:
    return Controller(SETTINGS, LogSettings())


def steps_of(seed: int, count: int = 120) -> Iterator[Step]:
    rng = Random(seed)
    # Which kinds of steps there are many of differs from play to play.
    weights = [rng.choice((1, 1, 4, 12)) for _ in Play.KINDS]
    weights[0] += 4
    for _ in range(count):
        (kind,) = rng.choices(range(len(Play.KINDS)), weights)
        everybody = rng.choice((15, rng.randrange(16)))
        yield kind, rng.randrange(16), everybody, rng.randrange(16)


@dataclass
class Memory:
    """What was said and done, as far as it matters later."""

    #: With which broker epoch a replica was last counted in sync: when its topic was made, or by its leader.
    counted: dict[tuple[PartitionId, ReplicaId], Epoch] = field(default_factory=dict)
    #: Replicas that the controller was told to have lost something, and that were not counted anew since.
    lossy: set[tuple[PartitionId, ReplicaId]] = field(default_factory=set)
    #: Who led, and which start of its broker it was.
    led: dict[tuple[PartitionId, Epoch], tuple[ReplicaId, Epoch]] = field(default_factory=dict)
    #: What each broker said last to the present controller.
    failed: dict[BrokerId, frozenset[PartitionId]] = field(default_factory=dict)
    #: When each was last heard of, or could have been.
    heard_ms: dict[BrokerId, int] = field(default_factory=dict)
    #: What leaders have asked for.
    proposals: list[AlterPartition] = field(default_factory=list)


class Play:
    def __init__(self) -> None:
        self.controller = new_controller()
        self.log: list[StateRecord] = []
        #: What a broker has that follows the log.
        self.followed = ClusterImage()
        self.snapshot: tuple[int, list[StateRecord]] = (0, [])
        self.now_ms = 0
        self.memory = Memory()
        self._starts = 0
        #: How many records of the next decision survive a crash; None: there is none.
        self._kept_records: int | None = None
        self.controller.loaded(0)

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def run(self, steps: Iterable[Step]) -> Play:
        for broker in range(3):
            self._register(broker, 1, 0)
            self._beat(broker, 0, 0)
        for kind, *numbers in steps:
            self.KINDS[kind % len(self.KINDS)](self, *numbers)
        self._replace_controller(0, 0, 0)
        return self

    # Asking

    def ask(self, command: ControllerCommand, accepted: Callable[[], None] = lambda: None) -> Any:
        """The reply; what has to be remembered if it is `accepted` is remembered before it is written."""
        decision = self.controller.decide(RequestId(1), command, self.now_ms)
        ((_, reply),) = decision.replies
        if self._is_cut_short(decision):
            return LOST
        if not isinstance(reply, Refused) or reply.code is ErrorCode.INELIGIBLE_REPLICA:  # then the others join
            accepted()
        self._write(decision.records)
        return reply

    def _is_cut_short(self, decision: Decision) -> bool:
        """Whether the controller crashes when some of the records are safe: another one begins with those."""
        kept, self._kept_records = self._kept_records, None
        if kept is None or len(decision.records) <= kept:
            return False
        self._write(decision.records[:kept], is_whole=False)
        self._replace_controller(0, 0, 0)
        return True

    def _lose(self, broker: int, *, only: PartitionId | None = None, spares_flushed: bool = False) -> None:
        for topic in self.image.topics.values():
            if spares_flushed and topic.configs.get("flush") == "fsync":
                continue
            for key, partition in topic.keyed_partitions():
                if only in (None, key) and partition.leader_epoch > 0:
                    known = (*partition.in_sync, *partition.eligible)
                    self.memory.lossy.update((key, replica) for replica in known if replica.broker == broker)

    def _write(self, records: Iterable[StateRecord], *, is_whole: bool = True) -> None:
        before, brokers = dict(self.image.partitions()), dict(self.image.brokers)
        for record in records:
            offset = len(self.log)
            self.log.append(record)
            self.controller.apply(record, offset)
            decoded = decode_record(record)
            assert decoded is not None
            apply_record(self.followed, decoded, offset)
            self._count_new_topics()
            # A crash may leave it at that.
            check_image(self.followed, self.memory)
        check_growth(before, dict(self.image.partitions()))
        if is_whole:
            check_leaders(before, self.image, self.memory)
        assert all(
            self.image.brokers[each].broker_epoch >= brokers[each].broker_epoch
            for each in brokers
            if each in self.image.brokers
        )

    def _count_new_topics(self) -> None:
        for key, partition in self.followed.partitions():
            for replica in partition.in_sync:
                if partition.partition_epoch == 0:
                    self.memory.counted.setdefault((key, replica), self.followed.brokers[replica.broker].broker_epoch)

    # What can happen

    def _register(self, broker: int, how: int, disk: int) -> None:
        broker %= BROKERS
        known = self.image.brokers.get(BrokerId(broker))
        has_same_disk = known is not None and disk % 4 > 0
        directory_id = known.directory_id if known is not None and has_same_disk else self._starts.to_bytes(6) * 3
        was_clean = has_same_disk and known is not None and how % 2 == 0
        self._starts += 1
        command = RegisterBroker(
            BrokerId(broker),
            directory_id[:16],
            self._starts.to_bytes(16),
            rack=("north", None)[broker % 2],
            previous_broker_epoch=known.broker_epoch if known is not None and was_clean else how % 3 - 1,
        )
        if not was_clean and known is not None and command.previous_broker_epoch == known.broker_epoch:
            return  # it was clean by chance
        accepted = partial(self._lose, broker, spares_flushed=has_same_disk)
        is_alive = self.now_ms - self.memory.heard_ms.get(command.broker_id, -SESSION_MS) < SESSION_MS
        reply = self.ask(command, (lambda: None) if was_clean else accepted)
        if reply is LOST:
            return
        assert isinstance(reply, Refused) == (is_alive and known is not None and not has_same_disk)
        if not isinstance(reply, Refused):
            self.memory.heard_ms[command.broker_id] = self.now_ms
            self.memory.failed.pop(command.broker_id, None)

    def _beat(self, broker: int, failing: int, mood: int) -> None:
        known = self.image.brokers.get(BrokerId(broker % BROKERS))
        if known is None:
            return
        partitions = sorted(key for key, partition in self.image.partitions() if known.broker_id in partition.replicas)
        failed = frozenset([partitions[failing % len(partitions)]] if partitions and failing > 8 else [])
        reached = known.broker_epoch - 1 if mood == 1 else len(self.log) - 1
        epoch = known.broker_epoch - 1 if mood == 2 else known.broker_epoch
        heartbeat = BrokerHeartbeat(known.broker_id, epoch, reached, failed, wants_shutdown=mood == 3)
        reply = self.ask(heartbeat, partial(self._hear, known.broker_id, failed))
        if mood == 0 and reply is not LOST:
            now = self.image.brokers[known.broker_id]
            assert not now.is_fenced or now.in_controlled_shutdown, f"{now} is heard, and stays fenced"

    def _hear(self, broker: BrokerId, failed: frozenset[PartitionId]) -> None:
        self.memory.failed[broker] = failed
        self.memory.heard_ms[broker] = self.now_ms

    def _beat_all(self, besides: int, _b: int, _c: int) -> None:
        for broker in range(BROKERS):
            if broker != besides:
                self._beat(broker, 0, 0)

    def _pass_time(self, amount: int, beating: int, _c: int) -> None:
        """Some time, in which some of the brokers are heard."""
        for _ in range(1 + amount % 6):
            self.now_ms += 250
            for broker in range(BROKERS):
                if beating >> broker & 1:
                    self._beat(broker, 0, 0)
            deadline_ms = self.controller.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= self.now_ms:
                decision = self.controller.time_passed(self.now_ms)
                if not self._is_cut_short(decision):
                    self._write(decision.records)

    def _create(self, topic: int, replicas: int, how: int) -> None:
        name = f"topic-{topic % TOPICS}"
        brokers = [broker for broker in range(BROKERS) if replicas >> broker & 1]
        turned = brokers[how % 4 :] + brokers[: how % 4]
        configs = {"flush": ("os", "os", "fsync", "os")[how % 4]} | ({} if how > 9 else {"replication.mode": "isr"})
        topic_id = TopicId((len(self.log) + 1).to_bytes(16))
        self.ask(CreateTopic(name, topic_id, assignments={0: turned, 1: turned[::-1]}, configs=configs))

    def _grow(self, topic: int, count: int, _c: int) -> None:
        self.ask(CreatePartitions(f"topic-{topic % TOPICS}", count % 5))

    def _delete(self, topic: int, really: int, _c: int) -> None:
        known = self.image.topics.get(f"topic-{topic % TOPICS}")
        if known is not None and really < 4:
            self.ask(DeleteTopic(known.topic_id))

    def _propose(self, which: int, members: int, how: int) -> None:
        """A leader proposes, mostly with what it knows; now and then with something that is out of date."""
        led = sorted((key, each) for key, each in self.image.partitions() if each.leader is not None)
        if not led:
            return
        key, known = led[which % len(led)]
        assert known.leader is not None
        wanted = [each for each in known.replica_ids if members >> each.broker & 1 or each == known.leader]
        if how == 1:
            wanted.append(ReplicaId(known.replicas[members % len(known.replicas)], "nowhere"))
        late = 1 if how in (2, 3) else 0
        epochs = [self.image.brokers[each.broker].broker_epoch - late for each in wanted]
        proposal = AlterPartition(
            key,
            known.leader,
            known.leader_epoch - (how == 4),
            known.partition_epoch - (how == 5),
            tuple(wanted) if how != 6 else (),
            tuple(epochs) if how != 6 else (),
        )
        reply = self.ask(proposal, lambda: self._count(proposal, known))
        if reply is not LOST:
            self.memory.proposals.append(proposal)
        assert isinstance(reply, Refused) or how not in (4, 5, 6)

    def _repeat(self, which: int, _b: int, _c: int) -> None:
        """What a leader said comes a second time: it is out of date, whatever the answer was."""
        if self.memory.proposals:
            proposal = self.memory.proposals[-1 - which % len(self.memory.proposals)]
            reply = self.ask(proposal)
            assert isinstance(reply, Refused) or reply is LOST, f"{proposal} is accepted the second time"

    def _count(self, proposal: AlterPartition, known: PartitionImage) -> None:
        key, counted = proposal.partition, self.memory.counted
        counted[key, proposal.leader] = self.image.brokers[proposal.leader.broker].broker_epoch
        for replica, epoch in zip(proposal.in_sync, proposal.broker_epochs, strict=True):
            if replica in known.in_sync:
                self.memory.lossy.discard((key, replica))
            elif epoch == self.image.brokers[replica.broker].broker_epoch and replica in known.replica_ids:
                self.memory.lossy.discard((key, replica))
                counted[key, replica] = epoch

    def _rename(self, which: int, place: int, how: int) -> None:
        partitions = sorted(self.image.partitions())
        if partitions and how < 8:
            key, known = partitions[which % len(partitions)]
            broker = self.image.brokers[known.replicas[place % len(known.replicas)]]
            renamed = ReplicaId(broker.broker_id, f"name-{len(self.log)}")
            self.memory.counted[key, renamed] = broker.broker_epoch  # it stays in sync if nobody has led
            self.ask(
                RenameReplica(broker.broker_id, broker.broker_epoch, key, renamed.directory),
                partial(self._lose, broker.broker_id, only=key),
            )

    def _drain(self, broker: int, how: int, _c: int) -> None:
        drained = ("none", "none", "leaders", "everything")[how % 4]
        edit = ConfigEdit("zurau.drain", ConfigOperation.SET, drained)
        self.ask(AlterConfigs(ResourceType.BROKER, str(broker % BROKERS), [edit]))

    def _elect(self, which: int, _b: int, how: int) -> None:
        partitions = sorted(self.image.partitions())
        if partitions:
            key, known = partitions[which % len(partitions)]
            reply = self.ask(ElectLeader(key, is_unclean=how == 1))
            if reply is not LOST and not isinstance(reply, Refused):
                assert reply.leader == self.image.partition(key).leader == known.preferred != known.leader

    def _unregister(self, broker: int, really: int, _c: int) -> None:
        broker_id = BrokerId(broker % BROKERS)
        if really < 4 and broker_id in self.image.brokers:
            holds = any(broker_id in partition.replicas for _, partition in self.image.partitions())
            reply = self.ask(UnregisterBroker(broker_id))
            assert reply is LOST or isinstance(reply, Refused) == holds
            if reply is None:
                assert broker_id not in self.image.brokers
                self.memory.heard_ms.pop(broker_id, None)
                self.memory.failed.pop(broker_id, None)

    def _reassign(self, which: int, members: int, how: int) -> None:
        partitions = sorted(self.image.partitions())
        if not partitions:
            return
        key, known = partitions[which % len(partitions)]
        brokers = [broker for broker in range(BROKERS) if members >> broker & 1]
        wanted = None if how in (0, 1) else tuple(brokers[how % 4 :] + brokers[: how % 4])
        reply = self.ask(ReassignPartition(key, wanted, f"moved-{len(self.log)}"))
        if reply is None:
            now = self.image.partition(key)
            assert set(now.replicas) >= set(known.origin or known.replicas) or not now.target
            assert (now.target or now.replicas) == (known.origin if wanted is None else wanted)

    def _finish(self, which: int, _b: int, how: int) -> None:
        """Those vote that shall, says a leader; or others, or it is late."""
        how %= 4
        partitions = sorted((key, each) for key, each in self.image.partitions() if each.target)
        if partitions:
            key, known = partitions[which % len(partitions)]
            voters = known.replica_ids if how == 1 else known.wanted_ids
            reply = self.ask(FinishReassignment(key, known.partition_epoch - (how == 2), voters))
            is_right = not known.in_sync and how != 2 and set(voters) == set(known.wanted_ids)
            assert reply is LOST or is_right == (reply is None)
            if is_right and reply is None:
                now = self.image.partition(key)
                assert now.replicas == known.target
                assert set(now.replica_ids) == set(known.wanted_ids)

    def _replace_controller(self, _a: int, _b: int, _c: int) -> None:
        """Another one takes over, from the log or from a snapshot and the rest of it."""
        replayed, restored = new_controller(), new_controller()
        for offset, record in enumerate(self.log):
            replayed.apply(record, offset)
        offset, records = self.snapshot
        for record in records:
            restored.apply(record, offset - 1)
        for later, record in enumerate(self.log[offset:], offset):
            restored.apply(record, later)
        assert replayed.image == self.image == self.followed
        restored.image.epoch = replayed.image.epoch  # it counts records, and a snapshot has fewer
        assert restored.image == replayed.image
        self.snapshot = len(self.log), list(map(encode_record, freeze(self.image)()))
        self.controller = restored
        self.controller.loaded(self.now_ms)
        self.memory.failed = {}
        self.memory.heard_ms = dict.fromkeys(self.image.brokers, self.now_ms)
        self.followed.epoch = restored.image.epoch

    def _crash_soon(self, kept: int, _b: int, _c: int) -> None:
        """The next decision of several records, or the one after it, is cut short."""
        self._kept_records = kept % 4

    KINDS: tuple[Callable[[Play, int, int, int], None], ...] = (
        _propose,
        _register,
        _beat,
        _beat_all,
        _pass_time,
        _create,
        _grow,
        _delete,
        _rename,
        _drain,
        _elect,
        _reassign,
        _finish,
        _unregister,
        _replace_controller,
        _repeat,
        _crash_soon,
    )


def check_image(image: ClusterImage, memory: Memory) -> None:
    """True after every record."""
    for key, partition in image.partitions():
        in_sync, leader = partition.in_sync, partition.leader
        if image.topics_by_id[key.topic_id].is_in_sync_mode:
            assert in_sync, f"{partition}: nobody is in sync"
        assert len(partition.directories) == len(partition.replicas)
        assert {each.broker for each in (*in_sync, *partition.eligible)} <= set(partition.replicas), f"{partition}"
        assert len(set(partition.replicas)) == len(partition.replicas) > 0
        assert set(partition.target) | set(partition.origin) <= set(partition.replicas), f"{partition}"
        assert bool(partition.target) == bool(partition.origin)
        if partition.target and in_sync:
            is_there = {each.broker for each in in_sync} >= set(partition.adding)
            assert not is_there or not {each.broker for each in in_sync} & set(partition.target), f"{partition} is done"
        assert not set(in_sync) & set(partition.eligible), f"{partition}: in sync, and has left"
        assert leader is None or leader in in_sync, f"{partition}: a leader that is not in sync"
        assert (key in image.leaderless) == bool(in_sync and leader is None)
        if leader is not None:
            assert leader in partition.replica_ids, f"{leader} leads, and is not there under this name"
            assert not image.brokers[leader.broker].is_fenced, f"{leader} leads, and is fenced"
            start = leader, image.brokers[leader.broker].broker_epoch
            led = memory.led.setdefault((key, partition.leader_epoch), start)
            assert led == start, f"{led} led epoch {partition.leader_epoch}, and now {start}"
        if len(in_sync) > 1:
            for replica in in_sync:
                assert not image.brokers[replica.broker].is_fenced, f"{replica} is in sync, and fenced"
                counted = memory.counted.get((key, replica))
                assert counted == image.brokers[replica.broker].broker_epoch, f"{replica} was counted as of {counted}"


def check_growth(before: Partitions, after: Partitions) -> None:
    """Epochs grow with what they count."""
    for key in before.keys() & after.keys():
        then, now = before[key], after[key]
        assert now.leader_epoch >= then.leader_epoch
        assert now.leader == then.leader or now.leader_epoch > then.leader_epoch
        assert now == then or now.partition_epoch > then.partition_epoch


def check_leaders(before: Partitions, image: ClusterImage, memory: Memory) -> None:
    """True after every decision."""
    after = dict(image.partitions())
    for key, partition in after.items():
        able = [each for each in partition.in_sync if _is_able(image, memory, key, partition, each)]
        leader = partition.leader
        assert leader is not None or not able, f"{partition}: {able} could lead"
        assert leader is None or key not in memory.failed.get(leader.broker, ()), f"{leader} leads, and has failed"
        if leader is not None and len(partition.in_sync) == 1:
            memory.lossy.discard((key, leader))  # nobody is left that knows more
        lossy = [each for each in (*partition.in_sync, *partition.eligible) if (key, each) in memory.lossy]
        is_last = len(partition.in_sync) == 1 and not partition.eligible
        assert is_last or not lossy, f"{partition}: {lossy} lost something, and others did not"
        if leader is not None and (key not in before or before[key].leader_epoch != partition.leader_epoch):
            assert leader in able, f"{leader} is chosen, and could not lead"
        if leader is not None and image.is_drained(leader.broker) and key in before:
            others = [each for each in able if not image.is_drained(each.broker)]
            assert before[key].leader == leader or not others, f"{leader} is drained and chosen, and {others} are not"
    changed = [key for key in after if key in before and before[key].leader != after[key].leader]
    if len(changed) == 1 and after[changed[0]].leader is not None:
        _check_spread(changed[0], after, image, memory)


def _check_spread(key: PartitionId, after: Partitions, image: ClusterImage, memory: Memory) -> None:
    """Whoever is chosen is preferred, or leads no more than another that could have been chosen."""
    chosen, preferred = after[key].leader, after[key].replica_ids[0]
    if any(map(image.is_drained, after[key].replicas)):
        return  # other rules hold
    led = Counter(each.leader.broker for each in after.values() if each.leader is not None)
    able = [each for each in after[key].in_sync if _is_able(image, memory, key, after[key], each)]
    assert chosen is not None
    assert chosen == preferred or preferred not in able, f"{chosen} leads, and {preferred} could"
    if chosen != preferred:
        fewer = [each for each in able if led[each.broker] < led[chosen.broker] - 1]
        assert not fewer, f"{chosen} leads, and {fewer} lead less"


def _is_able(
    image: ClusterImage, memory: Memory, key: PartitionId, partition: PartitionImage, replica: ReplicaId
) -> bool:
    broker = image.brokers[replica.broker]
    heard = memory.failed.get(replica.broker)
    return broker.is_active and replica in partition.replica_ids and heard is not None and key not in heard
