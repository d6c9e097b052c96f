"""A broker whose disk is full, fails, lies or is interrupted: what it says, what still works, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker_story import ROOMS

from zurau.broker.settings import BrokerSettings
from zurau.errors import DiskFault, SettingsError
from zurau.ids import id_text
from zurau.journal.reading import read_journal
from zurau.journal.records import LogId
from zurau.log.settings import LogSettings
from zurau.partition.opening import producers_snapshot
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.simulation.constants import DRAWN, constants
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from zurau.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"
MANY_SEEDS = range(25)
#: Tests that damage the metadata log mean its only file, all of its records, and before the journal knows of them.
NOT_HERE = (
    "broker.metadata_log.METADATA_SEGMENT_BYTES",
    "broker.metadata_snapshots.RECORDS_MIN",
    "journal.journal.WRITE_AFTER_MS",
)


def make_client(seed: int = 1) -> SimulatedClient:
    broker = SimulatedBroker(seed, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))
    client = SimulatedClient(broker)
    client.create_topic("t")
    client.create_topic("other")
    return client


@pytest.fixture(autouse=True, params=["usual", "least"])
def sizes(request) -> Iterator[None]:
    """Everything here holds with the usual constants, and with windows that hold next to nothing."""
    least = {name: value for name, value in DRAWN.items() if name.partition(".")[0] in ROOMS}
    for name in NOT_HERE:
        del least[name]
    with constants({} if request.param == "usual" else least):
        yield


@pytest.fixture
def client() -> SimulatedClient:
    return make_client()


@pytest.fixture
def disk(client):
    return client.broker.disk


def fill(disk) -> None:
    disk.capacity_bytes = disk.used_bytes


def make_room(disk) -> None:
    disk.capacity_bytes = 1 << 40


# A full disk


def test_a_full_disk_refuses_writes_and_says_why(client, disk):
    fill(disk)
    answer = client.produce("t", client.batch(b"a"))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "the disk is full" in answer.error_message


def test_a_full_disk_can_be_read_and_other_questions_are_answered(client, disk):
    client.produce("t", client.batch(b"a"))
    fill(disk)
    assert client.produce("t", client.batch(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.read("t") == [b"a"]
    hello = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert client.broker.tell(hello, 3).error_code == ErrorCode.NONE


def test_a_full_disk_refuses_commits_with_an_error_that_clients_repeat(client, disk):
    assert client.commit("t", 1) == ErrorCode.NONE
    fill(disk)
    assert ErrorCode(client.commit("t", 2)).retriable
    assert client.committed("t") == 1
    make_room(disk)
    assert client.commit("t", 2) == ErrorCode.NONE
    assert client.committed("t") == 2


def test_a_full_disk_refuses_new_topics_and_takes_them_when_there_is_room(client, disk):
    fill(disk)
    assert client.create_topic("new") == ErrorCode.KAFKA_STORAGE_ERROR
    make_room(disk)
    assert client.create_topic("new") == ErrorCode.NONE
    assert client.produce("new", client.batch(b"a")).error_code == ErrorCode.NONE


def test_with_room_again_everything_goes_on_without_gap_or_duplicate(client, disk):
    facts = {"producer_id": 7, "producer_epoch": 0}
    batches = [client.batch(b"%d" % n, base_sequence=n, **facts) for n in range(4)]
    client.produce("t", batches[0])
    fill(disk)
    assert client.produce("t", batches[1]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    make_room(disk)
    for batch in batches:
        assert client.produce("t", batch).error_code == ErrorCode.NONE
    assert client.read("t") == [b"0", b"1", b"2", b"3"]


def test_members_that_fall_silent_on_a_full_disk_are_given_up_all_the_same(client, disk):
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    joined = client.broker.tell(join, 3)
    share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
    request = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[share]
    )
    assert client.broker.tell(request, 3).error_code == ErrorCode.NONE
    fill(disk)
    client.broker.clock.advance(60_000)
    assert len(client.broker.broker.groups_of("g").machine.groups["g"].members) == 0


def test_a_stop_on_a_full_disk_loses_nothing(client, disk):
    client.produce("t", client.batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    fill(disk)
    client.broker.stop()
    make_room(disk)
    client.broker.start()
    assert client.read("t") == [b"a"]


# A disk that cannot flush


def test_after_a_failed_flush_nobody_is_told_that_it_is_safe(client, disk):
    disk.fail_flushes = True
    assert client.produce("t", client.batch(b"a")).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert client.read("t") == []


def test_after_a_failed_flush_a_partition_takes_nothing_more_and_others_do(client, disk):
    client.produce("t", client.batch(b"before"))
    disk.fail_flushes = True
    client.produce("t", client.batch(b"lost"))
    disk.fail_flushes = False
    assert client.produce("t", client.batch(b"after")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce("other", client.batch(b"a")).error_code == ErrorCode.NONE
    assert (client.read("t"), client.read("other")) == ([b"before"], [b"a"])


def test_a_retry_after_a_failed_flush_is_not_taken_for_a_success(client, disk):
    batch = client.batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    disk.fail_flushes = True
    client.produce("t", batch)
    disk.fail_flushes = False
    assert client.produce("t", batch).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_long_poll_at_the_end_of_a_broken_partition_waits_out_its_time(client, disk):
    waiting = client.fetch_later("t", max_wait_ms=1000, min_bytes=1)
    disk.fail_flushes = True
    client.produce("t", client.batch(b"a"))
    later = client.fetch_later("t", max_wait_ms=1000, min_bytes=1)
    assert not waiting.is_done
    assert not later.is_done
    client.broker.clock.advance(1000)
    assert later.result().responses[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("seed", MANY_SEEDS)
@pytest.mark.parametrize("ends", ["stop", "lose_power"])
def test_a_restart_brings_a_broken_partition_back_with_all_that_was_acknowledged(seed, ends):
    client = make_client(seed)
    client.produce("t", client.batch(b"a"))
    client.broker.disk.fail_flushes = True
    client.produce("t", client.batch(b"b"))
    client.broker.disk.fail_flushes = False
    getattr(client.broker, ends)()
    client.broker.disk.crash()
    client.broker.start()
    assert client.read("t") in ([b"a"], [b"a", b"b"])
    assert client.produce("t", client.batch(b"c")).error_code == ErrorCode.NONE


def test_a_broker_that_stops_with_a_broken_partition_does_not_call_that_clean(client, disk):
    disk.fail_flushes = True
    client.produce("t", client.batch(b"a"))
    disk.fail_flushes = False
    client.broker.stop()
    journal = read_journal(disk)
    name = LogId(client.broker.broker.image.topics["t"].topic_id, 0)
    assert name not in journal.known.closed
    assert journal.known.closed, "the others were left in good order"


# Bytes that changed


def test_a_damaged_batch_is_an_error_of_its_partition_and_of_no_other(client, disk):
    for topic in ("t", "other"):
        client.produce(topic, client.batch(b"a"))
        client.produce(topic, client.batch(b"b"))
    size = len(client.batch(b"a"))
    disk.flip_bit("t-0/00000000000000000000.log", size + 8, bit=6)  # the second batch's length
    damaged = client.fetch("t", 1)
    assert damaged.error_code == ErrorCode.CORRUPT_MESSAGE
    assert client.read("other") == [b"a", b"b"]
    assert client.commit("t", 1) == ErrorCode.NONE


def test_a_damaged_metadata_log_is_not_replayed_as_something_else(client, disk):
    position = disk.read_file(METADATA_LOG).index(b"other")
    client.broker.stop()
    disk.flip_bit(METADATA_LOG, position)
    with pytest.raises(
        DiskFault, match=r"offset 5 damaged .*does not start.*zurau log check.*restore.*zurau log repair"
    ):
        client.broker.start()


def test_data_that_a_cut_metadata_log_does_not_explain_is_put_aside_and_a_new_topic_begins_empty(client, disk):
    client.produce("other", client.batch(b"a"))
    position = disk.read_file(METADATA_LOG).index(b"other")
    client.broker.lose_power()
    disk.flip_bit(METADATA_LOG, position)
    disk.remove("journal")  # so nobody knows that this was flushed, and the log is cut there, as if it had been torn
    client.broker.start()
    assert client.create_topic("other") == ErrorCode.NONE
    assert client.read("other") == []
    (aside,) = [name for name in disk.list_directory("") if name.startswith("other-0.")]
    assert aside.endswith("-stray")
    assert disk.exists(f"{aside}/00000000000000000000.log")


@pytest.mark.parametrize("content", [b"", b"node.id=one", b"version=1\nnode.id=1\n", b"\xff\xfe\0"])
def test_a_damaged_identity_is_refused_with_advice(client, disk, content):
    client.broker.stop()
    disk.replace_file("meta.properties", content)
    with pytest.raises(SettingsError, match=r"meta.properties is damaged: .* restore that file"):
        client.broker.start()


@pytest.mark.parametrize("content", [b"", b"{", b'{"offset": 1}', b"\xff\xff", None])
def test_a_damaged_snapshot_of_producers_is_made_again_from_the_log(client, disk, content):
    facts = {"producer_id": 7, "producer_epoch": 0}
    client.produce("t", client.batch(b"a", base_sequence=0, **facts))
    client.broker.stop()
    if content is None:
        disk.flip_bit("t-0/producers.snapshot", disk.read_file("t-0/producers.snapshot").rindex(b"[") + 1)
    else:
        disk.replace_file("t-0/producers.snapshot", content)
    client.broker.start()
    client.produce("t", client.batch(b"a", base_sequence=0, **facts))
    assert client.produce("t", client.batch(b"b", base_sequence=1, **facts)).error_code == ErrorCode.NONE
    assert client.read("t") == [b"a", b"b"]


@pytest.mark.parametrize("content", [b"", b"version: 0\n", b"\0" * 40])
def test_a_damaged_topic_id_file_does_not_cost_the_data(client, disk, content):
    client.produce("t", client.batch(b"a"))
    client.broker.stop()
    disk.replace_file("t-0/partition.metadata", content)
    client.broker.start()
    assert client.read("t") == [b"a"]


def test_the_data_of_another_topic_is_put_aside_and_not_served(client, disk):
    client.produce("t", client.batch(b"a"))
    client.broker.stop()
    disk.replace_file("t-0/partition.metadata", f"version: 0\ntopic_id: {id_text(b'x' * 16)}\n".encode())
    client.broker.start()
    assert client.fetch("t", 0).error_code == ErrorCode.CORRUPT_MESSAGE  # it is lost, and nothing else comes
    assert disk.exists(f"t-0.{id_text(b'x' * 16)}-stray/00000000000000000000.log")


def test_a_partition_that_cannot_be_opened_keeps_its_directory_and_is_served_when_it_can(client, disk):
    client.produce("t", client.batch(b"a"))
    client.broker.stop()
    really_open = disk.open

    def refuse(path: str, *, create: bool = True):
        if path.startswith("t-0/"):
            raise DiskFault(f"cannot open {path}: too many open files")
        return really_open(path, create=create)

    disk.open = refuse
    client.broker.start()
    assert client.produce("t", client.batch(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce("other", client.batch(b"b")).error_code == ErrorCode.NONE
    client.broker.stop()
    disk.open = really_open
    client.broker.start()
    assert client.read("t") == [b"a"]


def test_damaged_groups_do_not_keep_topics_from_being_served(client, disk):
    client.produce("t", client.batch(b"a"))
    client.commit("t", 1)
    client.broker.stop()
    disk.flip_bit("__consumer_offsets-0/00000000000000000000.log", 80)
    client.broker.start()
    assert client.read("t") == [b"a"]
    assert client.commit("t", 1) == ErrorCode.COORDINATOR_NOT_AVAILABLE


# Deleting topics


def directories_of(disk, topic: str) -> list[str]:
    return [name for name in disk.list_directory("") if name.startswith(f"{topic}-0")]


def test_a_deleted_topic_leaves_nothing_behind(client, disk):
    client.produce("t", client.batch(b"a"))
    assert client.commit("t", 1) == ErrorCode.NONE
    client.delete_topic("t")
    client.broker.clock.advance(10)
    assert directories_of(disk, "t") == []
    assert client.committed("t") == -1


def test_a_topic_that_is_created_anew_begins_empty(client):
    client.produce("t", client.batch(b"old"))
    client.commit("t", 1)
    client.delete_topic("t")
    client.create_topic("t")
    client.produce("t", client.batch(b"new"))
    assert client.read("t") == [b"new"]
    assert client.committed("t") == -1


def test_a_topic_with_the_longest_name_can_be_deleted_and_created_anew(client):
    name = "x" * 249
    client.create_topic(name)
    client.delete_topic(name)
    assert client.create_topic(name) == ErrorCode.NONE
    assert client.produce(name, client.batch(b"a")).error_code == ErrorCode.NONE


@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_a_deletion_that_was_acknowledged_stays_when_power_fails(seed):
    client = make_client(seed)
    client.produce("t", client.batch(b"a"))
    assert client.delete_topic("t") == ErrorCode.NONE
    client.broker.lose_power()
    client.broker.start()
    client.broker.clock.advance(10)
    assert client.fetch("t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert directories_of(client.broker.disk, "t") == []


@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_a_deletion_that_power_failure_interrupts_is_done_wholly_or_not_at_all(seed):
    client = make_client(seed)
    client.produce("t", client.batch(b"a"))
    client.broker.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    client.broker.lose_power()
    client.broker.start()
    client.broker.clock.advance(10)
    if "t" in client.broker.broker.image.topics:
        assert client.read("t") == [b"a"]
    else:
        assert directories_of(client.broker.disk, "t") == []


@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_the_data_of_a_deleted_topic_does_not_come_back_in_a_new_one_of_its_name(seed):
    client = make_client(seed)
    client.produce("t", client.batch(b"old"))
    client.delete_topic("t")
    client.create_topic("t")
    client.broker.lose_power()
    client.broker.start()
    client.produce("t", client.batch(b"new"))
    assert client.read("t") == [b"new"]


@pytest.mark.parametrize("seed", MANY_SEEDS)
def test_what_producers_were_remembered_by_is_not_older_than_the_log(seed):
    """A snapshot that told of batches which a crash took must not be believed later on."""
    client = make_client(seed)
    facts = {"producer_id": 7, "producer_epoch": 0}
    client.produce("t", client.batch(b"0", base_sequence=0, **facts))
    lost = client.batch(b"1", base_sequence=1, **facts)
    partition = client.broker.broker.partition("t", 0)
    client.produce_later("t", lost)
    producers_snapshot(client.broker.disk, partition.log, partition.producers)()
    client.broker.lose_power()
    client.broker.start()
    was_lost = client.read("t") == [b"0"]
    client.produce("t", client.batch(b"x", b"y", b"z"))
    client.broker.lose_power()
    client.broker.start()
    assert client.produce("t", lost).error_code == ErrorCode.NONE
    assert client.read("t").count(b"1") == 1
    assert (client.read("t")[-1] == b"1") == was_lost
