"""What the pipeline has made so far: read from its result topics and its lake, as anybody could."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from rich.box import SIMPLE_HEAD
from rich.table import Table

from zurau.client.admin import Admin
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.errors import ClientError, UnknownTopic

TOPICS = ("stats", "alerts", "sessions", "dead")
SERVICES = ("www", "api", "checkout", "search", "mailer")
WINDOWS_SHOWN = 5


class Results:
    """A thread that follows the result topics. `newest` has the last word on every window."""

    def __init__(self, bootstrap: str, prefix: str, lake: Path) -> None:
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._lake = lake
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.newest: dict[tuple[str, int], dict[str, Any]] = {}
        self.records: dict[str, list[bytes]] = defaultdict(list)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def counted(self) -> int:
        """Requests in all windows."""
        return sum(row["requests"] for row in self.newest.values())

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(value) for value in self.records[name]]

    def lake_rows(self, which: ds.Expression | None = None) -> int:
        return ds.dataset(self._lake, format="parquet").count_rows(filter=which) if self._lake.is_dir() else 0

    def table(self, title: str) -> Table:
        """Requests, errors and the slowest twentieth, of the newest windows."""
        table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
        table.add_column("window")
        for service in SERVICES:
            table.add_column(service, justify="right")
        starts = sorted({start for _, start in self.newest})
        for start in starts[-WINDOWS_SHOWN:]:
            cells = [_cell(self.newest.get((service, start))) for service in SERVICES]
            table.add_row(datetime.fromtimestamp(start).strftime("%H:%M:%S"), *cells)
        return table

    def _follow(self) -> None:
        with Cluster(self._bootstrap) as cluster, Consumer(cluster) as consumer:
            while not self._is_over.is_set():
                try:
                    if not consumer.positions:
                        consumer.assign(self._positions(cluster))
                    for partition, records, _ in consumer.poll(0.2):
                        for record in records:
                            self._take(partition.topic.rpartition("-")[2], record.value or b"")
                except UnknownTopic:
                    cluster.forget([f"{self._prefix}-{name}" for name in TOPICS])
                    self._is_over.wait(0.2)
                except ClientError:  # the broker is down, and will be back
                    self._is_over.wait(0.2)

    def _positions(self, cluster: Cluster) -> dict[Any, int]:
        admin = Admin(cluster)
        for name in TOPICS:
            admin.describe_topic(f"{self._prefix}-{name}")
        return {partition: 0 for name in TOPICS for partition in cluster.partitions_of(f"{self._prefix}-{name}")}

    def _take(self, name: str, value: bytes) -> None:
        self.records[name].append(value)
        if name == "stats":
            row = json.loads(value)
            self.newest = {**self.newest, (row["service"], second(row["window_start"])): row}


def second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    style = "[red]" if row["error_rate"] >= 0.2 else "[default]"
    return f"{row['requests']} req  {style}{row['errors']:2} err[/]  {row['p95_ms']:4} ms"
