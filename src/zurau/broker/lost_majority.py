"""When a majority of those who vote is gone for ever: who is left votes alone.

A log goes on only where a majority of its voters is there. If their disks are lost nobody can outvote them, and nothing
is written any more. Then an operator may say, to the journal of each broker that is left and while it does not run,
that only those vote who are left. What the others had acknowledged and these have not stored is lost with them.

Logs of which a majority is left are not touched: they lose nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from zurau.broker.directories import partition_directories
from zurau.broker.identity import read_identity
from zurau.broker.metadata_log import METADATA_LOG, METADATA_PARTITION
from zurau.errors import CorruptData, SettingsError
from zurau.ids import BrokerId, id_text
from zurau.journal.frames import encode_frame
from zurau.journal.reading import FILE, read_journal
from zurau.journal.records import Known, LogId, encode_records
from zurau.partition.opening import read_topic_id
from zurau.ports import Disk
from zurau.replica.core.membership import VoterChange, Voters
from zurau.replica.quorum.majority import majority

#: The journal as it was.
KEPT_FILE = f"{FILE}.before-recovery"


class LostMajority(NamedTuple):
    """A log that goes on only if those who are left vote alone; with none, it cannot be brought back here."""

    log: LogId
    #: As its directory is called.
    name: str
    voters: Voters
    left: Voters


class Recovery(NamedTuple):
    broker: BrokerId
    lost: list[LostMajority]
    #: How many logs with voters there are.
    log_count: int
    known: Known


def plan_recovery(disk: Disk, gone: Collection[BrokerId]) -> Recovery:
    """What would be changed if these brokers never came back. Raises `SettingsError`, or `CorruptData`."""
    identity, reading = read_identity(disk, None), read_journal(disk)
    if identity is None or reading is None:
        raise SettingsError(f"{disk.root} is not the directory of a broker that was in a cluster")
    if identity.broker_id in gone:
        raise SettingsError(f"{disk.root} is of broker {identity.broker_id} itself, which is not gone")
    if reading.damage:
        raise CorruptData(f"who votes cannot be told from a damaged journal: {'; '.join(reading.damage)}")
    names = _names(disk)
    lost, log_count = [], 0
    for log, facts in reading.known.replicas.items():
        voters = facts.voters[-1].voters if facts.voters else ()
        left = tuple(voter for voter in voters if voter.broker not in gone)
        log_count += bool(voters)
        if voters and len(left) < majority(len(voters)):
            name = names.get(log, f"{id_text(log.topic_id)}-{log.partition}")
            lost.append(LostMajority(log, name, voters, left))
    lost.sort(key=lambda each: (each.log != METADATA_LOG, each.name))
    return Recovery(identity.broker_id, lost, log_count, reading.known)


def carry_out(disk: Disk, recovery: Recovery) -> None:
    """Write it to the journal, whose old one is kept beside it. Blocks."""
    before = disk.read_file(FILE)
    assert before is not None, "it was read for the plan"
    disk.replace_file(KEPT_FILE, before)
    for each in recovery.lost:
        if each.left:
            recovery.known.facts(each.log).voters = (VoterChange(-1, each.left),)
    disk.replace_file(FILE, encode_frame(encode_records(recovery.known.records())))


def _names(disk: Disk) -> dict[LogId, str]:
    names = {METADATA_LOG: str(METADATA_PARTITION)}
    for directory in partition_directories(disk):
        topic_id, index = read_topic_id(disk, directory), directory.rpartition("-")[2]
        if topic_id is not None and index.isdecimal():  # others are deleted, or put aside
            names[LogId(topic_id, int(index))] = directory
    return names
