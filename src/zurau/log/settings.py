"""What a topic can be told about its logs: Kafka's own settings, and how durable an append is."""

from __future__ import annotations

from dataclasses import dataclass

from zurau.settings import DAY_MS, GIB, HOUR_MS, INT32_MAX, INT64_MAX, KIB, MIB, MINUTE_MS, setting

#: The largest batch header and a record of one mebibyte: Kafka's odd default.
_MESSAGE_BYTES = MIB + 12


@dataclass(frozen=True, slots=True)
class LogSettings:
    # How long data stays
    cleanup_policy: tuple[str, ...] = setting(
        ("delete",),
        "cleanup.policy",
        broker_name="log.cleanup.policy",
        choices=("delete", "compact"),
        doc="delete: old segments go when they are too old or too many. compact: the last record of each key stays. "
        "compact,delete: both.",
    )
    retention_ms: int = setting(
        7 * DAY_MS,
        "retention.ms",
        broker_name="log.retention.ms",
        at_least=-1,
        at_most=INT64_MAX,
        doc="Age at which a segment goes, by its newest record. -1: never.",
    )
    retention_bytes: int = setting(
        -1,
        "retention.bytes",
        broker_name="log.retention.bytes",
        at_least=-1,
        at_most=INT64_MAX,
        doc="Size of a partition above which its oldest segments go. -1: no limit.",
    )
    file_delete_delay_ms: int = setting(
        MINUTE_MS,
        "file.delete.delay.ms",
        broker_name="log.segment.delete.delay.ms",
        at_least=0,
        at_most=INT64_MAX,
        doc="Accepted for compatibility: files go as soon as a worker is free, and readers of them finish in peace.",
    )

    # Compaction
    min_cleanable_dirty_ratio: float = setting(
        0.5,
        "min.cleanable.dirty.ratio",
        broker_name="log.cleaner.min.cleanable.ratio",
        at_least=0.0,
        at_most=1.0,
        doc="Compact when this part of a log is new since the last time.",
    )
    delete_retention_ms: int = setting(
        DAY_MS,
        "delete.retention.ms",
        broker_name="log.cleaner.delete.retention.ms",
        at_least=0,
        at_most=INT64_MAX,
        doc="How long a tombstone stays after it was first compacted, for readers that are behind.",
    )
    min_compaction_lag_ms: int = setting(
        0,
        "min.compaction.lag.ms",
        broker_name="log.cleaner.min.compaction.lag.ms",
        at_least=0,
        at_most=INT64_MAX,
        doc="Age below which records are not compacted away.",
    )
    max_compaction_lag_ms: int = setting(
        INT64_MAX,
        "max.compaction.lag.ms",
        broker_name="log.cleaner.max.compaction.lag.ms",
        at_least=1,
        at_most=INT64_MAX,
        doc="Age at which records are compacted even if too few are new.",
    )

    # Segments
    segment_bytes: int = setting(
        GIB,
        "segment.bytes",
        broker_name="log.segment.bytes",
        at_least=MIB,
        at_most=INT32_MAX,
        doc="Size at which a new segment is begun.",
    )
    segment_ms: int = setting(
        7 * DAY_MS,
        "segment.ms",
        broker_name="log.roll.ms",
        at_least=1,
        at_most=INT64_MAX,
        doc="Age, by its records' timestamps, at which a new segment is begun even if the old one is small.",
    )
    segment_index_bytes: int = setting(
        10 * MIB,
        "segment.index.bytes",
        broker_name="log.index.size.max.bytes",
        at_least=16,
        at_most=INT32_MAX,
        doc="Size of an offset index at which a new segment is begun.",
    )
    index_interval_bytes: int = setting(
        4 * KIB,
        "index.interval.bytes",
        broker_name="log.index.interval.bytes",
        at_least=0,
        at_most=INT32_MAX,
        doc="Bytes of log for each entry of its indexes.",
    )

    # What may be written
    max_message_bytes: int = setting(
        _MESSAGE_BYTES,
        "max.message.bytes",
        broker_name="message.max.bytes",
        at_least=0,
        at_most=INT32_MAX,
        doc="Largest batch, compressed as it comes, that is accepted.",
    )
    compression_type: str = setting(
        "producer",
        "compression.type",
        choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        doc="How batches are stored: as their producer packed them, or packed anew, which costs the broker time.",
    )
    message_timestamp_type: str = setting(
        "CreateTime",
        "message.timestamp.type",
        broker_name="log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
        doc="Whose clock timestamps a record: the producer's or the broker's.",
    )
    message_timestamp_before_max_ms: int = setting(
        INT64_MAX,
        "message.timestamp.before.max.ms",
        broker_name="log.message.timestamp.before.max.ms",
        at_least=0,
        at_most=INT64_MAX,
        doc="How far a record's timestamp may be behind the broker's clock.",
    )
    message_timestamp_after_max_ms: int = setting(
        HOUR_MS,
        "message.timestamp.after.max.ms",
        broker_name="log.message.timestamp.after.max.ms",
        at_least=0,
        at_most=INT64_MAX,
        doc="How far a record's timestamp may be ahead of the broker's clock.",
    )

    # How safe it is
    replication_mode: str = setting(
        "quorum",
        "replication.mode",
        choices=("quorum", "isr"),
        doc="Who elects leaders, and who commits. quorum: the replicas, and a majority of them. isr: the controller, "
        "and all that are in sync, as in Kafka; so it is with two replicas, unless the topic says otherwise. Fixed "
        "once a topic is created.",
    )
    flush: str = setting(
        "fsync",
        "flush",
        choices=("fsync", "os"),
        doc="When an append is stored. fsync: once it survives a power failure. os: once it survives the process.",
    )
    flush_messages: int = setting(
        INT64_MAX,
        "flush.messages",
        broker_name="log.flush.interval.messages",
        at_least=1,
        at_most=INT64_MAX,
        doc="With flush=os: flush in the background when this many records are not flushed. 1 is flush=fsync.",
    )
    flush_ms: int = setting(
        INT64_MAX,
        "flush.ms",
        broker_name="log.flush.interval.ms",
        at_least=0,
        at_most=INT64_MAX,
        doc="With flush=os: flush in the background when a record has not been flushed for this long.",
    )
    preallocate: str = setting(
        "false",
        "preallocate",
        broker_name="log.preallocate",
        choices=("false",),
        doc="Accepted for compatibility: files take the room they need and no more.",
    )
    unclean_leader_election_enable: str = setting(
        "false",
        "unclean.leader.election.enable",
        choices=("false",),
        doc="Accepted for compatibility: a replica that misses acknowledged records never leads.",
    )
    min_insync_replicas: int = setting(
        1,
        "min.insync.replicas",
        at_least=1,
        at_most=INT32_MAX,
        doc="Replicas that must be in sync for acks=all to be accepted. In mode quorum, where a majority commits, "
        "acks=all waits until so many have stored it, if that is more than a majority.",
    )

    @property
    def waits_for_flush(self) -> bool:
        """Whether an append counts as stored only when it is flushed."""
        return self.flush == "fsync" or self.flush_messages == 1
