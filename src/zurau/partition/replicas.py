"""Making the replica core of a partition from what is left on disk: its log, and what the journal says of it."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec.structs import replace

from zurau.epochs import NO_EPOCH
from zurau.ids import BrokerId, Offset
from zurau.journal.records import ReplicaFacts
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.ports import Randomness
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership, Voters
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.settings import ReplicaSettings
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.quorum.replica import Replica

#: How long replicas wait for each other. Read where it is used: a simulator puts hastier ones in its place.
TIMING = ReplicaSettings()


class Replicas(msgspec.Struct, frozen=True):
    """Of one partition, as the metadata names them."""

    me: ReplicaId
    #: Those that a new partition begins with; what the log and the journal say later counts more.
    voters: Voters
    #: Other brokers that may hold the partition.
    others: tuple[BrokerId, ...] = ()
    is_in_sync_mode: bool = False
    #: Nobody else is in sync: what was written last nobody else may have.
    is_alone_in_sync: bool = False
    #: There may be others, even if none is known.
    has_company: bool = False
    #: Its log goes behind snapshots of its own, and not as its leader's does.
    keeps_snapshots: bool = False


def make_replica(replicas: Replicas, log: Log, facts: ReplicaFacts, randomness: Randomness) -> ReplicaCore:
    if replicas.is_in_sync_mode:
        return InSyncReplica(
            replicas.me,
            log=LogView(log.start_offset, log.end_offset, log.epochs.marks),
            high_watermark=_high_watermark(log, facts),
            settings=replica_settings(log.settings),
            randomness=randomness,
        )
    return make_quorum_replica(
        replicas.me,
        replicas.voters,
        log,
        facts,
        randomness,
        replicas.others,
        has_company=replicas.has_company,
        follows_start=not replicas.keeps_snapshots,
    )


def make_quorum_replica(
    replica_id: ReplicaId,
    voters: Voters,
    log: Log,
    facts: ReplicaFacts,
    randomness: Randomness,
    others: tuple[BrokerId, ...] = (),
    *,
    has_company: bool = False,
    follows_start: bool = True,
) -> Replica:
    return Replica(
        replica_id,
        brokers=others or tuple(voter.broker for voter in voters if voter != replica_id),
        log=LogView(log.start_offset, log.end_offset, log.epochs.marks),
        membership=_membership(voters, log, facts, is_alone=not others and not has_company),
        epoch=facts.epoch,
        voted_for=facts.voted_for,
        high_watermark=_high_watermark(log, facts),
        settings=replace(replica_settings(log.settings), follows_start=follows_start),
        randomness=randomness,
        # A new partition has a leader at once, and the preferred one, instead of when somebody has waited in vain.
        stands_first=voters[:1] == (replica_id,) and _is_new(log) and facts.epoch == NO_EPOCH,
    )


def _is_new(log: Log) -> bool:
    return not (log.end_offset or log.epochs.marks)


def _membership(voters: Voters, log: Log, facts: ReplicaFacts, *, is_alone: bool) -> Membership:
    if facts.voters:
        known = Membership.of(facts.voters, log.end_offset)
        known.advance_start(log.start_offset)
        return known
    # Whoever has forgotten who votes, and is not the only one who could, hears it from a leader: to believe that one
    # votes alone, or with those who began, would be to elect a second leader.
    return Membership(voters if _is_new(log) or is_alone else ())


def _high_watermark(log: Log, facts: ReplicaFacts) -> Offset:
    return min(max(facts.high_watermark, log.start_offset), log.end_offset)


def replica_settings(settings: LogSettings) -> ReplicaSettings:
    return _settings(TIMING, settings.waits_for_flush, settings.min_insync_replicas)


@cache
def _settings(timing: ReplicaSettings, waits_for_flush: bool, in_sync_min: int) -> ReplicaSettings:
    return replace(timing, waits_for_flush=waits_for_flush, in_sync_min=in_sync_min)
