"""Topics into a lake, small files into large ones, and back into topics: what comes out is what went in."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'zurau[delta]'")

from pyspark_zurau.lake.compact import compact
from pyspark_zurau.lake.replay import Wanted, replay
from pyspark_zurau.pipelines.archive.generate import generate as make_records

pytestmark = pytest.mark.xdist_group("spark")

START_MS = 1_767_225_600_000


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_topics_go_to_a_lake_and_come_back_as_they_were(
    form, new_topic, unique, generate, run_ready_made, contents, cluster, tmp_path
):
    first, second = new_topic(3, word="a"), new_topic(1, word="b")
    made = make_records(900, 4, start_ms=START_MS, per_s=50.0, topics={"topics": f"{first},{second}"})
    records = [record for _, record in made]
    lake = tmp_path / "lake"
    chosen = {"topics": f"{first},{second}", "lake": str(lake), "format": form, "batch": "250"}
    generate(records[:600])
    run_ready_made("archive", **chosen)
    generate(records[600:])
    run_ready_made("archive", **chosen)

    outcome = compact(lake)
    assert outcome.files_after < outcome.files_before
    for topic in (first, second):
        again = unique("again")
        written = replay(lake, Wanted(topic), cluster, again)
        assert written == sum(record.topic == topic for record in records)
        kept = [(partition.partition, record._replace(offset=0)) for partition, record in contents(topic)]
        assert [(partition.partition, record._replace(offset=0)) for partition, record in contents(again)] == kept
