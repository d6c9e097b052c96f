"""Every number that a module gives a name is either drawn in simulation or fixed for a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from zurau.simulation.constants import DRAWN

#: Rooms whose numbers say how tests and scenery are made, and the replica core, which has settings and no sizes.
OTHER_ROOMS = {"simulation", "testing", "chaos", "replica", "pyspark_zurau"}
#: Names that stand for something and measure nothing.
MARKERS = ("NO_", "_NO_", "NOT_", "UNKNOWN_")
PROTOCOL = ("_SINCE", "_BIT", "_AT", "_MASK", "_MAGIC", "VERSION", "_VERSIONS")
#: Why they are what they are. A limit that clients or users meet is no size of ours; neither is a format's number.
FIXED = {
    "a number of the Kafka protocol": """
        api.kafka.handlers.READ api.kafka.handlers.WRITE api.kafka.handlers.CREATE api.kafka.handlers.DELETE
        api.kafka.handlers.DESCRIBE api.kafka.handlers.ALTER api.kafka.handlers.IDEMPOTENT_WRITE
        api.kafka.handlers.DESCRIBE_CONFIGS api.kafka.handlers.ALTER_CONFIGS
        api.kafka.describe_client_quotas.THIS_NAME api.kafka.elect_leaders.PREFERRED api.kafka.elect_leaders.UNCLEAN
        api.kafka.no_authorizer.CODE wire.kafka.frames.PRODUCE api.kafka.dispatch.FETCH
        api.kafka.dispatch.PRODUCE api.kafka.gathering.READ_COMMITTED api.kafka.find_coordinator.GROUP
        api.kafka.find_coordinator.TRANSACTION api.kafka.init_producer_id.FIRST_EPOCH
        api.kafka.list_offsets.READ_COMMITTED api.kafka.list_offsets.LATEST api.kafka.list_offsets.EARLIEST
        api.kafka.list_offsets.MAX_TIMESTAMP api.kafka.list_offsets.EARLIEST_LOCAL api.kafka.list_offsets.LATEST_TIERED
        api.kafka.list_offsets.EARLIEST_PENDING_UPLOAD
        api.kafka.describe_client_quotas.THIS_NAME api.kafka.elect_leaders.PREFERRED api.kafka.elect_leaders.UNCLEAN
        api.kafka.no_authorizer.CODE
        api.kafka.fetch_session.FIRST_EPOCH api.kafka.session.JOIN_GROUP
        api.kafka.produce.ACKS_ALL api.kafka.describe_cluster.BROKERS machines.controller.topics.DEFAULT
        client.admin.BROKER_DEFAULT client.admin.TOPIC_RESOURCE client.admin.BROKER_RESOURCE client.admin.SET
        client.admin.RESET
        client.operations.BROKER_RESOURCE client.operations.TOPIC_RESOURCE client.operations.SET client.operations.RESET
        client.cluster.cluster.GROUP_COORDINATOR client.cluster.connection.ASK_VERSIONS_IN
        client.producer.sender.ACKS_ALL
        client.offsets.LATEST_TIMESTAMP client.offsets.EARLIEST_TIMESTAMP client.offsets.READ_UNCOMMITTED
        client.offsets.READ_COMMITTED partition.producers.REMEMBERED_BATCHES
        machines.groups.rebalance.NEW_MEMBER_JOIN_TIMEOUT_MS wire.kafka.varints.STRING_BYTES_MAX""",
    "a number of a format": """
        partition.voters._VOTERS_TYPE
        partition.runtime.RECORD_BATCH_OVERHEAD partition.runtime.RECORD_OVERHEAD
        ids._NAME_BYTES machines.controller.brokers.DIRECTORY_ID_BYTES machines.controller.records.MAY_BE_IGNORED
        broker.identity.ID_BYTES broker.joining.FIRST_ID broker.peers.hello.NOBODY
        records.batch.HEADER_BYTES records.batch.MAGIC records.batch.LENGTH_PREFIX_BYTES
        records.batch.CHECKED_FROM machines.groups.members.VERSION_BYTES
        records.compression._GZIP_WINDOW
        records.frame_sizes._LZ4_INDEPENDENT records.pure_walk.RECORD_BYTES_MIN records.pure_walk.INT_BITS
        records.pure_walk.LONG_BITS
        records.frame_sizes._LZ4_RAW_BLOCK records.partitioner._SEED records.partitioner._MULTIPLIER
        records.record._RECORD_BYTES_MIN records.record._VARINT_BITS_MAX log.settings._MESSAGE_BYTES
        log.scan._BASE_OFFSET_BYTES broker.peers.layouts.IS_UNKNOWN broker.peers.layouts.DIVERGES
        broker.peers.layouts.HAS_SNAPSHOT""",
    "what something takes in memory, measured": """
        machines.groups.memory.GROUP_BYTES machines.groups.memory.MEMBER_BYTES machines.groups.memory.PENDING_ID_BYTES
        machines.groups.memory.OFFSET_BYTES api.kafka.session.FRAME_BYTES api.kafka.session.DECODED_TIMES
        api.kafka.session.DECODED_BYTES_MAX api.kafka.reading.READING_BYTES
        partition.producer_memory.PRODUCER_BYTES""",
    "a limit that clients meet, tested at its edge": """
        api.response_memory.GROW_WITHIN_MS broker.last_seen.SEEN_MAX broker.last_seen.NAME_CHARACTERS_MAX
        broker.last_seen.TEXT_BYTES_MAX api.http.session.HEAD_BYTES_MAX api.http.decoding.FIELDS_MAX
        api.http.decoding.FORM_BYTES_MAX api.http.producers.MESSAGES_MAX api.http.producers.KEY_CHARACTERS_MAX
        broker.group_coordinators.DELIVERED_MAX
        api.http.records.ANSWERED_MAX api.http.records.RECORD_BYTES_MAX api.http.records.WAIT_MS_MAX
        errors.MESSAGE_CHARACTERS_MAX api.kafka.join_group.NAME_CHARACTERS_MAX machines.groups.joining.PROTOCOLS_MAX
        machines.groups.joining.PENDING_IDS_MAX
        wire.kafka.frame_reader.WITHOUT_RECORDS_BYTES_MAX wire.kafka.frames.PRODUCE_ELEMENTS_MAX
        wire.kafka.frames.RESPONSE_BYTES_MAX node.slow_readers.PROGRESS_BYTES node.slow_readers.PATIENCE_MS
        node.slow_readers.PATIENCE_WITHOUT_MEMORY_MS
        broker.fetch_sessions.EVICTABLE_AFTER_MS api.kafka.reading.FOLLOWERS_EVERY_MS partition.producers.PRODUCERS_MAX
        machines.controller.names.NAME_CHARACTERS_MAX machines.controller.topics.PARTITIONS_MAX
        partition.validation.WAITING_BYTES_MAX records.pure_walk.PLACES_MAX log.compaction._TIMESTAMP_MAX
        records.record.UNPACKED_BYTES_MAX wire.kafka.frames.REQUEST_ELEMENTS_MAX
        client.cluster.connection.ANSWER_BYTES_MAX
        client.security.sasl.ITERATIONS_MIN client.security.sasl.ITERATIONS_MAX""",
    "a limit that brokers meet, tested at its edge": """
        broker.introductions.ADDRESSES_MAX broker.introductions.BROKERS_MAX broker.peers.hello.SCRATCH_BYTES
        machines.controller.sessions._DISCONNECTED_SHARE machines.controller.image.RESERVED_IDS_MAX
        broker.metadata_voters.METADATA_VOTERS_MAX broker.elections.DECIDED_WITHIN_MS
        wire.peer.frame_reader.HANDSHAKE_BYTES_MAX wire.peer.frame_reader.HEAD_BYTES_MAX
        broker.peers.connection.QUEUED_BYTES_MAX broker.peers.connections.RESPONSE_BYTES_MAX""",
    "a code, a limit or a default of the system": """
        broker.placement.DAMAGED_BITS_MAX broker.directories.KEPT_CHARACTERS node.closed_peers._TCP_INFO
        node.descriptors.RESERVED node.descriptors.CONNECTIONS_MIN
        broker.introductions.HOST_CHARACTERS_MAX broker.introductions.PORT_MAX
        memory._TRIM_THRESHOLD memory._MMAP_THRESHOLD node.disk._NOWAIT cli.endings.TERMINATED
        cli.endings.PIPE_CLOSED cli.serve.WRONG_USAGE client.cluster.cluster.DEFAULT_PORT
        node.settings.PEER_PORT cli.up.FIRST_PORT cli.up.PEER_PORTS_APART cli.deployment.EXECUTABLE
        cli.options.DEFAULT_TIMEOUT_S
        node.broken.EXIT_CODE""",
    "a unit, or as much as there is": """
        partition.refusals._EVERYBODY
        settings.SECOND_MS settings.MINUTE_MS settings.HOUR_MS settings.DAY_MS settings.KIB settings.MIB settings.GIB
        settings.INT32_MAX settings.INT64_MAX records.pure_walk.INT64_MIN
        log.retention.NO_LIMIT wire.kafka.codec.ANY_NUMBER""",
    "what something takes, about": "partition.runtime.RECORD_BATCH_OVERHEAD partition.runtime.RECORD_OVERHEAD",
    "how much effort a codec makes; any is right": "records.compression._ZSTD_LEVEL records.compression._LZ4_LEVEL",
    "how long somebody is patient; tests of that pass their own": """
        node.connection.LINGER_MS broker.peer_calls.ANSWER_WITHIN_MS broker.any_broker.LOOK_EVERY_MS
        api.http.producers.STORED_WITHIN_MS api.http.records.LED_WITHIN_MS
        broker.forwarding.ANSWER_MS broker.forwarding.CATCH_UP_MS broker.forwarding.LOOK_EVERY_MS
        broker.elections.LOOK_EVERY_MS broker.broker.ASK_AGAIN_MS broker.openings.OPENED_WITHIN_MS
        broker.progress.PROGRESS_MS partition.refusals.CONSEQUENCES_MS partition.partition.NO_ROOM_EVERY_MS
        broker.joining.SAY_AGAIN_MS broker.handing_over.HAND_OVER_MS broker.handing_over.NO_CONTROLLER_MS
        broker.handing_over.LOOK_EVERY_MS broker.heartbeats.SHUTDOWN_INTERVAL_MS
        broker.heartbeats.UNHEARD_MS broker.room.YIELD_MS cli.cluster_operations.LOOK_EVERY_S
        api.kafka.elect_leaders.HANDOVER_MS api.kafka.elect_leaders.LOOK_EVERY_MS
        broker.joining.ROUND_MS broker.introductions.MISSING_MS broker.introductions.CALM_MS
        broker.voter_changes.INTERVAL_MS broker.internal_topics.GROW_INTERVAL_MS
        broker.voter_changes.SETTLED_WITHIN_MS broker.last_seen.WRITE_INTERVAL_MS broker.last_seen.NOTE_INTERVAL_MS
        broker.peers.connection.PATIENCE_MS broker.peers.connections.REPEAT_MS node.peers.GOODBYE_S
        node.flush_threads.ALONE_S node.process.STOP_WITHIN_S node.process.LOOK_EVERY_S
        cli.up.READY_WITHIN_S cli.up.LOOK_EVERY_S cli.up.RESTART_AFTER_S cli.up.RESTART_AFTER_MAX_S
        node.acceptor.PAUSE_S node.rate_limited_log.INTERVAL_S node.turns.TURN_S node.turns.SWITCH_S node.turns.SLOW_S
        cli.consume.ROUND_S client.admin.SETTLE_S client.cluster.cluster.START_PATIENCE_S
        client.aio.carrier.ROUND_S client.aio.consumer.ROUND_S client.consumer.consumer.ROUND_S
        client.groups.consumer.COMMIT_INTERVAL_S client.groups.consumer.ROUND_S client.groups.consumer.HURRY_S
        client.groups.membership.STOP_PATIENCE_S client.groups.membership.LEAVE_PATIENCE_S
        client.producer.producer.ROUND_S
        client.retry.FIRST_DELAY_S client.retry.LONGEST_DELAY_S client.consumer.near_replicas.NAMED_FOR_S
        client.retry.LEADER_DELAY_S client.retry.SUSPICION_S client.cluster.cluster.FIRST_PATIENCE_S
        client.cluster.cluster.COORDINATOR_PATIENCE_S""",
    "how much is shown to a person": """
        node.process.TAIL_CHARACTERS
        broker.health.TEXT_BYTES_MAX cli.cluster_operations.SHOWN machines.controller.configs._LISTED_BROKERS
        cli.log.SHOWN_BYTES cli.simulate._SHOWN_TURNS cli.simulate._SHOWN_LINES
        cli.chaos._TOLD_VIOLATIONS""",
    "a name for a verdict": """
        records.pure_walk.SOUND records.pure_walk.KEYLESS records.pure_walk.MISTIMED records.pure_walk.COUNT
        records.pure_walk.RECORD_LENGTH records.pure_walk.TIMESTAMP records.pure_walk.OFFSET records.pure_walk.KEY
        records.pure_walk.VALUE records.pure_walk.HEADERS records.pure_walk.LEFT_OVER
        records.pure_walk.IMPOSSIBLE_TIME""",
    "a set of flags": """
        partition.admission.RARE_BITS
        api.kafka.authorized_operations.ON_TOPIC api.kafka.authorized_operations.ON_CLUSTER
        api.kafka.describe_groups.ON_GROUP""",
}
_REASONS = {name: reason for reason, names in FIXED.items() for name in names.split()}


def test_every_number_with_a_name_is_drawn_or_fixed_for_a_reason(source_files):
    unknown = [name for file in source_files for name in _numbers(file) if name not in DRAWN and name not in _REASONS]
    assert not unknown, (
        "add it to DRAWN in src/zurau/simulation/constants.py with the least value that must work, "
        f"or to FIXED in tests/tidy/test_constants.py under its reason: {unknown}"
    )


def test_every_constant_of_the_tables_is_there(source_files):
    known = {name for file in source_files for name in _numbers(file)}
    gone = [name for name in (*DRAWN, *_REASONS) if name not in known and not _is_marker(name)]
    assert not gone, f"take it out of DRAWN in src/zurau/simulation/constants.py, or of FIXED here: {gone}"
    assert not DRAWN.keys() & _REASONS.keys(), "drawn or fixed, not both"


def test_drawn_constants_are_read_where_they_are_used(source_files):
    names = {name.rpartition(".")[2] for name in DRAWN}
    early = [
        f"{file.name}:{node.lineno} {node.id}"
        for file in source_files
        if file.room not in OTHER_ROOMS
        for node in _read_on_import(file.tree)
        if node.id in names
    ]
    assert not early, f"read when the module is imported, so no simulation can draw it: {early}"


def _numbers(file) -> Iterator[str]:
    """Module-level numbers in capitals, as `room.module.NAME`."""
    if file.room in OTHER_ROOMS:
        return
    module = file.name.removeprefix("src/zurau/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    known: dict[str, bool] = {}
    for node in file.tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        else:
            pairs = [(target, value)]
        for name, number in pairs:
            if isinstance(name, ast.Name) and name.id.lstrip("_").isupper() and _is_number(number):
                known[name.id] = True
    yield from (f"{module}.{name}" for name in known if not _is_marker(name))


def _is_number(node: ast.AST | None) -> bool:
    """Whether an expression is arithmetic on numbers and names in capitals."""
    match node:
        case ast.Constant(value):
            return type(value) in (int, float)
        case ast.UnaryOp(_, operand):
            return _is_number(operand)
        case ast.BinOp(left, _, right):
            return _is_number(left) and _is_number(right)
        case ast.Name(name):
            return name.isupper()
        case ast.Attribute(_, name):
            return name.isupper()
        case ast.Call(ast.Name("sum" | "int" | "min" | "max" | "getattr" | "len" | "BrokerId" | "ProducerId")):
            return True
    return False


def _is_marker(name: str) -> bool:
    name = name.rpartition(".")[2]
    return name.startswith(MARKERS) or name.endswith(PROTOCOL)


def _read_on_import(tree: ast.Module) -> Iterator[ast.Name]:
    """Names that are read when the module is run: outside functions, or as what an argument is by default."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += [each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None]
        else:
            waiting += ast.iter_child_nodes(node)
