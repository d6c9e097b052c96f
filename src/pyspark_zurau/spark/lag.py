"""Lag: how many records of each partition a streaming query still has before it.

Spark's progress tells, of each trigger, up to where a source was read and where its topics ended then; lag is the
difference. `lag_of` takes it from one progress, and `LagListener` keeps the newest of every query of a session:

    listener = LagListener()
    spark.streams.addListener(listener)
    ...
    listener.total("my query")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from pyspark_zurau.options.offsets import Offsets, from_json
from zurau.ids import TopicPartition

Lag = dict[TopicPartition, int]


def lag_of(progress: Mapping[str, Any]) -> Lag:
    """Of every partition that the query reads, from `query.lastProgress` or from the JSON of a progress, parsed.

    Sources that are not topics are left out. Where several read the same partition, the slowest counts.
    """
    lag: Lag = {}
    for source in progress.get("sources", ()):
        latest, read = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
        for partition, end in latest.items():
            behind = max(0, end - read.get(partition, 0))
            lag[partition] = max(behind, lag.get(partition, 0))
    return lag


class LagListener(StreamingQueryListener):
    """Keeps the newest lag of each query that runs, by its name (by its id where it has none).

    `on_change` is called with that name and the lag whenever a trigger has ended.
    """

    def __init__(self, on_change: Callable[[str, Lag], None] = lambda *_: None) -> None:
        super().__init__()
        self._on_change = on_change
        self._lags: dict[str, Lag] = {}
        self._names: dict[str, str] = {}

    @property
    def lags(self) -> dict[str, Lag]:
        return dict(self._lags)

    def total(self, query: str) -> int:
        """All partitions together; 0 for a query that has not been heard of."""
        return sum(self._lags.get(query, {}).values())

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        name = self._names[str(progress.runId)] = progress.name or str(progress.id)
        self._lags[name] = lag_of(progress)
        self._on_change(name, self._lags[name])

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._lags.pop(self._names.pop(str(event.runId), ""), None)


def _offsets(found: object) -> Offsets:
    """Offsets of topics, as text or parsed; nothing where they are of some other source."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except json.JSONDecodeError:
            return {}
    if not isinstance(found, dict) or not all(isinstance(partitions, dict) for partitions in found.values()):
        return {}
    try:
        return from_json(found)
    except ValueError:
        return {}
