"""What a broker is told when it starts, apart from addresses (node/) and what is a topic's business (log/)."""

from __future__ import annotations

from dataclasses import dataclass

from zurau.settings import DAY_MS, GIB, INT32_MAX, INT64_MAX, MIB, MINUTE_MS, SECOND_MS, setting


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    # Topics
    num_partitions: int = setting(
        1, "num.partitions", at_least=1, at_most=10_000, doc="Partitions of a new topic that does not say."
    )
    default_replication_factor: int = setting(
        1, "default.replication.factor", at_least=1, at_most=32767, doc="Replicas of a new topic that does not say."
    )
    auto_create_topics_enable: bool = setting(
        True, "auto.create.topics.enable", doc="Create a topic when a client first asks for it, if the client agrees."
    )
    delete_topic_enable: bool = setting(True, "delete.topic.enable", doc="Whether topics can be deleted.")

    # Brokers among each other
    broker_rack: str = setting(
        "",
        "broker.rack",
        doc="Where this broker stands. Replicas are spread over racks, and consumers that give the same `client.rack` "
        "read from a replica here (KIP-392).",
    )
    broker_heartbeat_interval_ms: int = setting(
        400,
        "broker.heartbeat.interval.ms",
        at_least=1,
        at_most=INT32_MAX,
        doc="How often a broker tells the controller that it is alive.",
    )
    broker_session_timeout_ms: int = setting(
        2 * SECOND_MS,
        "broker.session.timeout.ms",
        at_least=1,
        at_most=INT32_MAX,
        doc="A broker that the controller has not heard of for this long is fenced: it leads nothing in mode isr, and "
        "gets no new replicas, until it is heard again.",
    )
    metadata_voter_replacement_ms: int = setting(
        5 * MINUTE_MS,
        "zurau.metadata.voter.replacement.ms",
        at_least=0,
        at_most=INT64_MAX,
        doc="A broker that votes on the metadata and is away for this long is replaced by one that is there, if there "
        "is one that does not vote yet.",
    )
    auto_leader_rebalance_enable: bool = setting(
        True,
        "auto.leader.rebalance.enable",
        doc="Whether leadership goes back to the first replica of a partition when that is there again.",
    )
    leader_imbalance_check_interval_s: int = setting(
        5,
        "leader.imbalance.check.interval.seconds",
        at_least=1,
        at_most=INT32_MAX // SECOND_MS,
        doc="How often it is looked whether leaders are where they should be: on first replicas, not on drained "
        "brokers.",
    )

    # The brokers' own topic
    offsets_topic_num_partitions: int = setting(
        16,
        "offsets.topic.num.partitions",
        at_least=1,
        at_most=10_000,
        doc="Partitions of the topic that holds consumer groups. Groups are spread over them; fixed once created.",
    )
    offsets_topic_replication_factor: int = setting(
        3,
        "offsets.topic.replication.factor",
        at_least=1,
        at_most=32767,
        doc="Replicas of that topic, as far as there are brokers: with each that comes it grows by itself.",
    )
    offsets_topic_segment_bytes: int = setting(
        100 * MIB,
        "offsets.topic.segment.bytes",
        at_least=MIB,
        at_most=INT32_MAX,
        doc="Segment size of that topic. Smaller segments are compacted sooner and load faster.",
    )

    internal_segment_bytes: int = setting(
        0,
        "internal.segment.bytes",
        at_least=0,
        at_most=INT32_MAX,
        doc="For tests of small segments: the segment size of all topics, whatever segment.bytes says. 0: not used.",
    )

    # Upkeep
    log_retention_check_interval_ms: int = setting(
        5 * MINUTE_MS,
        "log.retention.check.interval.ms",
        at_least=1,
        at_most=INT64_MAX,
        doc="How often to look for segments that are too old or too many.",
    )
    log_cleaner_backoff_ms: int = setting(
        15 * SECOND_MS,
        "log.cleaner.backoff.ms",
        at_least=1,
        at_most=INT64_MAX,
        doc="How often to look for logs that are worth compacting.",
    )
    producer_id_expiration_ms: int = setting(
        DAY_MS,
        "producer.id.expiration.ms",
        at_least=1,
        at_most=INT32_MAX,
        doc="How long the last sequence numbers of a silent idempotent producer are remembered.",
    )
    producers_memory_bytes_max: int = setting(
        256 * MIB,
        "zurau.producers.memory.max.bytes",
        at_least=MIB,
        at_most=INT64_MAX,
        doc="Memory for the last sequence numbers of idempotent producers, about, over all partitions: a kilobyte for "
        "each producer in each partition that it writes to. Past it those that were silent longest are forgotten, in "
        "the partitions that have most.",
    )

    disk_low_bytes: int = setting(
        GIB,
        "zurau.disk.low.bytes",
        at_least=0,
        at_most=INT64_MAX,
        doc="With less room than this left on its disk the broker's health has a problem (`zurau cluster health`).",
    )

    # Connections and requests
    max_connections: int = setting(
        INT32_MAX, "max.connections", at_least=1, at_most=INT32_MAX, doc="Connections at a time; more are closed."
    )
    connections_max_idle_ms: int = setting(
        10 * MINUTE_MS,
        "connections.max.idle.ms",
        at_least=-1,
        at_most=INT64_MAX,
        doc="A connection without requests for this long is closed. -1: never.",
    )
    socket_request_max_bytes: int = setting(
        100 * MIB,
        "socket.request.max.bytes",
        at_least=1024,
        at_most=INT32_MAX,
        doc="Largest request that is read into memory; a client that sends a larger one is disconnected.",
    )
    socket_receive_buffer_bytes: int = setting(
        -1,
        "socket.receive.buffer.bytes",
        at_least=-1,
        at_most=INT32_MAX,
        doc="What the system may hold of one client's requests before they are read. -1: as much as it likes, up to "
        "some megabytes (Linux: `net.ipv4.tcp_rmem`); Kafka's default is 102400.",
    )
    socket_send_buffer_bytes: int = setting(
        -1,
        "socket.send.buffer.bytes",
        at_least=-1,
        at_most=INT32_MAX,
        doc="What the system may hold of answers that one client has not taken. -1: as much as it likes, up to some "
        "megabytes (Linux: `net.ipv4.tcp_wmem`); Kafka's default is 102400.",
    )
    queued_max_request_bytes: int = setting(
        512 * MIB,
        "queued.max.request.bytes",
        at_least=MIB,
        at_most=INT64_MAX,
        doc="Memory for requests that are not answered yet; past it the largest holder is closed.",
    )
    queued_max_response_bytes: int = setting(
        512 * MIB,
        "queued.max.response.bytes",
        at_least=MIB,
        at_most=INT64_MAX,
        doc="Memory for answers that clients have not taken. When it is short, fetches get smaller answers or wait, "
        "and clients that take nothing of theirs for seconds are closed.",
    )
    fetch_max_bytes: int = setting(
        55 * MIB,
        "fetch.max.bytes",
        at_least=1024,
        at_most=INT32_MAX,
        doc="Largest answer to a fetch, whatever the client asks for; a single larger batch is sent all the same.",
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        1000,
        "max.incremental.fetch.session.cache.slots",
        at_least=0,
        at_most=100_000,
        doc="Fetch sessions at a time (KIP-227). A client that gets none names all its partitions in every fetch.",
    )
    max_request_partition_size_limit: int = setting(
        2000,
        "max.request.partition.size.limit",
        at_least=1,
        at_most=INT32_MAX,
        doc="Partitions in one answer to DescribeTopicPartitions; the client asks for the rest.",
    )
