"""Three replicas of one partition on real logs and journals, talking in real frames."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest

from zurau.broker.replication import Replication
from zurau.errors import ProtocolViolation, Refused
from zurau.ids import BrokerId, TopicId, TopicPartition
from zurau.journal.journal import Journal
from zurau.journal.records import LogId
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.partition.opening import restore_producers
from zurau.partition.partition import Partition
from zurau.partition.replicas import make_quorum_replica
from zurau.partition.unpacking import Unpacking
from zurau.partition.validation import RecordValidator
from zurau.pending import start
from zurau.ports import Handshake
from zurau.records.batch import iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import Record, iter_records
from zurau.replica.core.events import TransferAsked, VoterChangeAsked
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.simulation.disk import SimulatedDisk
from zurau.simulation.world import VirtualClock, make_world
from zurau.wire.kafka.error_codes import ErrorCode

TOPIC_ID = TopicId(b"0123456789abcdef")
IDS = tuple(ReplicaId(BrokerId(broker), "a") for broker in (1, 2, 3))


class Node:
    """A broker with one partition. Its disk stays when it goes."""

    def __init__(self, cluster: Cluster, replica: ReplicaId, voters: tuple[ReplicaId, ...]) -> None:
        self.cluster = cluster
        self.id = replica
        self.voters = voters
        self.disk = SimulatedDisk(replica.broker)
        self.starts = 0
        self.partition: Partition | None = None
        self.start()

    def start(self) -> None:
        self.starts += 1
        clock = self.cluster.clock
        world = make_world(self.disk, clock, self.id.broker * 100 + self.starts, self.disk.boot_id)
        journal = Journal(world)
        journal.begin()
        notes = journal.notes_of(LogId(TOPIC_ID, 0))
        known = journal.last_known(LogId(TOPIC_ID, 0))
        log = Log.open(self.disk, "t-0", self.cluster.settings, now_ms=clock.now_ms(), clean=False, last_known=known)
        self.replication = Replication(world)
        self.replication.peers = self
        restore = partial(restore_producers, self.disk, log, clock.now_ms())
        self.partition = Partition(
            TopicPartition("t", 0),
            TOPIC_ID,
            log,
            replica=make_quorum_replica(self.id, self.voters, log, notes.facts, world.randomness),
            producers=restore(),
            restore_producers=restore,
            world=world,
            notes=notes,
            outbox=self.replication,
            validator=RecordValidator(Unpacking(world.workers)),
        )
        self.replication.add(self.partition.shell)
        self.partition.start()

    def kill(self, *, loses_power: bool = False) -> None:
        self.partition.close(lambda: Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.partition = None
        self.replication.stop()
        if loses_power:
            self.disk.crash()

    def send(self, to: BrokerId, frame) -> None:
        self.cluster.carry(self, to, b"".join(frame)[4:])

    def read(self) -> list[bytes]:
        return [record.value for record in self.records()]

    def records(self) -> list[Record]:
        """What consumers can read."""
        log, upto = self.partition.log, self.partition.high_watermark
        found, offset = [], log.start_offset
        while offset < upto:
            for header, batch in iter_batches(log.read(offset, 1 << 20, upto, may_block=True)):
                found += [] if header.is_control else iter_records(batch)
                offset = header.next_offset
        return found

    def compact(self) -> None:
        log = self.partition.log
        job = log.plan_compaction(self.cluster.clock.now_ms(), self.partition.safe_high_watermark)
        job.run()
        log.finish_compaction(job)


class Cluster:
    def __init__(
        self,
        ids: tuple[ReplicaId, ...] = IDS,
        voters: tuple[ReplicaId, ...] = IDS,
        settings: LogSettings | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.settings = settings or LogSettings()
        self.cut_off: set[BrokerId] = set()
        self.violations: list[str] = []
        self.damage: Callable[[bytes], bytes] = lambda frame: frame
        self.nodes: dict[BrokerId, Node] = {}
        for each in ids:
            self.nodes[each.broker] = Node(self, each, voters)

    def carry(self, sender: Node, to: BrokerId, frame: bytes) -> None:
        frame = self.damage(frame)

        def arrive() -> None:
            target = self.nodes.get(to)
            if target is not None and target.partition is not None and not {to, sender.id.broker} & self.cut_off:
                try:
                    target.replication.received(sender.id.broker, memoryview(frame))
                except ProtocolViolation as violation:
                    self.violations.append(str(violation))
                    target.replication.lost(sender.id.broker)
                    sender.replication.lost(to)

        self.clock.call_later(1, arrive)

    def pass_time(self, duration_ms: int = 5000) -> None:
        self.clock.advance(duration_ms)

    def leader(self) -> Node:
        (leader,) = [
            node
            for node in self.nodes.values()
            if node.partition is not None and node.partition.is_established and node.id.broker not in self.cut_off
        ]
        return leader

    def write(self, value: bytes, *, key: bytes | None = None, to: Node | None = None):
        partition = (to or self.leader()).partition
        offset = partition.append_own(build_batch([NewRecord(key, value, timestamp=self.clock.now_ms())]))
        return partition.wait_committed(offset)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.pass_time()
    return cluster


def test_replicas_elect_one_leader(cluster):
    leader = cluster.leader()
    assert {node.partition.leader for node in cluster.nodes.values()} == {leader.id}


def test_followers_that_lose_their_connection_to_the_leader_elect_another_within_half_a_second(cluster):
    leader = cluster.leader()
    leader.kill()
    for node in cluster.nodes.values():
        if node is not leader:
            node.replication.lost(leader.id.broker)
    cluster.pass_time(500)
    assert cluster.leader() is not leader


def test_what_is_committed_is_on_every_log(cluster):
    committed = cluster.write(b"a")
    assert not committed.is_done
    cluster.pass_time(100)
    assert committed.is_done
    assert [node.read() for node in cluster.nodes.values()] == [[b"a"]] * 3


def test_a_majority_goes_on_without_its_leader_and_loses_nothing(cluster):
    for value in (b"a", b"b"):
        cluster.write(value)
    cluster.pass_time(100)
    cluster.leader().kill()
    cluster.pass_time()
    cluster.write(b"c")
    cluster.pass_time(100)
    assert cluster.leader().read() == [b"a", b"b", b"c"]


def test_who_was_cut_off_gives_up_what_was_not_committed(cluster):
    cluster.write(b"a")
    cluster.pass_time(100)
    old = cluster.leader()
    cluster.cut_off.add(old.id.broker)
    lost = cluster.write(b"lost", to=old)
    cluster.pass_time()
    with pytest.raises(Refused, match="leader"):
        lost.result()
    cluster.write(b"b")
    cluster.pass_time(100)
    cluster.cut_off.clear()
    cluster.pass_time()
    assert [node.read() for node in cluster.nodes.values()] == [[b"a", b"b"]] * 3


def test_all_lose_power_and_come_back_with_what_was_acknowledged(cluster):
    acknowledged = [cluster.write(b"%d" % number) for number in range(10)]
    cluster.pass_time(100)
    assert all(each.is_done for each in acknowledged)
    for node in cluster.nodes.values():
        node.kill(loses_power=True)
    for node in cluster.nodes.values():
        node.start()
    cluster.pass_time()
    assert cluster.leader().read() == [b"%d" % number for number in range(10)]


def test_a_new_leader_has_an_epoch_of_its_own_on_every_log(cluster):
    first = cluster.leader().partition.leader_epoch
    cluster.leader().kill()
    cluster.pass_time()
    epochs = {node.partition.log.epochs.last for node in cluster.nodes.values() if node.partition is not None}
    assert epochs == {cluster.leader().partition.leader_epoch}
    assert epochs.pop() > first


def test_voters_are_added_one_after_the_other_and_known_after_a_restart():
    cluster = Cluster(voters=IDS[:1])
    cluster.pass_time()
    for newcomer in IDS[1:]:
        cluster.leader().partition.shell.tell(VoterChangeAsked(add=newcomer))
        cluster.pass_time(1000)
    assert {node.partition.shell.core.voters for node in cluster.nodes.values()} == {IDS}
    for node in cluster.nodes.values():
        node.kill(loses_power=True)
    for node in list(cluster.nodes.values())[1:]:
        node.start()
    cluster.pass_time()
    cluster.write(b"a")
    cluster.pass_time(100)
    assert cluster.leader().read() == [b"a"]


def test_a_full_disk_drops_what_it_has_no_room_for_and_catches_up_later(cluster):
    follower = next(node for node in cluster.nodes.values() if node is not cluster.leader())
    follower.disk.capacity_bytes = follower.disk.used_bytes
    cluster.write(b"a")
    cluster.pass_time(500)
    assert follower.read() == []
    follower.disk.capacity_bytes = 1 << 40
    cluster.pass_time()
    assert follower.read() == [b"a"]


def test_a_disk_that_refuses_though_it_seems_to_have_room_ends_no_follower(cluster):
    """As with a quota, or a limit on the size of files."""
    follower = next(node for node in cluster.nodes.values() if node is not cluster.leader())
    follower.replication._disk = SimpleNamespace(free_bytes=lambda: 1 << 40)
    follower.disk.capacity_bytes = follower.disk.used_bytes
    cluster.write(b"a")
    cluster.pass_time(5000)
    assert follower.read() == []
    follower.disk.capacity_bytes = 1 << 40
    cluster.pass_time(5000)
    cluster.write(b"b")
    cluster.pass_time(5000)
    assert follower.read() == [b"a", b"b"]


def test_nothing_is_heard_for_a_partition_that_is_not_here(cluster):
    follower = next(node for node in cluster.nodes.values() if node is not cluster.leader())
    follower.replication.remove(PartitionId(TOPIC_ID, 0))
    cluster.write(b"a")
    cluster.pass_time(500)
    assert (follower.read(), cluster.leader().read()) == ([], [b"a"])


COMPACTED = LogSettings(cleanup_policy=("compact",), segment_bytes=200, min_cleanable_dirty_ratio=0.01)


def test_a_compacted_log_can_be_followed_from_its_beginning():
    cluster = Cluster(ids=IDS[:1], voters=IDS[:1], settings=COMPACTED)
    cluster.pass_time()
    for number in range(30):
        cluster.write(b"%d" % number, key=b"once" if number == 3 else b"often")
    cluster.pass_time(1000)
    leader = cluster.leader()
    leader.compact()
    offsets = [record.offset for record in leader.records()]
    assert offsets[0] == 3 < offsets[1] - 1, "batches before, between and after are gone"
    cluster.nodes[2] = Node(cluster, IDS[1], IDS[:1])
    leader.partition.shell.tell(VoterChangeAsked(add=IDS[1]))
    cluster.pass_time()
    assert cluster.nodes[2].records() == leader.records()
    cluster.write(b"new", key=b"new")
    cluster.pass_time(1000)
    assert cluster.nodes[2].read()[-1] == b"new"


def test_a_follower_of_a_compacted_log_leads_with_the_same_records():
    cluster = Cluster(settings=COMPACTED)
    cluster.pass_time()
    for number in range(30):
        cluster.write(b"%d" % number, key=b"often")
    cluster.pass_time(1000)
    leader = cluster.leader()
    leader.compact()
    whole = cluster.nodes[leader.id.broker % 3 + 1].records()
    leader.kill()
    cluster.pass_time()
    assert cluster.leader().records() == whole
    leader.start()
    cluster.pass_time()
    assert leader.read()[-1] == b"29"


def test_who_was_away_while_the_log_was_compacted_goes_on_behind_the_gap():
    cluster = Cluster(settings=COMPACTED)
    cluster.pass_time()
    for number in range(40):
        if number == 10:
            cluster.pass_time(1000)
            away = next(node for node in cluster.nodes.values() if node is not cluster.leader())
            away.kill()
        cluster.write(b"%d" % number, key=b"often")
    cluster.pass_time(1000)
    cluster.leader().compact()
    behind_the_gap = [record for record in cluster.leader().records() if record.offset >= 10]
    assert behind_the_gap[0].offset > 10
    away.start()
    cluster.pass_time()
    assert [record for record in away.records() if record.offset >= 10] == behind_the_gap


def starts(cluster: Cluster) -> set[int]:
    return {node.partition.log.start_offset for node in cluster.nodes.values() if node.partition is not None}


def test_deleted_records_are_gone_on_every_log_and_stay_so_under_another_leader(cluster):
    for value in (b"a", b"b", b"c"):
        cluster.write(value)
    cluster.pass_time(100)
    first = cluster.leader()
    deleted = start(first.partition.delete_records_before(2))
    cluster.pass_time()
    assert deleted.result() == 2
    assert starts(cluster) == {2}
    first.kill()
    cluster.pass_time()
    assert (starts(cluster), cluster.leader().read()) == ({2}, [b"c"])
    first.start()
    cluster.pass_time()
    assert (starts(cluster), first.read()) == ({2}, [b"c"])


def test_who_was_away_while_records_were_deleted_learns_of_it(cluster):
    for value in (b"a", b"b", b"c"):
        cluster.write(value)
    cluster.pass_time(100)
    away = next(node for node in cluster.nodes.values() if node is not cluster.leader())
    away.kill(loses_power=True)
    cluster.pass_time()
    start(cluster.leader().partition.delete_records_before(3))
    cluster.pass_time(100)
    cluster.write(b"d")
    cluster.pass_time(1000)
    away.start()
    cluster.pass_time()
    assert (starts(cluster), away.read()) == ({3}, [b"d"])


def test_a_leader_that_hands_over_takes_nothing_meanwhile(cluster):
    leader = cluster.leader()
    successor = next(node for node in cluster.nodes.values() if node is not leader)
    cluster.write(b"not there yet", to=leader)
    leader.partition.shell.tell(TransferAsked(successor.id))
    with pytest.raises(Refused, match="handed over"):
        cluster.write(b"too late", to=leader)
    cluster.pass_time()
    assert (cluster.leader(), cluster.leader().read()) == (successor, [b"not there yet"])


def test_a_follower_whose_flush_fails_takes_no_part_until_it_is_started_again(cluster):
    follower = next(node for node in cluster.nodes.values() if node is not cluster.leader())
    follower.disk.fail_flushes = True
    cluster.write(b"a")
    cluster.pass_time(1000)
    follower.disk.fail_flushes = False
    cluster.pass_time()
    assert follower.partition.is_broken
    follower.kill()
    follower.start()
    cluster.pass_time()
    assert follower.read() == [b"a"]


def test_epoch_marks_that_are_safe_behind_the_close_are_told_to_nobody():
    cluster = Cluster(ids=IDS[:1], voters=IDS[:1])
    partition = cluster.nodes[1].partition
    for _ in range(5000):
        if partition.shell.flushing.is_under_way:
            break
        cluster.pass_time(1)
    assert partition.log.has_only_new_marks
    partition.shell.stop()
    cluster.pass_time()
    assert not partition.shell.flushing.is_under_way
    assert not partition.is_established


def test_records_that_are_damaged_on_their_way_are_not_stored_and_come_again(cluster):
    cluster.damage = lambda frame: frame.replace(b"a value", b"b value")
    cluster.write(b"a value")
    cluster.pass_time(50)  # nobody stands for election so soon
    assert [node.read() for node in cluster.nodes.values()] == [[], [], []]
    assert "damaged on their way" in cluster.violations[0]
    cluster.damage = lambda frame: frame
    cluster.pass_time()
    assert [node.read() for node in cluster.nodes.values()] == [[b"a value"]] * 3


def test_a_broker_asks_at_once_when_it_is_connected_again(cluster):
    leader = cluster.leader()
    follower = next(node for node in cluster.nodes.values() if node is not leader)
    cluster.cut_off = {follower.id.broker}
    cluster.pass_time(200)
    cluster.cut_off = set()
    committed = cluster.write(b"a")
    for one, other in ((leader, follower), (follower, leader)):
        one.replication.connected(Handshake(other.id.broker, "", bytes(16), bytes(16), is_metadata_empty=False))
    cluster.pass_time(30)
    assert committed.is_done
    assert follower.partition.log.end_offset == leader.partition.log.end_offset
