"""Internal constants as inputs: a window, a buffer or a limit may be any size, and what is right must stay right.

A constant is a plain number in its module. The table below names those that may be drawn, each with the least value at
which everything must still work. A seed decides the values: mostly the usual one, and often enough the least, a few
more than that, or one off a power of two, so that "larger than the window" happens in every run and not in a hundred
megabytes.

    with constants(draw(seed)):
        ...

Each value depends on the seed and its own name only, so a line more in the table leaves the other values as they are.
A drawn constant must be read where it is used: one in a default argument or in another constant was read long ago.
Every module of these rooms is imported before anything is drawn, so that none is made while a value is in place and
keeps something of it for the next seed.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import zurau

#: What may be drawn: room and module, name -> the least value that must work. The usual value is the most.
DRAWN: dict[str, int] = {
    "records.compression._SNAPPY_BLOCK_BYTES": 64,
    "records.compression._USUAL_RATIO": 1,
    "records.compression._ROOM_BYTES_MIN": 1,
    "records.compression._GZIP_PIECE_BYTES": 16,
    "wire.kafka.encoders.STEP_PARTS": 1,
    "wire.kafka.encoders.LARGE_BYTES": 0,
    "wire.frame_reader.FIRST_BYTES": 1,
    "wire.frame_reader.GROWTH": 2,
    "wire.frame_reader.GROWTH_BYTES_MAX": 1,
    "wire.peer.frame_reader.KNOWN_GROWTH_BYTES": 1,
    "api.http.session.EVENTS_AT_ONCE": 1,
    "broker.peer_calls.UNDER_WAY_BYTES": 0,
    "log.cold_reads.RECENT_BYTES": 0,
    "log.cold_reads.REMEMBERED_ENDS": 0,
    "log.cold_reads.SURELY_COLD_BYTES": 0,
    "log.scan.SCAN_BYTES": 7,  # 1 works too, and takes ages
    "log.scan.BLOCK_BYTES": 1,
    "log.batch_file.WALK_BYTES": 1,
    "log.segment._REMEMBERED_READS": 1,
    "log.flushing.INDEX_MEMORY_BYTES": 0,
    "log.flushing.NOTED_MARKS_MAX": 0,
    "log.flushing.UNFLUSHED_BYTES_MAX": 0,
    "log.compaction.KEYS_MAX": 1,
    "log.joining.JOINED_BYTES": 0,
    "log.compaction._DIGEST_BYTES": 8,
    "log.segment.AT_ONCE_BYTES": 0,
    "partition.admission.QUICK_BYTES": 0,
    "partition.admission.QUICK_UNPACKED_BYTES": 0,
    "partition.admission.QUICK_REPACKED_BYTES": 0,
    "log.shrinking.EXPIRED_AT_ONCE": 1,
    "log.compacting.DIRTY_SEGMENTS_MAX": 1,
    "partition.flushing.FLUSHED_AT_ONCE": 1,
    "partition.group_flush.TOGETHER_MIN": 1,
    "partition.unpacking.SMALL_BYTES": 1,
    "partition.unpacking.MEDIUM_BYTES": 1,
    "partition.replay.READ_BYTES": 1,
    "partition.replay.TURN_BYTES": 1,
    "journal.journal.WRITE_AFTER_MS": 0,
    "journal.journal.RETRY_AFTER_MS": 1,
    "journal.journal.REWRITE_BYTES": 0,
    "journal.journal.REWRITE_GROWTH": 1,
    "broker.peers.frame_memory.ARRIVING_BYTES_MAX": 1,
    "broker.internal_topics.GROWN_AT_ONCE": 1,
    "broker.replication.RESERVED_BYTES": 0,
    "broker.room.ROOM_BYTES": 1,
    "partition.flushing.UNAWAITED_FLUSH_MS": 0,
    "partition.flushing.RETRY_FLUSH_MS": 1,
    "partition.opening.WALKED_BYTES": 0,
    "partition.producer_memory.FORGOTTEN_PER_MILLE": 0,
    "partition.snapshots.RECORDS_A_BATCH": 1,
    "partition.snapshots.KEPT": 1,
    "machines.groups.removal.RECORDS_MAX": 1,
    "machines.groups.group.SEARCHED_BYTES_MAX": 0,
    "machines.groups.members.DECODED_BYTES_MAX": 0,
    "api.response_memory.SMALL_BYTES": 1,
    "api.response_memory.WAIT_MS_MIN": 1,
    "api.kafka.call.LONG": 1,
    "api.kafka.coordinators.PIECE": 1,
    "api.kafka.dispatch.LARGE_BYTES": 1,
    "api.kafka.describe_groups.LARGE_BYTES": 0,
    "api.kafka.dispatch.LARGE_ANSWER_BYTES": 0,
    "api.kafka.gathering.LOOP_READ_BYTES": 1,
    "api.kafka.gathering.COUNTED_BYTES": 0,
    "api.kafka.gathering.GATHERING_PART": 1,
    "broker.auto_create.AUTO_CREATED_MAX": 1,
    "broker.metadata_log.METADATA_SEGMENT_BYTES": 14,
    "broker.openings.OPENED_AT_ONCE": 1,
    "broker.known_leaders.FRAME_LEADERS_MAX": 1,
    "broker.metadata_snapshots.RECORDS_MIN": 1,
    "broker.snapshot_transfer.PIECE_BYTES": 50,  # 1 works too, and takes ages
    "broker.producer_ids.BLOCK_IDS": 1,
    "broker.peers.connection.LARGE_BYTES": 1,
    "broker.peers.connection.PROGRESS_MS": 1,
    "broker.peers.connections.SCRATCH_BYTES": 5,
    "broker.peers.connections.BACK_OFF_MS": 1,
    "broker.peers.connections.BACK_OFF_MAX_MS": 1,
    "broker.peers.connections.WARNINGS_MAX": 1,
    "broker.placement.REOPEN_AFTER_MS": 1,
    "broker.placement.REOPEN_AFTER_MAX_MS": 1,
    "broker.placement.REOPEN_AT_A_TIME": 1,
    "broker.troubles.REST_MS": 1,
    "broker.troubles.REST_MAX_MS": 1,
    "broker.voter_changes.ROOM_BYTES": 4096,
    "broker.upkeep.AT_A_TIME": 1,
    "broker.upkeep.SNAPSHOT_EVERY_BYTES": 1,
    "node.acceptor.BACKLOG": 1,
    "node.acceptor.ACCEPTS_PER_STEP": 1,
    "node.connection.JOIN_BYTES": 0,
    "api.kafka.produce.MADE_ON_LOOP": 0,
    "api.kafka.produce.MADE_AT_A_TIME": 1,
    "api.kafka.session.PRODUCE_BYTES_IN_FLIGHT": 1,
    "node.connection.REQUESTS_PER_TURN": 1,
    "api.kafka.session.FRAMES_MAX": 1,
    "api.kafka.session.LARGE_FRAME_BYTES": 1,
    "node.closed_peers.LOOK_MS": 1,
    "node.descriptors.OPEN_FILES_MAX": 1,
    "node.slow_readers.LOOK_MS": 1,
    "api.kafka.session.PRODUCES_IN_FLIGHT": 1,
    "node.disk.REWRITE_BYTES": 1,
    "node.disk._CHUNKS_MAX": 1,
    "node.flush_threads.FLUSH_THREADS": 1,
    "node.flush_threads.ONE_CLIENT_MAX": 1,
    "node.disk.PROBE_BYTES": 1,
    "node.tree.FLUSHED_AT_ONCE": 1,
    "node.connections.SCRATCH_BYTES": 5,
    "node.connections.SWEEP_MS_MIN": 1,
    "node.connections.GOODBYE_MS": 1,
    "node.run.BACKGROUND_THREADS": 1,
    "node.run.WORKER_THREADS": 1,
    "client.producer.accumulator.RECORD_OVERHEAD_BYTES": 1,
    "client.producer.sender.REQUEST_BYTES": 1,
    "cli.produce.CHUNK_BYTES": 1,
}
#: How many constants of a run are changed at all, as a share: a run with one odd size says more about it than one with
#: twenty.
_SHARES = (0.0, 0.1, 0.3, 0.9)
_TINY = 64


def draw(seed: int, *rooms: str) -> dict[str, int]:
    """The constants of these rooms, or of all, that this seed changes, and what it makes of them."""
    share = random.Random(f"{seed}").choice(_SHARES)
    drawn = {}
    for name, least in DRAWN.items():
        chance = random.Random(f"{seed} {name}")
        if (not rooms or name.partition(".")[0] in rooms) and chance.random() < share:
            drawn[name] = _value(chance, least, usual(name))
    return drawn


def usual(name: str) -> int:
    """The value that the module itself gives it."""
    return _usual_values()[name]


@cache
def _usual_values() -> dict[str, int]:
    """Asked for before any of them is changed, and with all modules made that could keep one."""
    for room in sorted({name.partition(".")[0] for name in DRAWN}):
        package = importlib.import_module(f"zurau.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    split = [(name, *name.rpartition(".")) for name in DRAWN]
    return {name: int(getattr(sys.modules[f"zurau.{module}"], constant)) for name, module, _, constant in split}


def _value(chance: random.Random, least: int, most: int) -> int:
    off_a_power = (1 << chance.randint(least.bit_length(), most.bit_length())) + chance.choice([-1, 0, 1])
    wanted = chance.choice([least, least + chance.randrange(_TINY), off_a_power])
    return min(max(wanted, least), most)


@contextmanager
def constants(values: Mapping[str, int]) -> Iterator[None]:
    """Put values in place, in every module that knows the constant, and put the usual ones back afterwards."""
    _usual_values()
    places = [(place, value) for name, value in values.items() for place in _places(name)]
    before = [(module, known_as, getattr(module, known_as)) for (module, known_as), _ in places]
    for (module, known_as), value in places:
        setattr(module, known_as, value)
    try:
        yield
    finally:
        for module, known_as, old in before:
            setattr(module, known_as, old)


def needed(values: Mapping[str, int], fails: Callable[[Mapping[str, int]], bool]) -> dict[str, int]:
    """Those of the values without which it does not fail any more."""
    kept = dict(values)
    for name in values:
        fewer = {other: value for other, value in kept.items() if other != name}
        if fails(fewer):
            kept = fewer
    return kept


def as_text(values: Mapping[str, int]) -> str:
    """Values as one word, for an environment variable: `log.scan.SCAN_BYTES=61,...`."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def from_text(text: str) -> dict[str, int]:
    """What `as_text` wrote. Raises `ValueError` for a constant that is not in the table."""
    values = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        if name not in DRAWN:
            raise ValueError(f"{name} is not drawn; the table is in simulation/constants.py")
        values[name] = int(value)
    return values


# Where a constant is known


def _places(name: str) -> list[tuple[object, str]]:
    module, _, constant = name.rpartition(".")
    return [(importlib.import_module(where), known_as) for where, known_as in _knowers()[f"zurau.{module}", constant]]


@cache
def _knowers() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """For each drawn constant the modules that know it, with the name it has there: its own, and who imports it."""
    split = [name.rpartition(".") for name in DRAWN]
    knowers = {(f"zurau.{module}", name): [(f"zurau.{module}", name)] for module, _, name in split}
    names = {constant for _, constant in knowers}
    package = Path(zurau.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(constant in text for constant in names):
            continue
        where = ".".join(("zurau", *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (node.module or "", alias.name) in knowers:
                        knowers[node.module or "", alias.name].append((where, alias.asname or alias.name))
    return knowers
