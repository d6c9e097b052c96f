"""What `zurau pipeline check` finds without reading a record, and how it says it."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.check import check_places, check_queries
from pyspark_zurau.engine.problems import Problems
from pyspark_zurau.engine.topics import create_missing

pytestmark = pytest.mark.xdist_group("spark")

BODY = """
[sources.orders]
topics = ["<<orders>>"]
format = "json"
schema = "<<schema>>"
dead_letter = "<<dead>>"
[steps.large]
sql = "<<sql>>"
[steps.larger]
sql = "SELECT * FROM large"
[sinks.out]
from = "larger"
<<sink>>
"""
FINE = {"schema": "id INT, shop STRING", "sql": "SELECT * FROM orders WHERE id > 1", "sink": 'kind = "console"'}


@pytest.fixture
def check(spark, declare):
    """The problems that Spark finds in the pipeline."""

    def check(**words: str) -> list[str]:
        problems = Problems("file")
        check_queries(spark.newSession(), declare(BODY, **{"orders": "o", "dead": "d", **FINE, **words}), problems)
        return [str(problem) for problem in problems.found]

    return check


@pytest.fixture
def places(declare):
    """The problems that lie outside the file and outside Spark."""

    def places(**words: str) -> list[str]:
        problems = Problems("file")
        missing = check_places(declare(BODY, **{**FINE, **words}), problems)
        return [str(problem) for problem in (*missing, *problems.found)]

    return places


def test_a_good_pipeline_has_no_problems(check):
    assert check() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"sql": "SELECT * FROM order_"}, "[steps.large] sql: The table or view `order_` cannot be found."),
        (
            {"sql": "SELECT idd FROM orders"},
            "[steps.large] sql: A column, variable, or function parameter with name `idd`",
        ),
        ({"sql": "SELEC 1"}, "[steps.large] sql: Syntax error at or near 'SELEC'"),
        (
            {"sink": 'kind = "parquet"\npath = "lake"\npartition_by = ["shp"]'},
            "[sinks.out] partition_by: larger has no column 'shp'; did you mean shop?",
        ),
        (
            {"sink": 'kind = "topic"\ntopic = "t"\nformat = "raw"'},
            "[sinks.out]: there is no column value to write",
        ),
        ({"sink": 'kind = "topic"\ntopic = "t"\nkey = "shp"'}, "[sinks.out] key: larger has no column 'shp'"),
        ({"sql": "SELECT shop, count(*) FROM orders GROUP BY shop"}, "[sinks.out] mode: "),
        ({"sink": 'kind = "console"\nmode = "complete"'}, "[sinks.out] mode: "),
        ({"sql": "SELECT 1 AS value"}, "[sinks.out] from: larger reads no topic: there is nothing to stream"),
    ],
)
def test_a_mistake_in_a_query_is_told_once_and_with_its_place(check, words, message):
    (problem,) = check(**words)
    assert problem.startswith(message)
    assert "\n" not in problem


def test_what_spark_says_about_columns_has_the_ones_there_are(check):
    assert "`id`" in check(sql="SELECT idd FROM orders")[0]


def test_missing_topics_are_told_and_can_be_made(declare, places, new_topic, unique):
    words = {"orders": unique("orders"), "dead": unique("dead")}
    told = places(**words)
    assert [problem.partition(";")[0].rpartition(" at ")[0] for problem in told] == [
        f"[sources.orders] topics: there is no topic '{words['orders']}'",
        f"[sources.orders] dead_letter: there is no topic '{words['dead']}'",
    ]
    create_missing(declare(BODY, **FINE, **words))
    assert places(**words) == []


def test_a_path_that_cannot_be_written_to_is_told(places, new_topic, tmp_path):
    (tmp_path / "file").write_text("")
    sink = f'kind = "parquet"\npath = "{tmp_path}/file/lake"'
    (problem,) = places(orders=new_topic(), dead=new_topic(), sink=sink)
    assert problem == f"[sinks.out] path: {tmp_path}/file is not a directory"


def test_a_database_that_cannot_be_reached_is_told(places, new_topic):
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'zurau[postgres]'")
    sink = 'kind = "postgres"\ndsn = "postgresql://nobody@127.0.0.1:1/x"\ntable = "t"'
    (problem,) = places(orders=new_topic(), dead=new_topic(), sink=sink)
    assert problem.startswith("[sinks.out] dsn: Postgres cannot be reached: ")


def test_a_table_without_the_columns_and_the_index_is_told(check, postgres, unique):
    import psycopg

    table = unique("t").replace("-", "_")
    with psycopg.connect(postgres) as connection:
        connection.execute(f"CREATE TABLE {table} (id INT)")
    sink = f'kind = "postgres"\ndsn = "{postgres}"\ntable = "{table}"\nkey = "id"'
    no_index = f"the table {table} has no unique index on (id), which its key needs"
    assert check(sink=sink) == [
        f"[sinks.out] table: the table {table} has no column 'shop'; it has id",
        f"[sinks.out] table: {no_index}; make one with CREATE UNIQUE INDEX ON {table} (id)",
    ]
