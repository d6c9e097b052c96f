"""`zurau produce`: one record for each line of the input, or for each file."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    Bootstrap,
    Format,
    FormatOption,
    Timeout,
    TopicName,
    key_values,
    open_cluster,
)
from zurau.settings import INT32_MAX

if TYPE_CHECKING:
    from zurau.cli.record_text import ParsedRecord
    from zurau.client.producer import Producer
    from zurau.ids import Offset, TopicPartition

CHUNK_BYTES = 256 * 1024
#: As everybody writes it.
STDIN = Path("-")


class Acks(StrEnum):
    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Codec(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


Files = Annotated[list[Path] | None, typer.Argument(metavar="[FILE]...", help="Where to read. Default: -, stdin.")]
WholeFiles = Annotated[
    bool, typer.Option("--whole-files", help="Each file is one record, whose key is its name; a directory: all in it.")
]
KeySeparator = Annotated[
    str | None, typer.Option("--key-separator", "-k", metavar="TEXT", help="What ends the key in each line.")
]
Header = Annotated[
    list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="For every record; may be repeated.")
]
KeepPartitions = Annotated[
    bool, typer.Option("--keep-partitions", help="With --json: use the partition that a line names.")
]
Partition = Annotated[int | None, typer.Option(metavar="N", min=0, max=INT32_MAX, help="Default: by the key, or any.")]


def produce(
    topic: TopicName,
    files: Files = None,
    whole_files: WholeFiles = False,
    key_separator: KeySeparator = None,
    header: Header = None,
    json_lines: Annotated[bool, typer.Option("--json", help="Each line is a record as JSON.")] = False,
    keep_partitions: KeepPartitions = False,
    partition: Partition = None,
    acks: Annotated[Acks, typer.Option(help="Who has to have stored a record: all replicas, the leader, nobody.")] = (
        Acks.ALL
    ),
    compression: Annotated[Codec, typer.Option(help="How to pack batches.")] = Codec.NONE,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    form: FormatOption = Format.TABLE,
) -> None:
    """Write one record for each line of a file or of stdin.

    \b
    Examples:
      echo 'hello' | zurau produce orders
      zurau produce orders lines.txt --compression zstd
      echo 'k1:v1' | zurau produce orders --key-separator :
      echo '{"key": "k1", "value": "v1", "headers": {"from": "shop"}}' | zurau produce orders --json
      zurau consume orders --from-beginning --until-end --format json | zurau produce copy --json
      zurau produce invoices --whole-files invoices/ extra.xml
    """
    from zurau.cli.progress import progress
    from zurau.client.producer import Producer, ProducerSettings
    from zurau.records.compression import Compression

    parse = _line_parser(key_separator, key_values(header or [], "--header"), json_lines, keep_partitions)
    settings = ProducerSettings(
        acks=-1 if acks is Acks.ALL else int(acks),
        compression=Compression[compression.name],
        delivery_timeout_s=timeout,
    )
    if whole_files and (json_lines or key_separator or not files):
        raise typer.BadParameter("needs files, and neither --json nor --key-separator", param_hint="--whole-files")
    written = Written(topic)
    inputs: list[Path] = _all_files(files or []) if whole_files else files or []
    size_bytes = sum(_size_bytes(file) for file in inputs)
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(bootstrap, timeout))
        advance = stack.enter_context(progress("writing", size_bytes, wanted=size_bytes > 0))
        producer = stack.enter_context(Producer(cluster, settings, on_delivered=written.add))
        # A topic that does not exist should be reported before anybody types.
        cluster.retry(lambda: cluster.topic(topic, may_create=True))
        for file in inputs or [STDIN]:
            with _open_input(file) as descriptor:
                if whole_files:
                    _send_whole(producer, topic, partition, file.name, _read_all(descriptor, advance), parse)
                else:
                    _send_lines(producer, topic, partition, line_batches(descriptor, advance), parse)
    written.show(form)


def _send_whole(
    producer: Producer,
    topic: str,
    partition: int | None,
    name: str,
    value: bytes,
    parse: Callable[[bytes], ParsedRecord],
) -> None:
    producer.send(topic, value, key=name.encode(), headers=parse(b"").headers, partition=partition)


def _all_files(named: list[Path]) -> list[Path]:
    """Those in directories too, in the order of their names; hidden ones are left out."""
    found: list[Path] = []
    for path in named:
        inside = path.iterdir() if path.is_dir() else ()
        found += sorted(each for each in inside if each.is_file() and each.name[0] != ".") or [path]
    return found


def _read_all(descriptor: int, advance: Callable[[int], None]) -> bytes:
    chunks = []
    while chunk := _read(descriptor):
        advance(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


def _line_parser(
    key_separator: str | None, headers: dict[str, str], json_lines: bool, keep_partitions: bool
) -> Callable[[bytes], ParsedRecord]:
    from zurau.cli.record_text import ParsedRecord, parse_json
    from zurau.client.errors import ClientError

    common = [(name, value.encode()) for name, value in headers.items()]
    separator = (key_separator or "").encode()

    def parse_keyed(line: bytes) -> ParsedRecord:
        key, found, value = line.partition(separator)
        if not found:
            raise ClientError(
                f"there is no key separator {key_separator!r} in it (write KEY{key_separator}VALUE, or leave out "
                "--key-separator for records without a key)"
            )
        return ParsedRecord(key, value, [*common])

    def parse_with_headers(line: bytes) -> ParsedRecord:
        record = parse_json(line)
        partition = record.partition if keep_partitions else None
        return record._replace(headers=[*common, *record.headers], partition=partition)

    if json_lines:
        return parse_with_headers
    return parse_keyed if separator else lambda line: ParsedRecord(None, line, [*common])


def _send_lines(
    producer: Producer,
    topic: str,
    partition: int | None,
    batches: Iterator[list[bytes]],
    parse: Callable[[bytes], ParsedRecord],
) -> None:
    from zurau.client.errors import ClientError

    number = 0
    for lines in batches:
        for line in lines:
            number += 1
            try:
                record = parse(line)
            except ClientError as error:
                producer.flush()
                raise ClientError(f"line {number}: {error}; the lines before it were written") from error
            producer.send(
                topic,
                record.value,
                key=record.key,
                headers=record.headers,
                partition=record.partition if partition is None else partition,
                timestamp_ms=record.timestamp_ms,
            )
        if not lines:
            producer.flush()


@contextmanager
def _open_input(file: Path) -> Iterator[int]:
    """A descriptor to read from."""
    if file == STDIN:
        yield sys.stdin.fileno()
        return
    with _reading(file):
        opened = file.open("rb")
    with opened:
        yield opened.fileno()


def _size_bytes(file: Path) -> int:
    """How much there is; a file that cannot be read is told before anything is written."""
    if file == STDIN:
        return 0
    with _reading(file), file.open("rb") as opened:
        return os.fstat(opened.fileno()).st_size


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    from zurau.client.errors import ClientError

    try:
        yield
    except OSError as error:
        raise ClientError(f"cannot read {file}: {error.strerror}; check the path") from error


def line_batches(descriptor: int, advance: Callable[[int], None] = lambda _: None) -> Iterator[list[bytes]]:
    """Lines as they come in; an empty list whenever the input has run dry for the moment."""
    rest = b""
    while True:
        if not select.select([descriptor], [], [], 0)[0]:
            yield []
        chunk = _read(descriptor)
        if not chunk:
            break
        advance(len(chunk))
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _read(descriptor: int) -> bytes:
    from zurau.client.errors import ClientError

    try:
        return os.read(descriptor, CHUNK_BYTES)
    except OSError as error:
        if error.errno == errno.EBADF:
            raise ClientError("stdin is closed; name a file, or pipe the lines in") from error
        raise ClientError(f"cannot read the input: {error.strerror}; what came before it was written") from error


class Written:
    """Counts what was acknowledged, and where it ended up."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._partitions: dict[int, dict[str, Any]] = {}

    def add(self, partition: TopicPartition, base_offset: Offset, count: int) -> None:
        row = self._partitions.setdefault(
            partition.partition,
            {"partition": partition.partition, "records": 0, "first_offset": base_offset, "last_offset": base_offset},
        )
        row["records"] += count
        row["last_offset"] = base_offset if base_offset < 0 else base_offset + count - 1

    def show(self, form: Format) -> None:
        """For people one line on stderr, if they are there; for programs what they asked for."""
        from zurau.cli.output import counted, say, show_json, show_rows

        rows = [row for _, row in sorted(self._partitions.items())]
        count = sum(row["records"] for row in rows)
        if form is Format.JSON:
            show_json({"topic": self._topic, "records": count, "partitions": rows})
        elif form is Format.CSV:
            show_rows(rows, ("partition", "records", "first_offset", "last_offset"), form)
        elif sys.stderr.isatty():
            say(f"wrote {counted(count, 'record')} to {self._topic}")
