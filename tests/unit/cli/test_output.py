"""Tables for people, and what programs get instead."""

from __future__ import annotations

import json

from zurau.cli.options import Format
from zurau.cli.output import counted, show_rows

ROWS = [{"topic": "orders", "in_sync": [1, 2], "lag": None}, {"topic": "a,b", "in_sync": [], "lag": 3}]
COLUMNS = ("topic", "in_sync", "lag")


def test_a_plain_table_is_in_columns(capsys):
    show_rows(ROWS, COLUMNS, Format.TABLE, title="two topics")
    assert capsys.readouterr().out == "two topics\nTOPIC   IN SYNC  LAG\norders  1,2      -\na,b              3\n"


def test_json_keeps_types_and_keys(capsys):
    show_rows(ROWS, COLUMNS, Format.JSON)
    assert json.loads(capsys.readouterr().out) == ROWS


def test_csv_quotes_what_needs_it(capsys):
    show_rows(ROWS, COLUMNS, Format.CSV)
    assert capsys.readouterr().out == 'topic,in_sync,lag\norders,"1,2",\n"a,b",,3\n'


def test_no_rows_are_an_empty_list(capsys):
    show_rows([], COLUMNS, Format.JSON)
    assert capsys.readouterr().out == "[]\n"


def test_a_terminal_gets_a_drawn_table(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_rows(ROWS, COLUMNS, Format.TABLE)
    drawn = capsys.readouterr().out
    assert "orders" in drawn
    assert "─" in drawn


def test_one_is_not_many():
    assert [counted(number, "record") for number in (0, 1, 2)] == ["0 records", "1 record", "2 records"]
