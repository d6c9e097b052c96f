"""Moments as people write them."""

from __future__ import annotations

import pytest
import typer

from zurau.cli.times import format_time, now_ms, parse_time


def test_iso_with_a_zone_is_that_moment():
    assert parse_time("1970-01-01T00:00:10Z", "--x") == 10_000
    assert parse_time("1970-01-01T01:00:00+01:00", "--x") == 0


@pytest.mark.parametrize(("text", "ago_ms"), [("250ms", 250), ("10s", 10_000), ("10m", 600_000), ("2d", 172_800_000)])
def test_a_number_with_a_unit_is_that_long_ago(text, ago_ms):
    before = now_ms()
    parsed = parse_time(text, "--x")
    assert before - ago_ms <= parsed <= now_ms() - ago_ms


@pytest.mark.parametrize("text", ["", "soon", "10", "10y", "2026-13-01"])
def test_what_is_no_time_is_wrong_usage_with_an_example(text):
    with pytest.raises(typer.BadParameter, match="10m for ten minutes ago"):
        parse_time(text, "--x")


def test_a_timestamp_is_printed_to_the_millisecond():
    assert format_time(1_767_225_600_001) == "2026-01-01T00:00:00.001Z"
    assert format_time(-1) is None


def test_a_time_before_all_others_is_the_first():
    assert parse_time("99999999999999w", "--from-time") == 0
