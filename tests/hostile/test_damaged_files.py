"""Every file of a data directory, every kind of damage, after a kill and after a clean stop.

Whatever is damaged, every record that was acknowledged is either served as it was, or its offset is answered with an
error (or with bytes whose checksum shows the damage, which clients check). No offset is passed over or given out again,
and whatever was not damaged is served. If the broker cannot know what it would serve, it refuses to start and says what
to do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attack import Attacker, fetch_request, some_batch
from broker_process import ZurauBroker

from zurau.records.batch import check_crc, iter_batches
from zurau.records.record import iter_records
from zurau.wire.kafka.error_codes import ErrorCode

FETCH_VERSION = 12
RECORDS = 45
TOPIC = "hit"
#: Which file of a partition is damaged; each in a partition of its own, so that one broker tells of all of them.
FILES = [
    "first.log", "middle.log", "last.log", "middle.index", "middle.timeindex", "leader-epoch-checkpoint",
    "log-checkpoint", "producers.snapshot", "partition.metadata", "nothing",
]  # fmt: skip
START_TIMEOUT_S = 60


def value(partition: int, offset: int) -> bytes:
    return b"%d/%d/" % (partition, offset) + bytes(range(250))


@pytest.fixture(scope="module", params=["killed", "stopped"])
def template(request, tmp_path_factory) -> Path:
    """A data directory whose broker was killed, or stopped in good order."""
    broker = ZurauBroker(tmp_path_factory.mktemp("template"), internal_segment_bytes=3500)
    broker.start()
    client = Attacker(broker.port)
    client.create_topic(TOPIC, len(FILES), index_interval_bytes="600")
    produce(client, range(RECORDS // 2))
    client.leave()
    broker.stop()  # from now on it is known where each log starts
    broker.start()
    client = Attacker(broker.port)
    produce(client, range(RECORDS // 2, RECORDS))
    client.leave()
    getattr(broker, {"killed": "kill", "stopped": "stop"}[request.param])()
    return broker.directory


def produce(client: Attacker, offsets: range) -> None:
    for partition in range(len(FILES)):
        for offset in offsets:
            produced = client.produce(TOPIC, some_batch(value(partition, offset)), partition)
            assert (produced.error_code, produced.base_offset) == (ErrorCode.NONE, offset)


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)


def zero(file: Path) -> None:
    content = bytearray(file.read_bytes())
    third = len(content) // 3
    content[third : 2 * third] = bytes(third)
    file.write_bytes(content)


KINDS: dict[str, Callable[[Path], None]] = {
    "a flipped bit": flip,
    "half of it": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "emptied": lambda file: file.write_bytes(b""),
    "zeroes in the middle": zero,
    "removed": lambda file: file.unlink(),
    "garbage at its end": lambda file: file.write_bytes(file.read_bytes() + b"\xa5" * 777),
}


def find(directory: Path, name: str) -> Path | None:
    place, _, suffix = name.partition(".")
    if place in ("first", "middle", "last"):
        logs = sorted(directory.glob("*.log"))
        chosen = {"first": logs[0], "middle": logs[len(logs) // 2], "last": logs[-1]}[place]
        return chosen.with_suffix(f".{suffix}")
    return directory / name if name != "nothing" else None


@pytest.mark.parametrize("kind", KINDS)
def test_damage_to_a_partition_is_told_and_costs_nobody_else(template, kind, tmp_path):
    shutil.copytree(template, tmp_path / "broker")
    for partition, name in enumerate(FILES):
        file = find(tmp_path / "broker" / "data" / f"{TOPIC}-{partition}", name)
        if file is not None and file.exists():
            KINDS[kind](file)
    with ZurauBroker(tmp_path / "broker") as broker:
        client = Attacker(broker.port)
        whole = {name: survivors(client, partition) for partition, name in enumerate(FILES)}
        for name, offsets in whole.items():
            if not name.endswith(".log"):
                assert offsets == list(range(RECORDS)), f"{name} is not needed to serve the records"
        for partition in range(len(FILES)):
            produced = client.produce(TOPIC, some_batch(b"new"), partition)
            assert (produced.error_code, produced.base_offset >= RECORDS) == (ErrorCode.NONE, True), produced
        client.leave()
        told = broker.log.read_text()
    for name in ("first.log", "middle.log", "last.log"):
        lost = RECORDS - len(whole[name])
        assert lost < RECORDS, f"{name}: everything is gone"
        if lost:
            assert f"{TOPIC}-{FILES.index(name)}: offset" in told or kind == "a flipped bit", f"{name}: nothing is said"


def survivors(client: Attacker, partition: int) -> list[int]:
    """The offsets that are served as they were. Every other one must be answered with an error, or shown damaged."""
    found = []
    for offset in range(RECORDS):
        answer = client.ask(fetch_request(TOPIC, offset, partition, max_bytes=1), FETCH_VERSION)
        got = answer.responses[0].partitions[0]
        if got.error_code == ErrorCode.CORRUPT_MESSAGE:
            continue
        assert got.error_code == ErrorCode.NONE, f"{partition}/{offset}: {ErrorCode(got.error_code).name}"
        header, batch = next(iter_batches(got.records))
        if not check_crc(batch, header):
            continue
        (record,) = iter_records(batch)
        assert (record.offset, record.value) == (offset, value(partition, offset)), f"{offset} is passed over"
        found.append(offset)
    return found


BROKERS_OWN = [
    "__cluster_metadata-0/first.log",
    "__cluster_metadata-0/leader-epoch-checkpoint",
    "journal",
    "meta.properties",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BROKERS_OWN)
def test_a_broker_whose_own_files_are_damaged_serves_everything_or_says_what_to_do(template, name, kind, tmp_path):
    shutil.copytree(template, tmp_path / "broker")
    data = tmp_path / "broker" / "data"
    file = find(data / name.partition("/")[0], name.partition("/")[2]) if "/" in name else data / name
    KINDS[kind](file)
    broker = ZurauBroker(tmp_path / "broker")
    try:
        broker.start()
    except AssertionError:
        broker.stop()
        said = broker.log.read_text()
        assert "Traceback" not in said, said
        assert re.search(r"restore|start with|choose|remove|see ", said), said
        assert sorted(path.name for path in data.iterdir() if "stray" in path.name) == []
        return
    client = Attacker(broker.port)
    assert survivors(client, len(FILES) - 1) == list(range(RECORDS))
    client.leave()
    broker.stop()


def test_a_batch_of_many_megabytes_survives_a_kill(start_broker, connect):
    broker = start_broker(max_message_bytes=20_000_000)
    client = connect(broker)
    client.create_topic("large")
    sizes = [4 << 20, 5 << 20, 8 << 20]
    for number, size in enumerate(sizes):
        produced = client.produce("large", some_batch(bytes([number]) * size))
        assert (produced.error_code, produced.base_offset) == (ErrorCode.NONE, number)
    broker.kill()
    broker.start()
    client = connect(broker)
    for number, size in enumerate(sizes):
        header, batch = next(iter_batches(client.fetch("large", number).records))
        assert check_crc(batch, header)
        assert header.length > size
    assert client.produce("large", some_batch()).base_offset == len(sizes)


def test_files_that_are_not_the_brokers_do_not_stop_it(start_broker, connect):
    broker = start_broker()
    client = connect(broker)
    client.create_topic("t")
    assert client.produce("t", some_batch()).error_code == ErrorCode.NONE
    broker.kill()
    data = broker.directory / "data"
    (data / "t-0" / "notes.log").write_text("mine")
    (data / "t-0" / f"{9:020}.log").mkdir()
    (data / "t-0" / "lost+found").mkdir(mode=0)
    (data / "lost+found").mkdir(mode=0)
    broker.start()
    client = connect(broker)
    assert client.fetch("t", 0).records
    assert client.produce("t", some_batch()).base_offset == 1


def test_a_check_of_a_running_broker_finds_nothing(template, tmp_path):
    shutil.copytree(template, tmp_path / "broker")
    with ZurauBroker(tmp_path / "broker") as broker:
        command = [sys.executable, "-m", "zurau", "log", "check", str(broker.directory / "data")]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
        assert (outcome.returncode, outcome.stdout) == (0, ""), outcome.stderr


def test_a_payload_that_the_disk_changed_under_a_running_broker_is_not_handed_out(start_broker, connect):
    broker = start_broker()
    attacker = connect(broker)
    attacker.create_topic("rotten")
    for number in range(20):
        assert attacker.produce("rotten", some_batch(b"%02d" % number * 5000)).base_offset == number
    file = broker.directory / "data" / "rotten-0" / "00000000000000000000.log"
    whole = file.read_bytes()
    size = len(whole) // 20
    descriptor = os.open(file, os.O_RDWR)
    os.pwrite(descriptor, b"?", 8 * size + 5000)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # so the next read is from the disk
    os.close(descriptor)
    before = attacker.fetch("rotten", 0)
    assert (before.error_code, bytes(before.records)) == (ErrorCode.NONE, whole[: 8 * size])
    assert attacker.fetch("rotten", 8).error_code == ErrorCode.CORRUPT_MESSAGE
    assert bytes(attacker.fetch("rotten", 9).records) == whole[9 * size :]
    assert "rotten-0: offset 8 damaged" in broker.log.read_text()
