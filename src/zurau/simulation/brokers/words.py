"""Events, effects and messages of replicas in words, for transcripts."""

from __future__ import annotations

from zurau.replica.core.effects import (
    AdvanceHighWatermark,
    AdvanceReplicated,
    AdvanceStart,
    AlterPartition,
    Append,
    Effect,
    FetchSnapshot,
    LeadershipEstablished,
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
    FetchProgressed,
    Flushed,
    FollowerQuiesced,
    LeaderDisconnected,
    LeaderQuiesced,
    LogStartMoved,
    PartitionChanged,
    Received,
    RecordsWritten,
    SnapshotProgressed,
    SnapshotStored,
    TimePassed,
    Unquiesced,
)
from zurau.replica.core.messages import (
    BeginEpoch,
    EndEpoch,
    Fetch,
    Fetched,
    FetchRefused,
    HighWatermark,
    Message,
    Vote,
    VoteAnswer,
)


def event_in_words(event: Event) -> str:
    match event:
        case Received(message):
            return f"hears from {message.sender}: {in_words(message)}"
        case FollowerQuiesced(fetch):
            return f"is quiesced with {fetch.sender}: {in_words(fetch)}"
        case LeaderQuiesced(answer):
            return f"is quiesced with {answer.sender}: {in_words(answer)}"
        case Unquiesced(replica, at_ms):
            return f"is unquiesced: {replica} was last heard of at {at_ms}"
        case FetchProgressed():
            return "hears that bytes of an answer are coming"
        case LeaderDisconnected():
            return "has lost the connection to its leader"
        case TimePassed():
            return "wakes"
        case RecordsWritten(count):
            return f"has written {count} records of its own"
        case Flushed(number):
            return f"has flushed ({number})"
        case _:
            return _rare_event_in_words(event)


def _rare_event_in_words(event: Event) -> str:
    match event:
        case LogStartMoved(offset):
            return f"has lost what was below {offset} to retention"
        case SnapshotProgressed(loaded):
            return f"has {loaded} parts of its snapshot"
        case SnapshotStored(point):
            return f"has a snapshot of what was below {point.mark.start_offset}"
        case PartitionChanged(state, _):
            leader, names = state.leader or "nobody", ", ".join(map(str, state.in_sync))
            epochs = f"epoch {state.leader_epoch}, state {state.partition_epoch}"
            return f"hears from the controller: {leader} leads, in sync: {names} ({epochs})"
        case BrokerRegistered(broker_epoch):
            return f"hears from the controller: this is start {broker_epoch}"
        case _:
            return f"is told {event}"


def effect_in_words(effect: Effect) -> str:
    match effect:
        case SaveVote(epoch, voted_for):
            return f"saves epoch {epoch}, " + (f"votes for {voted_for}" if voted_for is not None else "no vote yet")
        case Append(items):
            return f"appends {', '.join(map(str, items))}"
        case Truncate(point):
            return f"truncates its log at {point}"
        case AdvanceStart(offset):
            return f"removes what is below {offset}"
        case Send(to, message):
            return f"to {to}: {in_words(message)}"
        case ReadAndSend(to, message, from_offset, upto_offset, _):
            return f"to {to}: {in_words(message)}, records {from_offset} to {upto_offset}"
        case AdvanceHighWatermark(high_watermark):
            return f"high watermark {high_watermark}"
        case RoleChanged(role, epoch, leader):
            follows = f" of {leader}" if leader is not None and role == "follower" else ""
            return f"is {role}{follows} in epoch {epoch}"
        case RestartLog(point):
            return f"begins its log anew at {point.mark.start_offset}, after epoch {point.mark.epoch}"
        case _:
            return _rare_effect_in_words(effect)


def _rare_effect_in_words(effect: Effect) -> str:
    match effect:
        case StartFlush(number):
            return f"begins to flush ({number})"
        case AdvanceReplicated(offset, voter_count):
            return f"has {offset} stored by {voter_count}"
        case LeadershipEstablished(epoch):
            return f"is established as leader of epoch {epoch}"
        case Refuse(reason):
            return f"refuses: {reason}"
        case FetchSnapshot(leader, point):
            return f"asks {leader} for a snapshot of what was below {point.mark.start_offset}"
        case AlterPartition(proposal):
            names = ", ".join(map(str, proposal.in_sync))
            return f"asks the controller for {names} in sync, instead of state {proposal.partition_epoch}"
        case _:
            return str(effect)


def in_words(message: Message) -> str:
    match message:
        case Fetch():
            return f"fetch at {message.position} (epoch {message.epoch})"
        case Fetched(diverging=diverging) if diverging is not None:
            return f"your log differs from mine after {diverging} (epoch {message.epoch})"
        case Fetched(snapshot=point) if point is not None:
            return f"my log begins at {point.mark.start_offset} (epoch {message.epoch})"
        case Fetched():
            items = ", ".join(map(str, (*message.marks, *message.batches))) or "nothing new"
            return f"{items}; high watermark {message.high_watermark} (epoch {message.epoch})"
        case HighWatermark():
            return f"high watermark {message.high_watermark} (epoch {message.epoch})"
        case FetchRefused():
            return f"I do not lead; {message.leader or 'nobody I know'} does (epoch {message.epoch})"
        case Vote():
            kind = "would you vote" if message.is_pre else "vote"
            return f"{kind} for me, I am at {message.position} (epoch {message.epoch})"
        case VoteAnswer():
            answer = "yes" if message.is_granted else "no"
            return f"{answer}{', if asked' if message.is_pre else ''} (epoch {message.epoch})"
        case BeginEpoch():
            return f"I lead (epoch {message.epoch})"
        case EndEpoch():
            return f"I resign for {', '.join(map(str, message.successors))} (epoch {message.epoch})"
