"""A replica that has lost something that it had promised goes on as another one.

A batch that was flushed has been promised, to a leader that counted it or in a vote. A log that has lost it must not
vote as if it had never been there: one flipped bit on one disk could cost a whole partition a record. Where others have
the partition too, such a replica begins anew under a new name, with an empty log that it fetches from the leader, and
counts again when it has been made a voter, or in sync, again. What was left of the old log is kept aside.
"""

from __future__ import annotations

from zurau.broker.identity import ID_BYTES, Identity
from zurau.epochs import Position
from zurau.ids import directory_name
from zurau.journal.journal import Journal
from zurau.journal.records import LogId, ReplicaFacts
from zurau.log.log import Log
from zurau.partition.replicas import Replicas
from zurau.ports import Randomness
from zurau.replica.core.recovery import Found, is_intact


def has_lost_something(log: Log, name: LogId, replicas: Replicas, journal: Journal) -> bool:
    """Whether something is gone that this replica was counted for. Where nobody else has the partition, or all of it,
    it is damage, and is served with its gap."""
    if not replicas.others:
        return False
    found = Found(
        whole=_whole(log), flushed=journal.facts(name).flushed, has_vote=not journal.damage, has_snapshot=True
    )
    if replicas.is_alone_in_sync and log.position >= found.flushed:
        return False  # a damaged place costs less than all that nobody else has, and goes when others are in sync again
    return not is_intact(found) or _may_lack_unflushed(log, name, replicas, journal)


def others_have_metadata(identity: Identity, facts: ReplicaFacts) -> bool:
    """Whether somebody else votes on the metadata, as far as this directory remembers; if it does not, whether it
    joined others."""
    voters = facts.voters[-1].voters if facts.voters else ()
    if not voters:
        return identity.is_clustered and not identity.is_founder
    return any(voter.broker != identity.broker_id for voter in voters)


def new_name(randomness: Randomness) -> str:
    return directory_name(randomness.bytes(ID_BYTES))


def _whole(log: Log) -> Position:
    """Where it ends before the first damage."""
    damage = log.damage
    if not damage:
        return log.position
    first = damage[0].first_offset
    return Position(log.epochs.epoch_of(first - 1), first)


def _may_lack_unflushed(log: Log, name: LogId, replicas: Replicas, journal: Journal) -> bool:
    """With `flush=os` a replica is counted for what it has written. If it was not stopped in good order, and the
    machine was restarted since, some of that may be gone. Of replicas in sync the controller keeps account."""
    if log.settings.waits_for_flush or replicas.is_in_sync_mode:
        return False
    known = journal.last_known(name)
    has_written = journal.has_flushed(name) or log.end_offset > 0
    return known is not None and known.closed_offset is None and not known.kept_unflushed and has_written
