from __future__ import annotations

import pytest

from zurau.broker.identity import Identity, save_identity
from zurau.broker.lost_majority import KEPT_FILE, carry_out, plan_recovery
from zurau.broker.metadata_log import METADATA_LOG
from zurau.errors import CorruptData, SettingsError
from zurau.ids import BrokerId, ReplicaId, TopicId, id_text
from zurau.journal.frames import encode_frame
from zurau.journal.reading import FILE, read_journal
from zurau.journal.records import Known, LogId, encode_records
from zurau.partition.opening import write_topic_id
from zurau.replica.core.membership import VoterChange
from zurau.simulation.disk import SimulatedDisk

ORDERS = LogId(TopicId(bytes(range(16))), 0)


def replicas(*brokers):
    return tuple(ReplicaId(BrokerId(broker), f"disk-{broker}") for broker in brokers)


@pytest.fixture
def disk():
    """Of broker 3, which votes on the metadata."""
    disk = SimulatedDisk(1)
    save_identity(disk, Identity(BrokerId(3), "cluster", bytes(16)))
    return disk


def journal(disk, **voters):
    """Which sets of voters each log had, one after the other."""
    known = Known()
    for name, sets in voters.items():
        log = {"metadata": METADATA_LOG, "orders": ORDERS}[name]
        known.facts(log).voters = tuple(VoterChange(offset, replicas(*each)) for offset, each in enumerate(sets, -1))
        known.facts(log).epoch = 7
    disk.replace_file(FILE, encode_frame(encode_records(known.records())))


def plan(disk, *gone):
    return plan_recovery(disk, frozenset(map(BrokerId, gone)))


def test_a_log_that_has_lost_its_majority_goes_on_with_those_who_are_left(disk):
    journal(disk, metadata=[(1, 2, 3, 4, 5)])
    before = disk.read_file(FILE)
    recovery = plan(disk, 1, 2, 5)
    (lost,) = recovery.lost
    assert (lost.name, lost.left) == ("__cluster_metadata-0", replicas(3, 4))
    assert disk.read_file(FILE) == before
    carry_out(disk, recovery)
    facts = read_journal(disk).known.facts(METADATA_LOG)
    assert (facts.voters, facts.epoch) == ((VoterChange(-1, replicas(3, 4)),), 7)
    assert disk.read_file(KEPT_FILE) == before
    assert plan(disk, 1, 2, 5).lost == []


def test_a_log_that_has_its_majority_is_left_alone(disk):
    journal(disk, metadata=[(1, 2, 3)], orders=[(2, 3, 4)])
    recovery = plan(disk, 1, 2)
    assert [each.log for each in recovery.lost] == [METADATA_LOG]
    carry_out(disk, recovery)
    assert read_journal(disk).known.facts(ORDERS).voters == (VoterChange(-1, replicas(2, 3, 4)),)


def test_the_last_voters_count(disk):
    journal(disk, metadata=[(1, 2, 3), (2, 3), (2, 3, 4)])
    assert plan(disk, 1).lost == []
    assert plan(disk, 2, 4).lost[0].left == replicas(3)


def test_a_log_of_which_no_voter_is_left_stays_as_it_is(disk):
    journal(disk, metadata=[(1, 2, 3)], orders=[(1, 2)])
    recovery = plan(disk, 1, 2)
    assert [(each.log, each.left) for each in recovery.lost] == [(METADATA_LOG, replicas(3)), (ORDERS, ())]
    carry_out(disk, recovery)
    assert read_journal(disk).known.facts(ORDERS).voters == (VoterChange(-1, replicas(1, 2)),)


def test_logs_are_called_by_their_directories_or_else_by_their_ids(disk):
    journal(disk, orders=[(1, 2, 3)])
    assert plan(disk, 1, 2).lost[0].name == f"{id_text(ORDERS.topic_id)}-0"
    for directory in ("orders-0", "orders-0.put-aside"):
        disk.make_directory(directory)
        write_topic_id(disk, directory, ORDERS.topic_id)
    assert plan(disk, 1, 2).lost[0].name == "orders-0"


def test_a_broker_is_not_recovered_without_itself(disk):
    journal(disk, metadata=[(1, 2, 3)])
    with pytest.raises(SettingsError, match="of broker 3 itself"):
        plan(disk, 2, 3)


def test_a_directory_that_no_cluster_used_is_refused(disk):
    with pytest.raises(SettingsError, match="not the directory of a broker"):
        plan(disk, 1)
    with pytest.raises(SettingsError, match="not the directory of a broker"):
        plan(SimulatedDisk(2), 1)


def test_a_damaged_journal_is_refused(disk):
    journal(disk, metadata=[(1, 2, 3)])
    disk.replace_file(FILE, disk.read_file(FILE)[:-1] + b"!" * 40)
    with pytest.raises(CorruptData, match="damaged journal"):
        plan(disk, 1, 2)
