"""What Spark reports of a query, added up into what people are told."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.cli.screen import notes
from pyspark_zurau.engine.metrics import in_prometheus
from pyspark_zurau.engine.progress import QueryStatus, first_status, follow, publish, read_status


def batch(number: int, *, late: int = 0, good: int = 0, dead: int = 0, reason: str | None = None):
    """One batch as Spark's progress describes it."""
    value = base64.b64encode(b"broken").decode()
    example = {"topic": "orders", "partition": 0, "offset": 10 * number, "value": value} if dead else None
    progress = {
        "batchId": number,
        "timestamp": "2026-01-06T00:00:00.000Z",
        "durationMs": {"addBatch": 1, "triggerExecution": 2},
        "sources": [],
        "stateOperators": [{"numRowsDroppedByWatermark": late}],
        "observedMetrics": {"zurau_judged": {"good": good, "dead": dead, "reason": reason, "example": example}},
    }
    return SimpleNamespace(json=json.dumps(progress))


def after(*batches) -> QueryStatus:
    query = SimpleNamespace(recentProgress=list(batches), status={"isTriggerActive": False})
    return follow(QueryStatus("orders dead letters", "topic"), query, Counter())


def test_good_and_dead_values_are_added_up_over_batches():
    judged = after(batch(0, good=5, dead=1, reason="a"), batch(1, good=7, dead=2, reason="b")).judged
    assert (judged.good, judged.dead, judged.dead_rate) == (12, 3, 0.2)


def test_the_reason_is_that_of_the_worst_batch_and_the_example_the_first_one():
    judged = after(batch(1, dead=1, reason="a"), batch(2, dead=9, reason="b"), batch(3, dead=2, reason="c")).judged
    assert str(judged) == "0 good, 12 dead (b; for example orders-0 offset 10: 'broken')"


def test_rows_that_came_too_late_are_counted_and_told():
    status = after(batch(0, late=3), batch(1, late=4))
    assert status.late_rows == 7
    assert "at least 7 rows came later than the watermark" in " ".join(notes(status))


def test_a_query_without_trouble_has_no_word_of_late_rows():
    assert notes(after(batch(0, good=5))) == ["5 good, 0 dead"]


def test_what_is_published_is_read_back(tmp_path):
    status = first_status("shop", str(tmp_path), {})
    publish(replace(status, queries=(after(batch(0, dead=1)),)))
    assert read_status(str(tmp_path)).queries[0].judged.dead == 1


def test_prometheus_reads_what_is_known_of_each_query():
    status = replace(first_status('sh"op', "/c", {}), queries=(after(batch(3, good=5, dead=1)),))
    lines = in_prometheus(status).splitlines()
    assert 'zurau_pipeline_up{pipeline="sh\\"op"} 1' in lines
    assert 'zurau_pipeline_dead_values_total{pipeline="sh\\"op",query="orders dead letters"} 1' in lines
    assert 'zurau_pipeline_batch_seconds{pipeline="sh\\"op",query="orders dead letters"} 0.002' in lines
    assert "# TYPE zurau_pipeline_rows_total counter" in lines
    assert not any("lag_records" in line for line in lines), "it is not known yet"
