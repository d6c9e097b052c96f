"""`zurau consume`: records as lines, from anywhere in a topic or as a member of a group."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from zurau.cli.endings import NotWritten, sigterm_unwinds
from zurau.cli.options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT_S,
    Bootstrap,
    Timeout,
    TopicName,
    open_cluster,
)
from zurau.settings import INT32_MAX

if TYPE_CHECKING:
    from zurau.cli.record_text import Render
    from zurau.client.cluster import Cluster
    from zurau.client.consumer import Consumer, FetchSettings, PartitionRecords
    from zurau.client.groups.consumer import GroupConsumer
    from zurau.ids import Offset, TopicPartition

ROUND_S = 0.5


class RecordFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin; the end of the topic unless something else was said."""

    from_beginning: bool
    offset: int | None
    time: str | None

    def __post_init__(self) -> None:
        if sum((self.from_beginning, self.offset is not None, self.time is not None)) > 1:
            raise typer.BadParameter("use only one of --from-beginning, --from-offset and --from-time")


def consume(
    topic: TopicName,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="From the first record there is.")] = False,
    from_offset: Annotated[
        int | None, typer.Option(metavar="N", help="From this offset; a negative one counts from the end.")
    ] = None,
    from_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="From a moment, as 2026-01-31T12:00 or 10m (ago).")
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option(metavar="N", min=0, max=INT32_MAX, help="Only this one; may be repeated.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", "-g", help="Read as a member of this group.")] = None,
    limit: Annotated[int | None, typer.Option("--max", "-n", metavar="N", min=1, help="Stop after N records.")] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at what is the end when starting.")] = False,
    keys: Annotated[bool, typer.Option("--keys", help="Print the key and a tab before the value.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="Print the headers and a tab before the rest.")] = False,
    template: Annotated[
        str | None,
        typer.Option(
            help="What to print for each record, with {topic} {partition} {offset} {timestamp} {time} {key} {value}"
            r" {headers} \n \t."
        ),
    ] = None,
    form: Annotated[RecordFormat, typer.Option("--format", "-f", help="Lines of text, or of JSON.")] = (
        RecordFormat.TEXT
    ),
    read_committed: Annotated[bool, typer.Option("--read-committed", help="Skip aborted transactions.")] = False,
    rack: Annotated[str, typer.Option(metavar="NAME", help="Read from brokers of this rack where possible.")] = "",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Print records; goes on with new ones as they come, until Ctrl-C.

    \b
    Examples:
      zurau consume orders
      zurau consume orders --from-beginning --until-end --format json
      zurau consume orders --from-time 10m --keys
      zurau consume orders --from-offset -5 --max 5 --partition 0
      zurau consume orders --group billing --from-beginning
      zurau consume orders --rack eu-1a
      zurau consume orders --template '{partition}/{offset} {time} {key}: {value}\\n'
    """
    from zurau.client.consumer import FetchSettings

    start = Start(from_beginning, from_offset, from_time)
    fetch = FetchSettings(isolation=_isolation(read_committed), rack=rack)
    render = _renderer(form, template, keys=keys, headers=headers)
    with ExitStack() as stack:
        stack.enter_context(sigterm_unwinds())
        cluster = stack.enter_context(open_cluster(bootstrap, timeout))
        reader = (
            _partition_reader(cluster, topic, partition, start, fetch)
            if group is None
            else _group_reader(cluster, topic, partition, start, group, fetch)
        )
        stack.enter_context(reader)
        Printing(cluster, reader, render, limit, until_end, read_committed).run()


def _renderer(form: RecordFormat, template: str | None, *, keys: bool, headers: bool) -> Render:
    from zurau.cli.record_text import render_json, template_renderer

    if form is RecordFormat.JSON:
        if template is not None:
            raise typer.BadParameter("use either --template or --format json")
        return render_json
    plain = ("{headers}\t" if headers else "") + ("{key}\t" if keys else "") + "{value}\n"
    return template_renderer(template or plain, "--template")


def _partition_reader(
    cluster: Cluster, topic: str, indexes: list[int] | None, start: Start, fetch: FetchSettings
) -> Consumer:
    from zurau.client.consumer import Consumer
    from zurau.ids import TopicPartition

    every = cluster.retry(lambda: cluster.partitions_of(topic))
    chosen = every if indexes is None else [TopicPartition(topic, index) for index in indexes]
    consumer = Consumer(cluster, fetch)
    consumer.assign(_start_positions(cluster, chosen, start))
    return consumer


def _start_positions(
    cluster: Cluster, partitions: list[TopicPartition], start: Start
) -> Mapping[TopicPartition, Offset]:
    from zurau.cli.times import parse_time
    from zurau.client.offsets import end_offsets, offsets_at_time, start_offsets

    if start.from_beginning:
        return start_offsets(cluster, partitions)
    if start.time is not None:
        return offsets_at_time(cluster, partitions, parse_time(start.time, "--from-time"))
    if start.offset is not None and start.offset >= 0:
        return dict.fromkeys(partitions, start.offset)
    ends = end_offsets(cluster, partitions)
    if start.offset is None:
        return ends
    firsts = start_offsets(cluster, partitions)
    return {partition: max(firsts[partition], end + start.offset) for partition, end in ends.items()}


def _group_reader(
    cluster: Cluster, topic: str, indexes: list[int] | None, start: Start, group: str, fetch: FetchSettings
) -> GroupConsumer:
    from zurau.client.consumer import GO_TO_END, GO_TO_START
    from zurau.client.groups.consumer import GroupConsumer

    if indexes is not None or start.offset is not None or start.time is not None:
        raise typer.BadParameter("a group knows its partitions and offsets; to move it use `zurau group reset`")
    cluster.retry(lambda: cluster.topic(topic))
    policy = GO_TO_START if start.from_beginning else GO_TO_END
    return GroupConsumer(cluster, group, [topic], start=policy, fetch=replace(fetch, on_out_of_range=policy))


def _isolation(read_committed: bool) -> int:
    from zurau.client.offsets import READ_COMMITTED, READ_UNCOMMITTED

    return READ_COMMITTED if read_committed else READ_UNCOMMITTED


def _notice_closed_pipe() -> None:
    """A pipe whose other end is gone is otherwise noticed only with the next record, which may never come."""
    poller = select.poll()
    poller.register(sys.stdout.fileno(), 0)
    if any(event & select.POLLERR for _, event in poller.poll(0)):
        raise BrokenPipeError(errno.EPIPE, "whoever was reading is gone")


def _write(text: bytes, written: list[int]) -> None:
    """Write to stdout, and note the length of each piece as it goes out.

    A signal that comes while we write ends the program between two steps of Python, and what is out must be known
    even then. `extend` and `map` call `os.write` and keep its result in one step.
    """
    descriptor = sys.stdout.fileno()
    rest = memoryview(text)
    try:
        while rest:
            written.extend(map(os.write, (descriptor,), (rest,)))
            rest = rest[written[-1] :]
    except BrokenPipeError:
        raise
    except OSError as error:
        raise NotWritten(error) from error


class Printing:
    """Prints what a reader brings until there is a reason to stop.

    A reader's position counts as done. So where records were fetched but not printed, the reader is taken back to the
    first of them: a group then goes on exactly there.
    """

    def __init__(
        self,
        cluster: Cluster,
        reader: Consumer | GroupConsumer,
        render: Render,
        limit: int | None,
        until_end: bool,
        read_committed: bool,
    ) -> None:
        self._cluster = cluster
        self._reader = reader
        self._render = render
        self._left = limit
        self._until_end = until_end
        self._read_committed = read_committed
        self._ends: dict[TopicPartition, Offset] = {}

    def run(self) -> None:
        from zurau.cli.progress import progress

        self._find_ends()
        positions = self._reader.positions
        total = sum(max(0, end - positions.get(partition, end)) for partition, end in self._ends.items())
        wanted = self._until_end and not sys.stdout.isatty()
        with progress("reading", total, wanted=wanted) as advance:
            while not self._is_finished():
                advance(self._print(self._reader.poll(ROUND_S)))
                _notice_closed_pipe()
                self._find_ends()

    def _find_ends(self) -> None:
        """The end of every partition that we read, as it is when we first see it."""
        from zurau.client.offsets import end_offsets

        unknown = [partition for partition in self._reader.positions if partition not in self._ends]
        if self._until_end and unknown:
            self._ends |= end_offsets(self._cluster, unknown, isolation=_isolation(self._read_committed))

    def _is_finished(self) -> bool:
        if self._left == 0:
            return True
        positions = self._reader.positions
        if not self._until_end or not positions:
            return False
        return all(offset >= self._ends[partition] for partition, offset in positions.items())

    def _print(self, chunks: list[PartitionRecords]) -> int:
        unprinted = {chunk.partition: chunk.records[0].offset for chunk in chunks if chunk.records}
        count = 0
        try:
            for partition, records, _ in chunks:
                end = self._ends.get(partition)
                chosen = records if end is None else [record for record in records if record.offset < end]
                chosen = chosen if self._left is None else chosen[: self._left]
                text = b"".join(self._render(partition, record) for record in chosen)
                written: list[int] = []
                try:
                    _write(text, written)
                finally:
                    if sum(written) == len(text) and len(chosen) == len(records):
                        unprinted.pop(partition, None)
                    elif sum(written) == len(text) and chosen:
                        unprinted[partition] = chosen[-1].offset + 1
                count += len(chosen)
                if self._left is not None:
                    self._left -= len(chosen)
        finally:
            for partition, offset in unprinted.items():
                self._reader.seek(partition, offset)
        return count
