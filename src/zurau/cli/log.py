"""`zurau log`: what is in the files of a data directory, what is wrong with them, and what can be done about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from zurau.cli.consume import RecordFormat
from zurau.cli.options import SETTINGS, Yes, confirm
from zurau.cli.output import counted, say

if TYPE_CHECKING:
    from zurau.journal.reading import Reading
    from zurau.log.damage import DamagedRange
    from zurau.log.dump import Finding, RecordFound
    from zurau.log.last_known import LastKnown
    from zurau.ports import Disk
    from zurau.records.batch import BatchHeader

app = typer.Typer(help="The files that a broker stores.", no_args_is_help=True, **SETTINGS)

SHOWN_BYTES = 60
METADATA_DIRECTORY = "__cluster_metadata-0"

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A broker's directory, or one partition's.")]
PartitionName = Annotated[
    str | None, typer.Option("--partition", metavar="NAME", help="Only this partition of it, for example orders-0.")
]


@app.command()
def dump(
    directory: Directory,
    partition: PartitionName = None,
    records: Annotated[bool, typer.Option("--records", help="Also every record.")] = False,
    indexes: Annotated[bool, typer.Option("--indexes", help="Also the entries of the indexes.")] = False,
    form: Annotated[RecordFormat, typer.Option("--format", "-f", help="Lines of text, or of JSON.")] = (
        RecordFormat.TEXT
    ),
) -> None:
    """Print segments, batches, records and index entries.

    Exits with 1 when something is damaged. Only reads, so the broker may be running. Understands Apache Kafka's
    directories too. Records of the broker's own logs are shown by what they say.

    \b
    Examples:
      zurau log dump zurau-data
      zurau log dump zurau-data --partition orders-0 --records
      zurau log dump zurau-data/orders-0 --indexes --format json
    """
    from zurau.log.dump import DamageFound, dump_log
    from zurau.node.disk import RealDisk

    render = _as_json if form is RecordFormat.JSON else _as_text
    damaged = 0
    root, names = _logs(directory if partition is None else directory / partition)
    disk = RealDisk(root)
    for name in names:
        for finding in dump_log(disk, name, records=records, indexes=indexes):
            damaged += isinstance(finding, DamageFound)
            sys.stdout.write(render(finding) + "\n")
    if damaged:
        sys.stderr.write(f"zurau: {damaged} damaged {'place' if damaged == 1 else 'places'}; see the lines above\n")
        raise typer.Exit(1)


@app.command()
def check(
    directory: Directory,
    partition: PartitionName = None,
    form: Annotated[RecordFormat, typer.Option("--format", "-f", help="Lines of text, or of JSON.")] = (
        RecordFormat.TEXT
    ),
) -> None:
    """Read everything and name what is damaged.

    Checksums included. Of each damaged range it tells partition, offsets, file and positions. Of a broker's directory
    it reads the journal too. Exits with 1 when something is damaged, with 2 when there is nothing to check in DIR.
    Only reads, so the broker may be running.

    \b
    Examples:
      zurau log check zurau-data
      zurau log check zurau-data --partition orders-0 --format json
    """
    is_json = form is RecordFormat.JSON
    damage = 0
    for one in _damaged_ranges(directory, partition):
        damage += 1
        sys.stdout.write((json.dumps(_damage_fields(one), ensure_ascii=False) if is_json else str(one)) + "\n")
    journal_damage = _journal_damage(directory if partition is None else directory / partition)
    for place in journal_damage:
        fields = {"kind": "journal_damage", "reason": place}
        sys.stdout.write((json.dumps(fields, ensure_ascii=False) if is_json else place) + "\n")
    if damage:
        say(
            f"zurau: {counted(damage, 'damaged range')}; restore the files from a copy, or stop the broker and run "
            "`zurau log repair`"
        )
    if journal_damage:
        say(
            "zurau: the journal is damaged, so a lost end of a log may not have been noticed here; the broker writes a "
            "new journal at its next start"
        )
    if damage or journal_damage:
        raise typer.Exit(1)
    say("nothing is damaged")


@app.command()
def repair(directory: Directory, partition: PartitionName = None, yes: Yes = False) -> None:
    """Make gaps of what is damaged.

    Consumers pass over a gap; of damage they are told with an error. The broker must be stopped. Shows what it would
    do and asks. The records in the damaged ranges are given up; a copy of their bytes stays beside each segment, in
    files that end in .damaged. Offsets stay as they are, and none is given out again.

    \b
    Examples:
      zurau log repair zurau-data
      zurau log repair zurau-data --partition orders-0 --yes
    """
    from zurau.log.repair import repair_segment
    from zurau.node.disk import RealDisk

    root, _ = _logs(directory if partition is None else directory / partition)
    with _locked(root):
        damage = list(_damaged_ranges(directory, partition))
        if not damage:
            if partition is None and _journal_damage(directory):
                say("no log is damaged; the journal is, and the broker writes a new one at its next start")
            else:
                say("nothing is damaged")
            return
        for one in damage:
            sys.stdout.write(f"{one}\n")
        if any(one.directory == METADATA_DIRECTORY for one in damage):
            say(
                f"{METADATA_DIRECTORY} says which topics there are. Those whose records are given up will be unknown: "
                "their data stays where it is, but is not served. Restore a copy if there is one"
            )
        confirm(f"Give up the records in {counted(len(damage), 'damaged range')}?", yes=yes)
        disk = RealDisk(root)
        for path in dict.fromkeys(one.file for one in damage):
            kept = repair_segment(disk, [one for one in damage if one.file == path])
            say(f"repaired {path}" + (f"; the damaged bytes are in {', '.join(kept)}" if kept else ""))


def _locked(root: Path) -> IO[bytes]:
    from zurau.errors import SettingsError
    from zurau.node.run import DirectoryInUse, lock_directory

    try:
        return lock_directory(root)
    except DirectoryInUse as error:
        raise SettingsError(f"a broker is running on {root}; stop it first, then repair") from error


def _damaged_ranges(directory: Path, partition: str | None) -> Iterator[DamagedRange]:
    from zurau.cli.progress import progress
    from zurau.journal.reading import read_journal
    from zurau.log.check import check_log, log_bytes
    from zurau.node.disk import RealDisk

    root, names = _logs(directory if partition is None else directory / partition)
    disk = RealDisk(root)
    journal = read_journal(disk)
    with progress("reading", sum(log_bytes(disk, name) for name in names)) as advance:
        for name in names:
            yield from check_log(disk, name, _last_known(disk, name, journal), advance)


def _journal_damage(directory: Path) -> list[str]:
    """What is wrong with the journal of a broker's directory; a partition's directory has none."""
    from zurau.journal.reading import read_journal
    from zurau.node.disk import RealDisk

    reading = read_journal(RealDisk(directory))
    return [] if reading is None else reading.damage


def _last_known(disk: Disk, name: str, journal: Reading | None) -> LastKnown:
    """What the broker's journal says of a partition, going by the topic id in its directory."""
    from zurau.journal.records import LogId
    from zurau.log.last_known import LastKnown
    from zurau.partition.opening import read_topic_id

    topic_id = read_topic_id(disk, name)
    index = name.rpartition("-")[2]
    if journal is None or topic_id is None or not index.isdecimal():
        return LastKnown()
    log_id = LogId(topic_id, int(index))
    return LastKnown(journal.known.facts(log_id).flushed.offset, journal.known.closed.get(log_id))


def _damage_fields(one: DamagedRange) -> dict[str, Any]:
    return {
        "kind": "damage",
        "partition": one.directory,
        "first_offset": one.first_offset,
        "last_offset": one.next_offset - 1,
        "file": one.file,
        "position": one.position,
        "end_position": one.end_position,
        "reason": one.reason,
    }


def _logs(directory: Path) -> tuple[Path, list[str]]:
    """The directories with segments in them, `directory` itself or those inside, and where they lie."""
    from zurau.broker.identity import FILE as IDENTITY_FILE
    from zurau.errors import CorruptData
    from zurau.log.files import is_segment_file

    if not directory.is_dir():
        raise typer.BadParameter(f"there is no directory {directory}; give the --dir of a broker")
    if any(is_segment_file(path.name) for path in directory.glob("*.log")):
        return directory.resolve().parent, [directory.resolve().name]
    inside = sorted({path.parent.name for path in directory.glob("*/*.log") if is_segment_file(path.name)})
    if not inside and (directory / IDENTITY_FILE).exists():
        raise CorruptData(f"{directory} is a broker's, and all its logs are gone; restore it from a copy")
    if not inside:
        raise typer.BadParameter(
            f"there are no segments in {directory}; give the --dir of a broker, or the directory of one partition"
        )
    return directory, inside


def _as_json(finding: Finding) -> str:
    from zurau.cli.record_text import record_object
    from zurau.log.dump import BatchFound, RecordFound

    kind = _KINDS[type(finding).__name__]
    if isinstance(finding, BatchFound):
        fields: dict[str, Any] = {"position": finding.position} | _batch_fields(finding.header)
    elif isinstance(finding, RecordFound):
        state = _state(finding)
        fields = record_object(finding.record) | ({} if state is None else {"state": state})
    else:
        fields = {name: value for name, value in finding._asdict().items() if name != "path"}
    return json.dumps({"kind": kind, "file": finding.path} | fields, ensure_ascii=False)


_KINDS = {
    "SegmentFound": "segment",
    "BatchFound": "batch",
    "RecordFound": "record",
    "OffsetEntryFound": "offset_entry",
    "TimeEntryFound": "time_entry",
    "DamageFound": "damage",
}


def _batch_fields(header: BatchHeader) -> dict[str, Any]:
    from zurau.records.compression import Compression

    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "bytes": header.length,
        "leader_epoch": header.leader_epoch,
        "compression": Compression(header.compression).name.lower(),
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
    }


def _as_text(finding: Finding) -> str:
    from zurau.cli.times import format_time
    from zurau.log.dump import BatchFound, DamageFound, OffsetEntryFound, RecordFound, SegmentFound

    if isinstance(finding, SegmentFound):
        return f"{finding.path}: from offset {finding.base_offset}, {finding.size_bytes} bytes"
    if isinstance(finding, BatchFound):
        return _batch_text(finding.position, finding.header)
    if isinstance(finding, RecordFound):
        record = finding.record
        written = f"    {record.offset} {format_time(record.timestamp) or '-'}"
        if (state := _state(finding)) is not None:
            return f"{written} {json.dumps(state, ensure_ascii=False)}"
        return f"{written} key={_shorten(record.key)} value={_shorten(record.value)} headers={len(record.headers)}"
    if isinstance(finding, OffsetEntryFound):
        return f"  index: offset {finding.offset} at {finding.position}"
    if isinstance(finding, DamageFound):
        return f"  DAMAGED at {finding.position}: {finding.text}"
    return f"  timeindex: {format_time(finding.timestamp) or '-'} at offset {finding.offset}"


def _state(finding: RecordFound) -> dict[str, Any] | None:
    from zurau.cli.state_text import state_in

    return state_in(Path(finding.path).parent.name, finding.record)


def _batch_text(position: int, header: BatchHeader) -> str:
    from zurau.cli.times import format_time

    fields = _batch_fields(header)
    flags = [name for name in ("transactional", "control") if fields[name]]
    if header.producer_id >= 0:
        flags.append(f"producer {header.producer_id}/{header.producer_epoch} from {header.base_sequence}")
    return (
        f"  {position}: offsets {header.base_offset} to {header.last_offset}, {counted(header.record_count, 'record')},"
        f" {header.length} bytes, {', '.join([fields['compression'], *flags])},"
        f" epoch {header.leader_epoch}, {format_time(header.max_timestamp) or '-'}"
    )


def _shorten(content: bytes | None) -> str:
    if content is None:
        return "null"
    try:
        shown = repr(content[:SHOWN_BYTES].decode())
    except UnicodeDecodeError:
        shown = repr(content[:SHOWN_BYTES])
    return shown if len(content) <= SHOWN_BYTES else f"{shown}... ({len(content)} bytes)"
