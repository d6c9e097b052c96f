"""What a broker makes of the directory that it finds: it serves what is whole and names what is not."""

from __future__ import annotations

from contextlib import suppress

import pytest

from zurau.broker.health import Kind
from zurau.broker.settings import BrokerSettings
from zurau.errors import DiskFault, Refused, SettingsError
from zurau.journal.reading import FILE as JOURNAL
from zurau.journal.reading import read_journal
from zurau.journal.records import LogId
from zurau.log.check import check_log
from zurau.log.last_known import LastKnown
from zurau.log.repair import repair_segment
from zurau.log.settings import LogSettings
from zurau.records.batch import iter_batches, stamp
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.simulation.disk import SimulatedDisk
from zurau.wire.kafka.error_codes import ErrorCode

METADATA = "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"
ENDS = ["stop", "kill"]


@pytest.fixture
def client() -> SimulatedClient:
    broker = SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))
    client = SimulatedClient(broker)
    client.create_topic("t")
    for value in (b"a", b"b", b"c"):
        client.produce("t", client.batch(value))
    client.commit("t", 1)
    broker.clock.advance(1000)
    return client


@pytest.fixture
def broker(client):
    return client.broker


@pytest.fixture
def disk(broker):
    return broker.disk


def end(broker: SimulatedBroker, how: str) -> None:
    getattr(broker, how)()


def kinds(broker: SimulatedBroker) -> list[str]:
    return [problem.kind for problem in broker.broker.health.problems()]


# Metadata


@pytest.mark.parametrize("how", ENDS)
def test_a_flipped_bit_in_the_metadata_refuses_the_start_and_renames_nothing(broker, disk, how):
    end(broker, how)
    disk.flip_bit(f"{METADATA}/{SEGMENT}", 200)
    before = disk.list_directory("")
    with pytest.raises(DiskFault, match=r"metadata log.*offset.*00000000000000000000\.log.*zurau log check"):
        broker.start()
    assert [name for name in disk.list_directory("") if name not in before] == []


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("kept_bytes", [0, 100, 250])
def test_metadata_that_is_shorter_than_it_was_refuses_the_start(broker, disk, how, kept_bytes):
    end(broker, how)
    disk.open(f"{METADATA}/{SEGMENT}").truncate(kept_bytes)
    with pytest.raises(DiskFault, match="zurau log repair"):
        broker.start()


@pytest.mark.parametrize("how", ENDS)
def test_a_missing_metadata_log_refuses_the_start(broker, disk, how):
    end(broker, how)
    disk.remove_tree(METADATA)
    with pytest.raises(DiskFault, match=r"missing beside meta\.properties.*[Rr]estore"):
        broker.start()
    assert not disk.exists(METADATA)


def test_a_missing_metadata_log_of_a_cluster_without_topics_refuses_the_start():
    broker = SimulatedBroker(1, LogSettings())
    broker.clock.advance(1000)
    broker.stop()
    for name in broker.disk.list_directory(""):
        if name.endswith(tuple("0123456789")):
            broker.disk.remove_tree(name)
    with pytest.raises(DiskFault, match="missing"):
        broker.start()


@pytest.mark.parametrize("has_journal", [True, False])
def test_missing_identity_beside_data_is_not_made_up(broker, disk, has_journal):
    broker.stop()
    disk.remove("meta.properties")
    if not has_journal:
        disk.remove(JOURNAL)
    with pytest.raises(SettingsError, match=r"meta\.properties is missing.*[Rr]estore"):
        broker.start()
    assert not disk.exists("meta.properties")


@pytest.mark.parametrize("operations", range(60))
def test_a_first_start_that_power_failure_cut_short_is_done_again(operations):
    disk = SimulatedDisk(operations)
    disk.fail_power_after(operations)
    with suppress(DiskFault, Refused):
        SimulatedBroker(operations, LogSettings(), disk=disk)
    disk.crash()
    broker = SimulatedBroker(1000 + operations, LogSettings(), disk=disk)
    assert SimulatedClient(broker).create_topic("t") == ErrorCode.NONE


def repair(disk, directory: str) -> None:
    damage = list(check_log(disk, directory, LastKnown()))
    assert damage
    for path in {one.file for one in damage}:
        repair_segment(disk, [one for one in damage if one.file == path])


def test_repaired_metadata_is_served_with_what_is_left_and_no_data_is_put_aside(broker, caplog, client, disk):
    client.create_topic("other")
    broker.stop()
    disk.flip_bit(f"{METADATA}/{SEGMENT}", disk.read_file(f"{METADATA}/{SEGMENT}").index(b"\x02t") + 1)
    with pytest.raises(DiskFault, match="zurau log repair"):
        broker.start()
    repair(disk, METADATA)
    broker.start()
    assert client.fetch("t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce("other", client.batch(b"a")).error_code == ErrorCode.NONE
    assert disk.exists(f"t-0/{SEGMENT}"), "its topic may only have been forgotten"
    assert "no topic explains the data in t-0; its record may have been lost" in caplog.text


def test_records_that_build_on_a_lost_one_are_passed_over_after_a_repair(broker, caplog, client, disk):
    client.delete_topic("t")
    client.create_topic("other")
    broker.stop()
    disk.flip_bit(f"{METADATA}/{SEGMENT}", disk.read_file(f"{METADATA}/{SEGMENT}").index(b"\x02t") + 1)
    repair(disk, METADATA)
    broker.start()
    assert "means nothing without a lost one" in caplog.text
    assert client.produce("other", client.batch(b"a")).error_code == ErrorCode.NONE


def test_repaired_groups_are_served_with_what_is_left(broker, client, disk):
    client.commit("t", 2)
    broker.stop()
    disk.flip_bit(f"__consumer_offsets-0/{SEGMENT}", disk.file_size(f"__consumer_offsets-0/{SEGMENT}") - 1)
    broker.start()
    assert client.commit("t", 3) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.stop()
    repair(disk, "__consumer_offsets-0")
    broker.start()
    assert client.committed("t") == 1, "the last commit is given up"
    assert client.commit("t", 3) == ErrorCode.NONE
    assert kinds(broker) == []


# Partitions


def damage_of(broker: SimulatedBroker) -> list[tuple[int, int]]:
    return [(one.first_offset, one.next_offset) for one in broker.broker.partition("t", 0).log.damage]


@pytest.mark.parametrize("how", ENDS)
def test_offsets_of_a_lost_directory_are_never_given_out_again(broker, client, disk, how):
    end(broker, how)
    disk.remove_tree("t-0")
    broker.start()
    assert damage_of(broker) == [(0, 3)]
    assert client.produce("t", client.batch(b"d")).base_offset == 3
    assert client.fetch("t", 0).error_code == ErrorCode.CORRUPT_MESSAGE
    assert kinds(broker) == [Kind.DAMAGED]


@pytest.mark.parametrize("how", ENDS)
def test_offsets_of_an_emptied_log_are_never_given_out_again(broker, client, disk, how):
    end(broker, how)
    for name in disk.list_directory("t-0"):
        disk.remove(f"t-0/{name}")
    broker.start()
    assert client.produce("t", client.batch(b"d")).base_offset == 3
    assert damage_of(broker) == [(0, 3)]


@pytest.mark.parametrize("how", ENDS)
def test_what_was_flushed_and_is_missing_at_the_end_is_named(broker, client, disk, how):
    end(broker, how)
    path = f"t-0/{SEGMENT}"
    first, *_ = iter_batches(disk.read_file(path))
    disk.open(path).truncate(first[0].length)
    broker.start()
    assert damage_of(broker) == [(1, 3)]
    assert client.produce("t", client.batch(b"d")).base_offset == 3


def test_a_torn_write_that_was_never_flushed_is_no_damage(broker, client, disk):
    broker.kill()
    torn = bytearray(client.batch(b"torn"))
    stamp(memoryview(torn), 3, 0)
    disk.open(f"t-0/{SEGMENT}").append([torn[:-5]])
    broker.start()
    assert damage_of(broker) == []
    assert client.read("t") == [b"a", b"b", b"c"]


def test_damage_is_still_named_after_another_start(broker, disk):
    broker.stop()
    disk.remove_tree("t-0")
    broker.start()
    broker.stop()
    broker.start()
    assert damage_of(broker) == [(0, 3)]


# Groups


@pytest.mark.parametrize("how", ENDS)
def test_groups_whose_offsets_are_damaged_are_not_served_and_nothing_is_forgotten(broker, client, disk, how):
    end(broker, how)
    disk.flip_bit(f"__consumer_offsets-0/{SEGMENT}", 80)
    broker.start()
    assert client.commit("t", 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert Kind.GROUPS_NOT_SERVED in kinds(broker)
    assert client.read("t") == [b"a", b"b", b"c"]


def test_groups_whose_log_is_gone_are_not_served_either(broker, client, disk):
    broker.stop()
    disk.remove_tree("__consumer_offsets-0")
    broker.start()
    assert client.commit("t", 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE


# What else lies in the directory


def test_a_directory_that_cannot_be_read_and_stray_files_stop_nobody(broker, client, disk):
    broker.stop()
    for name in ("lost+found", "backup"):
        disk.make_directory(name)
        disk.open(f"{name}/notes.log")
    disk.open("notes.txt")
    really_list = disk.list_directory

    def refuse(path: str) -> list[str]:
        if path == "lost+found":
            raise DiskFault("cannot list lost+found: permission denied")
        return really_list(path)

    disk.list_directory = refuse
    broker.start()
    assert client.read("t") == [b"a", b"b", b"c"]
    assert {"lost+found", "backup", "notes.txt"} < set(really_list("")), "left as they were"


# The journal


def as_left_by_an_older_release(disk, *, clean: bool) -> None:
    disk.remove(JOURNAL)
    disk.remove("clean-stop")
    if clean:
        disk.replace_file("clean-stop", b"")


def damage_the_end(disk) -> None:
    disk.flip_bit(f"t-0/{SEGMENT}", disk.file_size(f"t-0/{SEGMENT}") - 1)


def test_a_clean_directory_of_an_older_release_is_believed(broker, client, disk):
    broker.stop()
    as_left_by_an_older_release(disk, clean=True)
    damage_the_end(disk)
    broker.start()
    assert damage_of(broker) == [(2, 3)], "it was closed in good order, so this is no torn end"
    assert not disk.exists("clean-stop")


def test_a_directory_of_an_older_release_that_crashed_is_recovered(broker, client, disk):
    broker.stop()
    as_left_by_an_older_release(disk, clean=False)
    damage_the_end(disk)
    broker.start()
    assert damage_of(broker) == []
    assert client.read("t") == [b"a", b"b"]


@pytest.mark.parametrize("stopped_well", [True, False])
def test_what_an_older_release_wrote_in_between_is_not_taken_for_damage(broker, client, disk, stopped_well):
    broker.stop()
    journal = disk.read_file(JOURNAL)
    broker.start()
    client.produce("t", client.batch(b"d"))
    end(broker, "stop" if stopped_well else "kill")
    as_left_by_an_older_release(disk, clean=stopped_well)
    disk.replace_file(JOURNAL, journal)  # older releases leave it alone
    broker.start()
    assert client.read("t") == [b"a", b"b", b"c", b"d"]
    assert kinds(broker) == []


def test_a_damaged_journal_is_told_and_stops_nothing(broker, client, disk):
    broker.stop()
    disk.flip_bit(JOURNAL, 30)
    broker.start()
    assert kinds(broker) == [Kind.JOURNAL_DAMAGED]
    assert client.read("t") == [b"a", b"b", b"c"]
    broker.stop()
    broker.start()
    assert kinds(broker) == []


def test_deleted_topics_leave_the_journal(broker, client, disk):
    name = LogId(broker.broker.image.topics["t"].topic_id, 0)
    assert name in read_journal(disk).known.replicas
    client.delete_topic("t")
    broker.clock.advance(1000)
    broker.stop()
    assert name not in read_journal(disk).known.replicas


def test_a_topic_that_was_deleted_before_a_crash_leaves_the_journal_too(broker, client, disk):
    name = LogId(broker.broker.image.topics["t"].topic_id, 0)
    client.delete_topic("t")
    broker.lose_power()
    broker.start()
    assert name not in read_journal(disk).known.replicas or name not in broker.broker.journal.logs
