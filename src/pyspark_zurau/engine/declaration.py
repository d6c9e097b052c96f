"""What a pipeline is, once its file has been read: plain values, checked as far as the file itself can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAIL = "fail"
FORMATS = ("json", "text", "regex", "csv", "avro", "raw")
MODES = ("append", "update", "complete")
NULL_VALUES = ("dead_letter", "keep", "skip")
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_EVERY = "200 milliseconds"
DEFAULT_REAL_TIME = "5 minutes"


@dataclass(frozen=True, slots=True)
class Defaults:
    """The cluster of sources and sinks that name no other, and settings of Kafka's clients for all of them."""

    bootstrap: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    bootstrap: str
    topics: tuple[str, ...]
    #: Instead of topics: a regular expression for their whole names.
    topic_pattern: str | None
    starting: str
    #: Those of the data source, by their names.
    options: Mapping[str, str]
    format: str
    #: Columns as Spark's DDL; None where the format has them by itself.
    schema: str | None = None
    pattern: str | None = None
    #: How columns that are times are written, by their names; `pyspark_zurau.engine.times` has the forms.
    time_format: Mapping[str, str] | None = None
    separator: str = ","
    schema_file: Path | None = None
    #: How Avro values begin: "none", or "confluent" for a zero and a schema number of four bytes.
    framing: str = "none"
    null_values: str = "dead_letter"
    #: Columns of the record itself that go along, with an underscore in front of their names.
    record: tuple[str, ...] = ()
    watermark: Watermark | None = None
    #: A topic; "fail" to end the query instead; None for `raw`, which is not parsed at all.
    dead_letter: str | None = None
    #: The share of dead letters above which the pipeline stops; None: however many there are.
    fail_on_dead: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    #: One of the two: a query over sources and earlier steps, or `file.py:function` of the user's.
    sql: str | None
    python: str | None
    inputs: tuple[str, ...] = ()
    arguments: Mapping[str, Any] | None = None
    watermark: Watermark | None = None


@dataclass(frozen=True, slots=True)
class TopicTarget:
    bootstrap: str
    #: None: each row says so in its column `topic`.
    topic: str | None
    format: str
    #: The column that is the key of a JSON record.
    key: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ParquetTarget:
    path: str
    partition_by: tuple[str, ...]
    compression: str


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    path: str
    partition_by: tuple[str, ...]
    #: Columns that tell rows apart; without any, rows are only added.
    key: tuple[str, ...]
    latest_by: str | None
    delete: str | None


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    #: One of the two: a directory that is the warehouse, with a catalog in it; or a catalog that PyIceberg knows.
    path: str | None
    catalog: str | None
    #: With its namespace: `shop.orders`.
    table: str
    partition_by: tuple[str, ...]
    key: tuple[str, ...]
    latest_by: str | None


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    dsn: str
    table: str
    key: tuple[str, ...]
    #: Of rows with the same key the one with the greatest value in this column counts.
    latest_by: str | None
    #: A truth column: rows where it is true take the row with their key away.
    delete: str | None
    create: bool


@dataclass(frozen=True, slots=True)
class ConsoleTarget:
    rows: int


Target = TopicTarget | ParquetTarget | DeltaTarget | IcebergTarget | PostgresTarget | ConsoleTarget


@dataclass(frozen=True, slots=True)
class Trigger:
    #: How often to look for new records, as Spark writes durations.
    every: str = DEFAULT_EVERY
    #: Instead: read what there is, and end.
    available_now: bool = False
    #: Instead: hand on each record as it comes, and make a checkpoint so often.
    real_time: str | None = None


@dataclass(frozen=True, slots=True)
class Sink:
    name: str
    #: The source or step whose rows are written.
    origin: str
    kind: str
    mode: str
    trigger: Trigger
    target: Target


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    doc: str
    file: Path
    checkpoint: str
    trigger: Trigger
    #: For the Spark session.
    spark: Mapping[str, str]
    sources: Mapping[str, Source]
    steps: Mapping[str, Step]
    sinks: Mapping[str, Sink]
    #: What the user chose, or the defaults.
    parameters: Mapping[str, Any]

    @property
    def directory(self) -> Path:
        """Paths in the file are meant from here."""
        return self.file.parent
