"""Draws what each ready-made pipeline makes of its generated data: docs/pipelines/NAME.svg, from a real run.

python tools/draw_pipelines.py [NAME ...]
"""

from __future__ import annotations

import importlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from pyspark_zurau import session
from pyspark_zurau.cli.run import read_once
from pyspark_zurau.engine.locate import locate
from pyspark_zurau.engine.read import read_pipeline
from pyspark_zurau.engine.run import SETTINGS, Execution
from pyspark_zurau.engine.topics import create_missing
from pyspark_zurau.lake.compact import compact
from pyspark_zurau.pipelines.generated import produce
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets, start_offsets
from zurau.client.producer import Producer
from zurau.testing import Broker

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "pipelines"
WIDTH = 104
START_MS = 1_767_281_400_000
#: An SVG of its own: no fonts from elsewhere.
FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; white-space: pre; }}
{styles}</style>
<rect width="{width}" height="{height}" fill="#292929"/>
<g transform="translate({terminal_x}, {terminal_y})">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


@dataclass
class Stage:
    """A broker, a Spark session and a directory."""

    spark: SparkSession
    broker: Broker
    directory: Path
    undo: ExitStack

    def run(self, name: str, count: int, **parameters: str) -> None:
        maker = importlib.import_module(f"pyspark_zurau.pipelines.{'archive' if name == 'mirror' else name}.generate")
        made = maker.generate(count, 1, start_ms=START_MS, per_s=50.0, topics=maker.TOPICS)
        given = {"checkpoint": str(self.directory / name)} | parameters
        pipeline = read_once(read_pipeline(locate(name), given, bootstrap=self.broker.bootstrap))
        create_missing(pipeline)
        with Cluster(self.broker.bootstrap) as cluster, Producer(cluster) as producer:
            produce((record for _, record in made), producer)
        status = Execution(self.spark, pipeline).run(lambda: False, lambda _: None)
        assert status.state == "finished", status.reason

    def newest(self, topic: str) -> list[dict[str, Any]]:
        """The last record of every key."""
        found = {record.key: json.loads(record.value or b"{}") for record in read(self.broker.bootstrap, topic)}
        return list(found.values())


def draw_logs(stage: Stage) -> Table:
    stage.run("logs", 6000, lake=str(stage.directory / "lake-logs"))
    columns = ("window_start", "service", "requests", "errors", "error_rate", "p50_ms", "p95_ms", "p99_ms", "talkers")
    rows = sorted(stage.newest("logs-stats"), key=lambda row: (row["window_start"], row["service"]))[60:75]
    for row in rows:
        row["window_start"] = row["window_start"][11:19]
        row["talkers"] = ", ".join(f"{client['item']} ({client['count']})" for client in (row["talkers"] or [])[:2])
    return table("the topic logs-stats", columns, rows)


def draw_goals(stage: Stage) -> Table:
    stage.run("goals", 600)
    columns = ("position", "team", "played", "won", "drawn", "lost", "goals_for", "goals_against", "points")
    newest = stage.newest("goals-table")
    season = min(row["season"] for row in newest)
    rows = sorted((row for row in newest if row["season"] == season), key=lambda row: int(row["position"]))
    return table("the topic goals-table", columns, rows)


def draw_archive(stage: Stage) -> Table:
    lake = stage.directory / "lake"
    stage.run("archive", 10_000, lake=str(lake), batch="1000")
    before = {folder: len(list(folder.glob("*.parquet"))) for folder in sorted(lake.glob("*/*")) if "=" in folder.name}
    compact(lake)
    rows = [
        {
            "folder": str(folder.relative_to(lake)),
            "records": ds.dataset(folder).count_rows(),
            "files": count,
            "files_after_compact": len(list(folder.glob("*.parquet"))),
        }
        for folder, count in before.items()
    ]
    return table("a lake", ("folder", "records", "files", "files_after_compact"), rows)


def draw_serve(stage: Stage) -> Table:
    sys.path.insert(0, str(ROOT / "tests" / "pipeline"))
    import psycopg

    server = importlib.import_module("postgres_server").PostgresServer()
    stage.undo.callback(server.stop)
    stage.run("serve", 1000, dsn=server.dsn)
    columns = ("id", "customer", "state", "cents", "changed", "position")
    with psycopg.connect(server.dsn) as connection:
        found = connection.execute(
            "SELECT id, customer, state, cents, changed, position FROM orders ORDER BY id LIMIT 10"
        )
        rows = [dict(zip(columns, row, strict=True)) for row in found]
    return table("the table orders", columns, rows)


def draw_mirror(stage: Stage) -> Table:
    target = stage.undo.enter_context(Broker())
    stage.run("mirror", 2000, source=stage.broker.bootstrap, target=target.bootstrap, topics="orders,payments")
    rows = []
    for topic in ("orders", "payments"):
        original, copy = (list(read(place, topic)) for place in (stage.broker.bootstrap, target.bootstrap))
        rows.append({"topic": topic, "records": len(original), "copied": len(copy), "the_same": original == copy})
    return table("two clusters", ("topic", "records", "copied", "the_same"), rows)


def read(bootstrap: str, topic: str) -> Iterator[Any]:
    with Cluster(bootstrap) as cluster, Consumer(cluster) as consumer:
        partitions = cluster.partitions_of(topic)
        ends = end_offsets(cluster, partitions)
        consumer.assign(start_offsets(cluster, partitions))
        while any(consumer.positions[partition] < end for partition, end in ends.items()):
            for _, records, _ in consumer.poll():
                yield from records


def table(title: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> Table:
    drawn = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        is_number = isinstance(rows[0][column], int | float)
        drawn.add_column(column.replace("_", " "), justify="right" if is_number else "left")
    for row in rows:
        drawn.add_row(*(str(row[column]) for column in columns))
    return drawn


def save(name: str, drawn: Table) -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system=None)
    console.print(drawn)
    PAGES.mkdir(exist_ok=True)
    drawing = console.export_svg(code_format=FORMAT, unique_id=name)
    # Every line is told where to be cut off, by a shape that this format leaves out.
    (PAGES / f"{name}.svg").write_text(re.sub(r' clip-path="[^"]*"', "", drawing), encoding="utf-8")


DRAWINGS: dict[str, Callable[[Stage], Table]] = {
    "logs": draw_logs,
    "goals": draw_goals,
    "archive": draw_archive,
    "serve": draw_serve,
    "mirror": draw_mirror,
}


def main() -> None:
    spark = session("drawing", master="local[2]", settings=SETTINGS | {"spark.log.level": "OFF"})
    for name in sys.argv[1:] or DRAWINGS:
        with ExitStack() as undo:
            directory = Path(undo.enter_context(tempfile.TemporaryDirectory()))
            broker = undo.enter_context(Broker(num_partitions=2))
            save(name, DRAWINGS[name](Stage(spark, broker, directory, undo)))
            print(f"docs/pipelines/{name}.svg")
    spark.stop()


if __name__ == "__main__":
    main()
