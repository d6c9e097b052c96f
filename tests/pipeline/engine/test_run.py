"""Pipelines run from their topics to their sinks: restarts, dead letters, steps, failures."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

pytestmark = pytest.mark.xdist_group("spark")

LAKE = """
[sources.orders]
topics = "<<orders>>"
format = "json"
schema = "id INT NOT NULL, shop STRING"
record = ["offset"]
dead_letter = "<<dead>>"

[sinks.lake]
from = "orders"
kind = "parquet"
path = "<<directory>>/lake"
partition_by = "shop"
"""


def lake(directory) -> list[dict]:
    return sorted(pq.read_table(directory / "lake").to_pylist(), key=lambda row: row["id"])


def values(records) -> list[bytes]:
    return [bytes(record.value) for _, record in records]


def test_rows_and_dead_letters_arrive_once_each_over_several_runs(
    declare, run, new_topic, send, produce, contents, tmp_path
):
    orders, dead = new_topic(2), new_topic()
    pipeline = declare(LAKE, orders=orders, dead=dead)
    for round_ in range(3):
        send(orders, {"id": round_, "shop": "a"}, partition=round_ % 2)
        produce(orders, b"broken %d" % round_)
        status = run(pipeline)
        assert status.state == "finished", status.reason
    assert [(row["id"], row["shop"]) for row in lake(tmp_path)] == [(0, "a"), (1, "a"), (2, "a")]
    assert values(contents(dead)) == [b"broken 0", b"broken 1", b"broken 2"]
    assert {query.name: query.batch_id for query in status.queries} == {"orders dead letters": 2, "lake": 2}


def test_a_lake_is_plain_files_in_plain_directories(declare, run, new_topic, send, tmp_path):
    orders = new_topic()
    send(orders, {"id": 1, "shop": "a b"}, {"id": 2})
    run(declare(LAKE, orders=orders, dead=new_topic()))
    folders = {file.parent.name for file in (tmp_path / "lake").rglob("*.parquet")}
    assert folders == {"shop=a b", "shop=__HIVE_DEFAULT_PARTITION__"}
    assert {path.name for path in (tmp_path / "lake").iterdir()} == folders | {".staging"}


def test_steps_are_sql_over_sources_and_earlier_steps(declare, run, new_topic, send, contents):
    orders, out = new_topic(), new_topic()
    send(orders, {"id": 1, "shop": "a"}, {"id": 2, "shop": "b"}, {"id": 3, "shop": "a"})
    body = """
    [sources.orders]
    topics = ["<<orders>>"]
    format = "json"
    schema = "id INT, shop STRING"
    dead_letter = "fail"
    [steps.large]
    sql = "SELECT * FROM orders WHERE id > 1"
    [steps.counts]
    sql = "SELECT shop, count(*) AS n FROM large GROUP BY shop"
    [sinks.out]
    from = "counts"
    kind = "topic"
    topic = "<<out>>"
    key = "shop"
    mode = "update"
    """
    assert run(declare(body, orders=orders, out=out)).state == "finished"
    found = {bytes(record.key): json.loads(record.value) for _, record in contents(out)}
    assert found == {b"a": {"shop": "a", "n": 1}, b"b": {"shop": "b", "n": 1}}


def test_a_step_may_be_a_function_of_the_users(declare, run, new_topic, produce, contents, tmp_path):
    words, out = new_topic(), new_topic()
    produce(words, b"one", b"two")
    (tmp_path / "shout.py").write_text(
        "from pyspark.sql.functions import udf\n\n"
        "def louder(text):\n    return text.upper()\n\n"
        "def shout(rows, mark):\n"
        "    return rows.select(udf(louder)('value').alias('value')).selectExpr(f\"value || '{mark}' AS value\")\n"
    )
    body = """
    [sources.words]
    topics = "<<words>>"
    format = "text"
    dead_letter = "fail"
    [steps.loud]
    python = "shout.py:shout"
    inputs = ["words"]
    arguments = {mark = "!"}
    [sinks.out]
    from = "loud"
    kind = "topic"
    format = "raw"
    topic = "<<out>>"
    """
    assert run(declare(body, words=words, out=out)).state == "finished"
    assert values(contents(out)) == [b"ONE!", b"TWO!"]


def test_a_query_is_started_again_when_the_machine_was_too_busy_to_start_python(
    declare, run, new_topic, produce, contents, tmp_path
):
    words, out = new_topic(), new_topic()
    produce(words, b"one", b"two")
    (tmp_path / "busy.py").write_text(
        "from pathlib import Path\n\nfrom pyspark.sql.functions import udf\n\n"
        f"TRIED = Path({str(tmp_path / 'tried')!r})\n\n"
        "def pass_at_last(text):\n"
        "    if not TRIED.exists():\n"
        "        TRIED.touch()\n"
        "        raise OSError('\\nCaused by: java.net.SocketTimeoutException: Timed out')  # as Spark tells it\n"
        "    return text\n\n"
        "def busy(rows):\n"
        "    return rows.select(udf(pass_at_last)('value').alias('value'))\n"
    )
    body = """
    [sources.words]
    topics = "<<words>>"
    format = "text"
    dead_letter = "fail"
    [steps.busy]
    python = "busy.py:busy"
    inputs = ["words"]
    [sinks.out]
    from = "busy"
    kind = "topic"
    format = "raw"
    topic = "<<out>>"
    """
    assert run(declare(body, words=words, out=out)).state == "finished"
    assert (tmp_path / "tried").exists()
    assert values(contents(out)) == [b"one", b"two"]


def test_a_raw_source_keeps_records_as_they_are(declare, run, new_topic, produce, contents):
    here, there = new_topic(2), new_topic(2)
    produce(here, b"a", None, key=b"k", partition=1, headers=[("h", b"x")])
    body = """
    [sources.records]
    topics = "<<here>>"
    format = "raw"
    [steps.moved]
    sql = "SELECT key, value, partition, headers FROM records"
    [sinks.copy]
    from = "moved"
    kind = "topic"
    format = "raw"
    topic = "<<there>>"
    """
    assert run(declare(body, here=here, there=there)).state == "finished"
    found = [(place.partition, record.key, record.value, [*record.headers]) for place, record in contents(there)]
    assert found == [(1, b"k", b"a", [("h", b"x")]), (1, b"k", None, [("h", b"x")])]


def test_a_failing_query_ends_the_pipeline_with_its_reason(declare, run, new_topic, send, tmp_path):
    orders = new_topic()
    send(orders, {"id": "one"})
    failing = LAKE.replace('dead_letter = "<<dead>>"', 'dead_letter = "fail"')
    status = run(declare(failing, orders=orders))
    assert status.state == "failed"
    assert status.reason == (
        f"lake: source orders: {orders} partition 0 offset 0: column id: one is not int;"
        " name a topic in dead_letter to go on past such records"
    )


def test_a_console_sink_draws_a_table_of_each_batch(declare, run, new_topic, send, capsys):
    orders = new_topic()
    send(orders, *({"id": number, "shop": "a"} for number in range(3)))
    body = LAKE.partition("[sinks.lake]")[0] + '[sinks.screen]\nfrom = "orders"\nkind = "console"\nrows = 2\n'
    run(declare(body, orders=orders, dead=new_topic()))
    shown = capsys.readouterr().out
    assert "screen: batch 0, the first 2 rows" in shown
    assert [word in shown for word in ("id", "shop", "_offset")] == [True] * 3


def test_good_and_dead_values_are_counted_with_the_reason_and_an_example(declare, run, new_topic, send, produce):
    orders = new_topic()
    send(orders, {"id": 1, "shop": "a"}, {"id": 2, "shop": "b"})
    produce(orders, b"broken", b"broken too", b"and this")
    status = run(declare(LAKE, orders=orders, dead=new_topic()))
    judged = next(query.judged for query in status.queries if query.name == "orders dead letters")
    assert (judged.good, judged.dead) == (2, 3)
    assert f"{orders}-0 offset 2: 'broken'" in str(judged)


def test_too_many_dead_letters_stop_the_pipeline(declare, run, new_topic, send, produce):
    orders = new_topic()
    send(orders, {"id": 1, "shop": "a"})
    produce(orders, b"broken")
    limited = LAKE.replace("record =", "fail_on_dead = 0.25\nrecord =")
    status = run(declare(limited, orders=orders, dead=new_topic()))
    assert status.state == "failed"
    assert "source orders: 1 good, 1 dead" in status.reason


def test_rows_behind_the_watermark_are_counted(declare, run, new_topic, send):
    events, out = new_topic(), new_topic()
    body = """
    [sources.events]
    topics = ["<<events>>"]
    format = "json"
    schema = "at TIMESTAMP, n INT"
    dead_letter = "fail"
    watermark = {column = "at", delay = "1 second"}
    [steps.counts]
    sql = "SELECT window(at, '1 minute').start AS start, count(*) AS n FROM events GROUP BY window(at, '1 minute')"
    [sinks.out]
    from = "counts"
    kind = "topic"
    topic = "<<out>>"
    """
    pipeline = declare(body, events=events, out=out)
    send(events, {"at": "2026-01-06T12:00:00Z", "n": 1})
    run(pipeline)
    send(events, {"at": "2026-01-06T10:00:00Z", "n": 2}, {"at": "2026-01-06T10:05:00Z", "n": 3})
    status = run(pipeline)
    assert [query.late_rows for query in status.queries] == [2]


def test_windows_over_a_log_close_by_the_watermark_of_a_step(declare, run, new_topic, produce, contents):
    logs, out = new_topic(), new_topic()
    lines = ("Dec 10 06:55:46 a down", "Dec 10 06:55:48 b down", "Dec 10 06:58:00 a up", "Dec 10 07:30:00 a up")
    for line in lines:
        produce(logs, line.encode())
    body = r"""
    [sources.logs]
    topics = ["<<logs>>"]
    format = "regex"
    pattern = '(?<time>\w{3} [ \d]\d [\d:]{8}) (?<host>\S+) (?<state>\w+)'
    time_format = {time = "syslog 2015"}
    dead_letter = "fail"
    [steps.timed]
    sql = "SELECT time AS at, state FROM logs"
    watermark = {column = "at", delay = "1 minute"}
    [steps.down]
    sql = "SELECT window.start AS start, count_if(state = 'down') AS n FROM timed GROUP BY window(at, '5 minutes')"
    [sinks.out]
    from = "down"
    kind = "topic"
    topic = "<<out>>"
    """
    assert run(declare(body, logs=logs, out=out)).state == "finished"
    assert [json.loads(record.value) for _, record in contents(out)] == [{"start": "2015-12-10T06:55:00.000Z", "n": 2}]


@pytest.fixture
def count_orders(declare, run, new_topic, send):
    """Runs some orders through what is behind their source, and gives how its only query did."""
    source = """
    [sources.orders]
    topics = ["<<orders>>"]
    format = "json"
    schema = "id INT"
    dead_letter = "fail"
    """

    def count_orders(count, behind):
        orders = new_topic()
        send(orders, *({"id": number} for number in range(count)))
        (query,) = run(declare(source + behind, orders=orders)).queries
        return query

    return count_orders


def test_a_source_that_is_read_twice_is_counted_once(count_orders):
    out = count_orders(
        10,
        """
    [steps.twice]
    sql = "SELECT id FROM orders UNION ALL SELECT -id AS id FROM orders"
    [sinks.out]
    from = "twice"
    kind = "console"
    """,
    )
    assert out.rows == 10


def test_a_batch_takes_no_more_than_the_cores_bear_unless_the_file_says_so(count_orders, spark, monkeypatch):
    from pyspark_zurau.engine import sources

    monkeypatch.setattr(sources, "PER_CORE", 3)
    out = count_orders(
        20,
        """
    [sinks.out]
    from = "orders"
    kind = "parquet"
    path = "<<directory>>/lake"
    """,
    )
    most = 3 * spark.sparkContext.defaultParallelism
    assert (out.rows, out.batch_id) == (20, 19 // most)
