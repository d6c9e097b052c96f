"""What is known of a running pipeline, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Callable

from pyspark_zurau.engine.progress import RUNNING, Judged, PipelineStatus, QueryStatus

Value = Callable[[QueryStatus], float | None]
#: Name, kind, what it says, and where it comes from.
METRICS: tuple[tuple[str, str, str, Value], ...] = (
    ("rows_total", "counter", "Rows read since the pipeline was started.", lambda query: query.rows),
    ("rows_per_second", "gauge", "Rows read in a second, in the last batch.", lambda query: query.rows_per_s),
    ("lag_records", "gauge", "Records that are there and not read yet.", lambda query: query.lag),
    ("batches_total", "counter", "Batches since the checkpoint was made.", lambda query: query.batch_id + 1),
    (
        "batch_seconds",
        "gauge",
        "How long the last batch took.",
        lambda query: None if query.batch_ms is None else query.batch_ms / 1000,
    ),
    ("state_rows", "gauge", "Rows of state.", lambda query: query.state_rows),
    ("state_bytes", "gauge", "Memory of the state.", lambda query: query.state_bytes),
    ("late_rows_total", "counter", "Rows that came after the watermark had passed.", lambda query: query.late_rows),
    ("good_values_total", "counter", "Values that could be read.", lambda query: _judged(query).good),
    (
        "dead_values_total",
        "counter",
        "Values that could not be read.",
        lambda query: _judged(query).dead,
    ),
)


def in_prometheus(status: PipelineStatus) -> str:
    """The text format, version 0.0.4."""
    labels = f'pipeline="{_escaped(status.pipeline)}"'
    lines = [
        "# HELP zurau_pipeline_up Whether the pipeline is running.",
        "# TYPE zurau_pipeline_up gauge",
        f"zurau_pipeline_up{{{labels}}} {int(status.state == RUNNING)}",
    ]
    for name, kind, what, value_of in METRICS:
        full = f"zurau_pipeline_{name}"
        found = [(query.name, value) for query in status.queries if (value := value_of(query)) is not None]
        if found:
            lines += [f"# HELP {full} {what}", f"# TYPE {full} {kind}"]
            lines += [f'{full}{{{labels},query="{_escaped(query)}"}} {value}' for query, value in found]
    return "\n".join(lines) + "\n"


def _judged(query: QueryStatus) -> Judged:
    return query.judged or Judged()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
