"""The ceiling of any source in Python: one that has its Arrow batches ready and only hands them over.

What is left then is Spark's own work. As a stream it has a row every few milliseconds, with the time it is due.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

PARTITIONS = 2
ROW_INTERVAL_MS = 10


def row_value(number: int, size: int) -> bytes:
    """A log line of that size, which compresses as log lines do."""
    line = f'{{"id": {number * 2654435761 % 2**32:010d}, "level": "INFO", "service": "till-{number % 17}", "message": "'
    words = ("request", "done", "in", str(number * 48271 % 1000), "ms", "user", str(number * 69621 % 100000))
    while len(line) < size:
        line += words[(number + len(line)) % len(words)] + " "
    return line[: size - 2].encode() + b'"}'


class Ready(InputPartition):
    """How many rows to make up."""

    def __init__(self, rows: int, size: int) -> None:
        self.rows, self.size = rows, size


class CeilingReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._rows, self._size = int(options["rows"]), int(options["size"])

    def partitions(self) -> list[InputPartition]:
        return [Ready(self._rows // PARTITIONS, self._size) for _ in range(PARTITIONS)]

    def read(self, partition: Ready) -> Iterator[object]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from pyspark_zurau.arrow.columns import topic_schema

        count = max(1, min(partition.rows, (1 << 20) // partition.size))
        now_us = int(time.time() * 1e6)
        columns = [
            pa.array([b"%012d" % number for number in range(count)], pa.binary()),
            pa.array([row_value(number, partition.size) for number in range(count)], pa.binary()),
            pa.repeat(pa.scalar("topic", pa.string()), count),
            pa.repeat(pa.scalar(0, pa.int32()), count),
            pa.array(range(count), pa.int64()),
            pa.array([now_us] * count, pa.timestamp("us", tz="UTC")),
            pa.repeat(pa.scalar(0, pa.int32()), count),
        ]
        schema = to_arrow_schema(topic_schema(with_headers=False), timezone="UTC")
        ready = pa.RecordBatch.from_arrays(columns, schema=schema)
        for start in range(0, partition.rows, count):
            yield ready if start + count <= partition.rows else ready.slice(0, partition.rows - start)


class Due(InputPartition):
    """Rows by their numbers: the moments since 1970, in steps of the interval."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class CeilingStream(DataSourceStreamReader):
    def __init__(self) -> None:
        self._initial: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        # Spark asks twice, the second time after it has asked for the latest: the first batch may be empty.
        self._initial = self._initial or self.latestOffset()
        return self._initial

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"row": int(time.time() * 1000) // ROW_INTERVAL_MS}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [Due(start["row"], end["row"])]

    def read(self, partition: Due) -> Iterator[object]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from pyspark_zurau.arrow.columns import topic_schema

        count = max(0, partition.end - partition.start)
        numbers = range(partition.start + 1, partition.end + 1)
        columns = [
            pa.array([None] * count, pa.binary()),
            pa.array([b"x" * 100] * count, pa.binary()),
            pa.repeat(pa.scalar("topic", pa.string()), count),
            pa.repeat(pa.scalar(0, pa.int32()), count),
            pa.array(numbers, pa.int64()),
            pa.array([number * ROW_INTERVAL_MS * 1000 for number in numbers], pa.timestamp("us", tz="UTC")),
            pa.repeat(pa.scalar(0, pa.int32()), count),
        ]
        schema = to_arrow_schema(topic_schema(with_headers=False), timezone="UTC")
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


class Ceiling(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> object:
        from pyspark_zurau.arrow.columns import topic_schema

        return topic_schema(with_headers=False)

    def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002 - there is only one
        return CeilingReader(dict(self.options))

    def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return CeilingStream()
