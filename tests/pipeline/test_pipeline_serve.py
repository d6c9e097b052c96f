"""Changes of a topic in a table of Postgres: upserts, deletes, and nothing twice."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'zurau[postgres]'")

from pyspark_zurau.pipelines.generated import BROKEN
from pyspark_zurau.pipelines.serve.generate import expect, make_orders, render

pytestmark = pytest.mark.xdist_group("spark")


def waiting_tables(dsn: str) -> set[str]:
    """Where rows wait; tests of the sink alone leave some."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'zurau_waiting_%'").fetchall()
    return {name for (name,) in found}


def test_the_table_has_the_newest_state_of_every_key(postgres, new_topic, unique, generate, run_ready_made, contents):
    orders = list(make_orders(900, seed=3, start_ms=1_767_225_600_000))
    topics, table, dead = {"orders": new_topic(2)}, unique("t").replace("-", "_"), unique("dead")
    before = waiting_tables(postgres)
    for part in (orders[:500], orders[500:]):
        generate(render(order, topics) for order in part)
        run_ready_made("serve", **topics, dsn=postgres, table=table, dead=dead)
    with psycopg.connect(postgres) as connection:
        found = connection.execute(f"SELECT id, customer, state, cents FROM {table}").fetchall()
    expected = expect(orders)
    assert sorted(found) == sorted((order.id, order.customer, order.state, order.cents) for order in expected.values())
    assert waiting_tables(postgres) == before
    assert len(contents(dead)) == sum(order.kind == BROKEN for order in orders)
