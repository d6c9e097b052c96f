"""What `zurau pipeline preview` shows, before anything runs."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.preview import preview

pytestmark = pytest.mark.xdist_group("spark")

BODY = """
[sources.orders]
topics = ["<<orders>>"]
format = "json"
schema = "id INT, shop STRING"
dead_letter = "fail"
options.maxOffsetsPerTrigger = 5
[steps.counts]
sql = "SELECT shop, count(*) AS n FROM orders GROUP BY shop ORDER BY shop"
[steps.wrong]
sql = "SELECT idd FROM orders"
[sinks.out]
from = "counts"
kind = "console"
mode = "complete"
"""


@pytest.fixture
def show(spark, declare, new_topic, send, produce):
    """Previews of a pipeline over four orders and something else."""
    topic = new_topic(2)
    for number, shop in enumerate("abab"):
        send(topic, {"id": number, "shop": shop}, partition=number % 2)
    produce(topic, b"broken", partition=0)
    pipeline = declare(BODY, orders=topic)
    return lambda only=None, limit=20, records=100: list(
        preview(spark.newSession(), pipeline, only, limit=limit, records=records)
    )


def test_sources_and_steps_show_their_rows_and_what_could_not_be_read(show, tmp_path):
    orders, counts, wrong = show()
    assert (orders.columns, len(orders.rows)) == (("id", "shop"), 4)
    assert str(orders.judged).startswith("4 good, 1 dead (the value is not JSON; for example ")
    assert [tuple(row.values()) for row in counts.rows] == [("a", 2), ("b", 2)]
    assert "name `idd` cannot be resolved" in wrong.reason
    assert not (tmp_path / "checkpoint").exists()


def test_a_preview_takes_the_newest_records_and_one_step_if_told_so(show):
    (counts,) = show("counts", records=2)
    assert (counts.name, [row["n"] for row in counts.rows]) == ("counts", [1])
