"""What replicas do, told as transcripts.

A line with `>` is something that happens; the indented lines below it are what the replicas do about it. Fetches, their
answers and flushes happen by themselves in `messages flow` and are not mentioned. Change the code, run with
ZURAU_REWRITE_STORIES=1, and read the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from replica_disk import DamagedBatch, ReplicaDisk, header

from zurau.errors import Refused
from zurau.ids import BrokerId
from zurau.replica.core.effects import (
    AdvanceHighWatermark,
    AdvanceStart,
    AlterPartition,
    Append,
    Effect,
    FetchSnapshot,
    ReadAndSend,
    Refuse,
    RestartLog,
    RoleChanged,
    SaveVote,
    Send,
    StartFlush,
    Truncate,
)
from zurau.replica.core.events import (
    BrokerRegistered,
    Event,
    Flushed,
    LogStartMoved,
    PartitionChanged,
    Received,
    RecordsWritten,
    ShutdownAsked,
    SnapshotProgressed,
    SnapshotStored,
    TimePassed,
    TransferAsked,
    VoterChangeAsked,
)
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import EndEpoch, Message, SnapshotPoint, Vote, VoteAnswer
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.recovery import is_intact
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.quorum.replica import Replica
from zurau.simulation.brokers.words import effect_in_words, in_words

FOLDER = Path(__file__).parent / "replica"
STORIES = sorted(FOLDER.glob("*.txt"))
SETTINGS = ReplicaSettings(fetch_timeout_ms=1000, election_timeout_ms=500, in_sync_min=1, lag_max_ms=2000)
_DELIVERIES_MAX = 400


class FixedRandomness:
    """Nothing is left to chance in a story."""

    def bytes(self, count: int) -> bytes:
        return bytes(count)

    def below(self, bound: int) -> int:
        return 0


def named(text: str) -> ReplicaId:
    return ReplicaId(BrokerId(int(text[0])), text[1:])


class Stage:
    def __init__(self) -> None:
        self.disks: dict[ReplicaId, ReplicaDisk] = {}
        self.replicas: dict[ReplicaId, Replica | InSyncReplica] = {}
        #: Everybody has a clock of their own: in a story, time passes for those who are named.
        self.clocks: dict[ReplicaId, int] = {}
        self.letters: list[tuple[ReplicaId, int, Message]] = []
        self.flushes: list[tuple[ReplicaId, int]] = []
        self.cut: set[frozenset[int]] = set()
        self.partition: PartitionState | None = None
        self.first: tuple[ReplicaId, ...] = ()
        #: Disks as they were when somebody copied them.
        self.copies: dict[ReplicaId, ReplicaDisk] = {}
        #: What leaders hand out of what retention has removed, until it arrives.
        self.snapshots: dict[ReplicaId, tuple[SnapshotPoint, bytes]] = {}
        self.snapshots_wait = False

    # Telling

    def tell(self, line: str) -> Iterator[str]:
        for pattern, act in self.PHRASES:
            match = re.fullmatch(pattern, line)
            if match:
                yield from act(self, *match.groups()) or ()
                return
        raise AssertionError(f"nobody knows what this means: {line}")

    def voters(self, names: str) -> Iterator[str]:
        self.first = tuple(named(name) for name in names.split())
        for each in self.first:
            self.disks[each] = ReplicaDisk(each.directory, self.first)
            yield from self.start(str(each))

    def start(self, name: str) -> Iterator[str]:
        replica, disk = named(name), self.disks[named(name)]
        if not is_intact(disk.recover()):
            replica = ReplicaId(replica.broker, chr(ord(replica.directory) + 1))
            disk = self.disks[replica] = disk.salvage(replica.directory)
            yield f"{name} has lost something that was flushed, and becomes {replica}"
        self.clocks.setdefault(replica, 0)
        if self.partition is not None:
            self.replicas[replica] = InSyncReplica(
                replica,
                log=disk.view(),
                high_watermark=disk.high_watermark,
                settings=SETTINGS,
                randomness=FixedRandomness(),
            )
            yield from self.happen(replica, BrokerRegistered(replica.broker))
        else:
            self.replicas[replica] = Replica(
                replica,
                brokers=tuple(each.broker for each in self.first),
                log=disk.view(),
                membership=disk.membership(),
                epoch=disk.epoch,
                voted_for=disk.voted_for,
                high_watermark=disk.high_watermark,
                settings=SETTINGS,
                randomness=FixedRandomness(),
            )
        list(self.happen(replica, TimePassed()))

    def crash(self, name: str, *, loses: bool = False) -> None:
        replica = named(name)
        del self.replicas[replica]
        self.disks[replica].crash(loses=loses)
        self.flushes = [each for each in self.flushes if each[0] != replica]

    def lose_power(self, name: str) -> None:
        self.crash(name, loses=True)

    def lose_disk(self, name: str, new_name: str) -> Iterator[str]:
        if named(name) in self.replicas:
            self.crash(name)
        self.disks[named(new_name)] = ReplicaDisk(named(new_name).directory, self.first)
        yield from self.start(new_name)

    def copy_disk(self, name: str) -> None:
        self.copies[named(name)] = self.disks[named(name)].copy(named(name).directory)

    def put_back(self, name: str, new_name: str) -> Iterator[str]:
        """An old copy, under a new name or, by somebody who does not know better, under the old one."""
        self.crash(name)
        new, copy = named(new_name), self.copies[named(name)]
        self.disks[new] = copy if new == named(name) else copy.salvage(new.directory)
        yield from self.start(new_name)

    def flip_bit(self, offset: str, name: str) -> None:
        self.disks[named(name)].flip_bit(int(offset))

    def delay_snapshots(self) -> None:
        self.snapshots_wait = True

    def fetch_snapshot(self, replica: ReplicaId, leader: ReplicaId, point: SnapshotPoint) -> Iterator[str]:
        self.snapshots[replica] = (point, self.disks[leader].snapshot)
        yield f"{replica} fetches a snapshot of what is before {point.mark.start_offset}"
        if not self.snapshots_wait:
            yield from self.happen(replica, SnapshotStored(point))

    def load_snapshot(self, name: str, loaded: str) -> Iterator[str]:
        yield from self.happen(named(name), SnapshotProgressed(int(loaded)))

    def get_snapshot(self, name: str) -> Iterator[str]:
        yield from self.happen(named(name), SnapshotStored(self.snapshots[named(name)][0]))

    def send_again(self, value: str, name: str) -> Iterator[str]:
        """A producer has not heard of it, and repeats it."""
        try:
            known = self.disks[named(name)].producers().find_repeated(header(value.encode()))
        except Refused as refused:
            yield f"{name} refuses: {refused}"
            return
        if known is not None:
            yield f"{name} has it at {known.base_offset}, and does not write it again"
        else:
            yield from self.write(name, value)

    def pass_time(self, duration: str, name: str) -> Iterator[str]:
        self.clocks[named(name)] += int(duration)
        yield from self.happen(named(name), TimePassed())

    def write(self, name: str, values: str) -> Iterator[str]:
        """As a broker does: it asks whether it may, writes, and then tells the core."""
        replica = named(name)
        for value in values.split():
            core = self.replicas[replica]
            refusal = core.refusal(acks_all=True)
            if refusal is not None:
                yield f"{replica} refuses: {refusal}"
                continue
            yield from self.carry_out(replica, Append((Batch(core.epoch, core.log.end_offset, 1, value.encode()),)))
            yield from self.happen(replica, RecordsWritten(1))

    def isolate(self, one: str, others: str) -> None:
        for other in others.split():
            self.cut.add(frozenset((named(one).broker, named(other).broker)))

    def rejoin(self) -> None:
        self.cut.clear()

    def add_voter(self, name: str, verb: str, voter: str) -> Iterator[str]:
        change = VoterChangeAsked(add=named(voter)) if verb == "add" else VoterChangeAsked(remove=named(voter))
        yield from self.happen(named(name), change)

    def transfer(self, name: str, to: str) -> Iterator[str]:
        yield from self.happen(named(name), TransferAsked(named(to)))

    def shut_down(self, name: str) -> Iterator[str]:
        yield from self.happen(named(name), ShutdownAsked())

    def expire(self, name: str, offset: str) -> Iterator[str]:
        self.disks[named(name)].expire(int(offset))
        yield from self.happen(named(name), LogStartMoved(int(offset)))

    def compact(self, first: str, last: str, name: str) -> None:
        self.disks[named(name)].compact(int(first), int(last))

    def decide(self, leader: str, names: str) -> Iterator[str]:
        """The controller's word, as a change of what it said before."""
        before = self.partition or PartitionState(None, 0, (), 0)
        leads = named(leader)
        epoch = before.leader_epoch + (leads != before.leader)
        in_sync = tuple(named(name) for name in names.split())
        self.partition = PartitionState(leads, epoch, in_sync, before.partition_epoch + 1)
        for replica in sorted(self.replicas):
            yield from self.happen(replica, PartitionChanged(self.partition, replica.broker))

    def in_sync(self, names: str) -> Iterator[str]:
        self.partition = PartitionState(None, 0, (), 0)
        yield from self.voters(names)

    def elect(self, name: str) -> Iterator[str]:
        """An election that nobody needs to hear about."""
        list(self.pass_time("1000", name))
        done = list(self.flow())
        yield from (line for line in done if line.startswith(f"{name} is leader"))

    def flow(self, until: str | None = None) -> Iterator[str]:
        """Everything that is under way arrives, and what follows from it, until nothing is, or somebody leads."""
        for _ in range(_DELIVERIES_MAX):
            if until is not None and self.replicas[named(until)].role is Role.LEADER:
                self.letters.clear()
                return
            if self.flushes:
                replica, number = self.flushes.pop(0)
                self.disks[replica].end_flush(number)
                yield from self.happen(replica, Flushed(number))
            elif self.letters:
                sender, to, message = self.letters.pop(0)
                target = next((each for each in self.replicas if each.broker == to), None)
                if target is not None and frozenset((sender.broker, to)) not in self.cut:
                    yield from self.happen(target, Received(message))
            else:
                return
        raise AssertionError("they never come to an end")

    # Doing

    def happen(self, replica: ReplicaId, event: Event) -> Iterator[str]:
        try:
            for effect in self.replicas[replica].step(event, self.clocks[replica]):
                yield from self.carry_out(replica, effect)
        except (AssertionError, DamagedBatch) as failed:
            self.crash(str(replica))
            yield f"{replica} stops: {failed}"

    def carry_out(self, replica: ReplicaId, effect: Effect) -> Iterator[str]:
        disk = self.disks[replica]
        match effect:
            case Append(items):
                for item in items:
                    disk.write(item)
            case Truncate(point):
                disk.write(point)
            case SaveVote(epoch, voted_for):
                disk.epoch, disk.voted_for = epoch, voted_for
            case StartFlush(number):
                disk.begin_flush(number)
                self.flushes.append((replica, number))
            case Send(to, message):
                self.letters.append((replica, to, message))
            case ReadAndSend(to, message, from_offset, upto_offset, _):
                batches = disk.seen.read(from_offset, upto_offset, 10)
                self.letters.append((replica, to, replace(message, batches=batches)))
            case AdvanceHighWatermark(high_watermark):
                disk.high_watermark = high_watermark
            case AdvanceStart() | RestartLog():
                self.move_start(replica, effect)
            case FetchSnapshot(leader, point):
                yield from self.fetch_snapshot(replica, leader, point)
        words = worth_telling(effect)
        if words is not None:
            yield f"{replica} {words}"

    def move_start(self, replica: ReplicaId, effect: AdvanceStart | RestartLog) -> None:
        if isinstance(effect, RestartLog):
            self.disks[replica].restart(effect.point, self.snapshots[replica][1])
        else:
            self.disks[replica].expire(effect.offset)

    PHRASES = (
        (r"voters (.+)", voters),
        (r"replicas (.+)", in_sync),
        (r"messages flow", flow),
        (r"messages flow until (\w+) leads, and are lost then", flow),
        (r"(\w+) is elected", elect),
        (r"(\d+) ms pass for (\w+)", pass_time),
        (r"(\w+) writes (.+)", write),
        (r"(\w+) is cut off from (.+)", isolate),
        (r"everybody hears everybody", rejoin),
        (r"(\w+) stops", crash),
        (r"(\w+) loses power", lose_power),
        (r"(\w+) starts", start),
        (r"(\w+) comes back as (\w+) with an empty disk", lose_disk),
        (r"somebody copies the disk of (\w+)", copy_disk),
        (r"(\w+) comes back as (\w+) with that copy", put_back),
        (r"a bit flips in record (\d+) of (\w+)", flip_bit),
        (r"snapshots take a while", delay_snapshots),
        (r"(\w+) has (\d+) bytes of its snapshot", load_snapshot),
        (r"(\w+) gets its snapshot", get_snapshot),
        (r"([\d.]+) is sent to (\w+) again", send_again),
        (r"(\w+) is asked to (add|remove) (\w+)", add_voter),
        (r"(\w+) is asked to let (\w+) lead", transfer),
        (r"(\w+) is asked to shut down", shut_down),
        (r"retention removes what (\w+) has below (\d+)", expire),
        (r"(\w+) deletes what is below (\d+)", expire),
        (r"compaction removes records (\d+) to (\d+) of (\w+)", compact),
        (r"the controller lets (\w+) lead, with (.+) in sync", decide),
    )


def worth_telling(effect: Effect) -> str | None:
    match effect:
        case Send(to, Vote() | VoteAnswer() | EndEpoch() as message):
            return f"to {to}: {in_words(message)}"
        case Send(to, message) if getattr(message, "diverging", None) is not None:
            return f"to {to}: {in_words(message)}"
        case AlterPartition(proposal):
            return f"asks the controller for {', '.join(map(str, proposal.in_sync))} in sync"
        case Refuse(reason):
            return f"refuses: {reason}"
        case (
            Append() | Truncate() | AdvanceStart() | SaveVote() | AdvanceHighWatermark() | RoleChanged() | RestartLog()
        ):
            return effect_in_words(effect)
        case _:
            return None


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_replicas_behave_as_their_story_tells(path, hold_to_story):
    hold_to_story(path, Stage())


def test_there_are_replica_stories_to_be_told():
    assert len(STORIES) >= 8
