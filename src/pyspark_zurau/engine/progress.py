"""How far each query of a running pipeline is, as Spark tells it, in a form that other processes can read.

The running pipeline writes it to a file in the checkpoint directory, in one step, about once a second. Whoever reads it
knows from the lock whether the writer is still there.
"""

from __future__ import annotations

import base64
import json
import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from pyspark_zurau.engine.sources import JUDGED
from pyspark_zurau.spark.checkpoint_lock import holder, local_path
from pyspark_zurau.spark.lag import lag_of

FILE = "status.json"
RUNNING, FINISHED, STOPPED, FAILED, LOST = "running", "finished", "stopped", "failed", "lost"


@dataclass(frozen=True, slots=True)
class Judged:
    """How many values of a source could be read since the pipeline was started, and how many could not."""

    good: int = 0
    dead: int = 0
    #: What was wrong most often in the batch that had the most dead letters.
    reason: str | None = None
    most_dead: int = 0
    #: The first dead letter: where it is, and how it begins.
    example: str | None = None

    @property
    def dead_rate(self) -> float:
        return self.dead / max(1, self.good + self.dead)

    def __str__(self) -> str:
        why = f" ({self.reason}; for example {self.example})" if self.dead else ""
        return f"{self.good} good, {self.dead} dead{why}"


@dataclass(frozen=True, slots=True)
class QueryStatus:
    name: str
    kind: str
    #: -1: none yet.
    batch_id: int = -1
    #: Read since the pipeline was started.
    rows: int = 0
    rows_per_s: float = 0.0
    batch_ms: int | None = None
    #: Records that are there and not read yet.
    lag: int | None = None
    state_rows: int = 0
    state_bytes: int = 0
    watermark: str | None = None
    updated: str | None = None
    #: Rows that came after the watermark had passed them: Spark leaves them out of the result. It counts them after it
    #: has put rows of one group together, so there may be more.
    late_rows: int = 0
    #: Of the query that takes the dead letters of a source.
    judged: Judged | None = None


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    pipeline: str
    checkpoint: str
    state: str
    pid: int
    started_s: float
    updated_s: float
    reason: str | None = None
    queries: tuple[QueryStatus, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def follow(known: QueryStatus, query: StreamingQuery, scans: Counter[str]) -> QueryStatus:
    """What is known of a query, brought up to date. `scans` is filled in."""
    recent = [json.loads(progress.json) for progress in query.recentProgress]
    new = [progress for progress in recent if progress["batchId"] > known.batch_id and _ran(progress)]
    if not new:
        idle = recent and not query.status["isTriggerActive"]
        return replace(known, rows_per_s=0.0, lag=_lag(recent[-1], known.lag)) if idle else known
    last = new[-1]
    count_scans(query, last, scans)
    operators = last.get("stateOperators", [])
    return replace(
        known,
        batch_id=last["batchId"],
        rows=known.rows + int(sum(_of_sources(progress, "numInputRows", scans) for progress in new)),
        rows_per_s=round(
            _of_sources(last, "inputRowsPerSecond", scans) or _of_sources(last, "processedRowsPerSecond", scans), 1
        ),
        batch_ms=last["durationMs"].get("triggerExecution"),
        lag=_lag(last, known.lag),
        state_rows=sum(operator.get("numRowsTotal", 0) for operator in operators),
        state_bytes=sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        watermark=last.get("eventTime", {}).get("watermark"),
        updated=last["timestamp"],
        late_rows=known.late_rows + sum(map(_late_rows, new)),
        judged=_judged(known.judged, new),
    )


def publish(status: PipelineStatus) -> None:
    directory = local_path(status.checkpoint)
    if directory is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=directory, prefix=".status", delete=False, encoding="utf-8") as fresh:
        json.dump(status.to_json(), fresh)
    Path(fresh.name).replace(directory / FILE)


def read_status(checkpoint: str) -> PipelineStatus | None:
    """What the last run has published; a run that says it is running and is not there any more was lost."""
    directory = local_path(checkpoint)
    if directory is None or not (directory / FILE).is_file():
        return None
    document: dict[str, Any] = json.loads((directory / FILE).read_text(encoding="utf-8"))
    queries = tuple(_query_status(query) for query in document.pop("queries"))
    status = PipelineStatus(**document, queries=queries)
    if status.state == RUNNING and holder(directory) is None:
        return replace(status, state=LOST, reason=f"process {status.pid} has ended without a word")
    return status


def first_status(pipeline: str, checkpoint: str, kinds: Mapping[str, str]) -> PipelineStatus:
    queries = tuple(QueryStatus(name, kind) for name, kind in kinds.items())
    now_s = time.time()
    return PipelineStatus(pipeline, checkpoint, RUNNING, os.getpid(), now_s, now_s, None, queries)


def _query_status(document: dict[str, Any]) -> QueryStatus:
    judged = document.pop("judged", None)
    return QueryStatus(**document, judged=Judged(**judged) if judged else None)


def _late_rows(progress: dict[str, Any]) -> int:
    return sum(operator.get("numRowsDroppedByWatermark", 0) for operator in progress.get("stateOperators", []))


def _judged(known: Judged | None, new: list[dict[str, Any]]) -> Judged | None:
    for progress in new:
        found = (progress.get("observedMetrics") or {}).get(JUDGED)
        if not found or "dead" not in found:  # Spark Connect does not tell the names of what was observed
            continue
        known = known or Judged()
        is_worse = found["dead"] > known.most_dead
        known = Judged(
            known.good + found["good"],
            known.dead + found["dead"],
            found["reason"] if is_worse else known.reason,
            max(known.most_dead, found["dead"]),
            known.example or _example(found.get("example")),
        )
    return known


def _example(found: dict[str, Any] | None) -> str | None:
    if not found:
        return None
    value = found.get("value")
    return example_of(found["topic"], found["partition"], found["offset"], value and base64.b64decode(value))


def example_of(topic: str, partition: int, offset: int, value: bytes | None) -> str:
    shown = "no value" if value is None else repr(value.decode(errors="replace"))
    return f"{topic}-{partition} offset {offset}: {shown}"


def _ran(progress: dict[str, Any]) -> bool:
    """Whether a batch was run; a trigger that found nothing reports the batch that would be next."""
    return "addBatch" in progress["durationMs"]


def count_scans(query: StreamingQuery, progress: dict[str, Any], scans: Counter[str]) -> None:
    """How often the plan reads each source: a UNION of a source with itself does so twice, and Spark counts both."""
    java = getattr(query, "_jsq", None)
    if java is None or all(source["description"] in scans for source in progress["sources"]):
        return
    leaves = java.streamingQuery().lastExecution().executedPlan().collectLeaves()
    found = Counter(
        leaf.stream().toString()
        for number in range(leaves.size())
        if (leaf := leaves.apply(number)).getClass().getSimpleName() == "MicroBatchScanExec"
    )
    scans.update({source["description"]: found[source["description"]] or 1 for source in progress["sources"]})


def _of_sources(progress: dict[str, Any], name: str, scans: Counter[str]) -> float:
    """All sources together, each once. What is no number (a rate of no time) counts nothing."""
    found = ((source.get(name), scans[source.get("description", "")] or 1) for source in progress["sources"])
    return sum(value / times for value, times in found if isinstance(value, int | float) and math.isfinite(value))


def _lag(progress: dict[str, Any], known: int | None) -> int | None:
    lag = lag_of(progress)
    return sum(lag.values()) if lag else known
