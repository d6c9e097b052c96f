"""A pipeline that was changed does not go on from an old checkpoint without a word."""

from __future__ import annotations

import re
import shlex

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.fingerprint import compare_with_checkpoint
from pyspark_zurau.engine.locate import as_typed, locate, ready_made
from zurau.errors import SettingsError

PIPELINE = """
name = "shop"
bootstrap = "127.0.0.1:9092"
checkpoint = "{checkpoint}"

[sources.orders]
topics = ["orders"]
format = "json"
schema = "id INT, shop STRING"
dead_letter = "orders-dead"

[steps.large]
sql = "SELECT * FROM orders WHERE id > 10"

[steps.counted]
python = "count.py:count"
inputs = ["large"]

[sinks.out]
from = "counted"
kind = "console"
"""


@pytest.fixture
def ran(declare, tmp_path):
    """Declares the pipeline with something replaced, after its checkpoint was used; None: as it was."""
    text = PIPELINE.format(checkpoint=tmp_path / "checkpoint")
    (tmp_path / "count.py").write_text("def count(rows): return rows")
    compare_with_checkpoint(declare(text), accept_changes=False)
    commits = tmp_path / "checkpoint" / "out" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").touch()
    return lambda old="", new="": declare(text.replace(old, new))


def test_the_same_pipeline_goes_on(ran):
    compare_with_checkpoint(ran(), accept_changes=False)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("id > 10", "id > 20", "steps.large: sql"),
        ("id INT", "id BIGINT", "sources.orders: schema"),
        ('["orders"]', '["orders", "returns"]', "sources.orders: topics"),
        ('from = "counted"', 'from = "large"', "sinks.out: from"),
    ],
)
def test_what_changed_is_named_with_the_ways_out(ran, old, new, named):
    with pytest.raises(SettingsError) as refused:
        compare_with_checkpoint(ran(old, new), accept_changes=False)
    for words in (named, "--accept-changes", "zurau pipeline reset ", "another checkpoint"):
        assert words in str(refused.value)


def test_the_command_that_begins_anew_can_be_typed_as_it_is_told(ran):
    changed = ran("id > 10", "id > 20")
    with pytest.raises(SettingsError) as refused:
        compare_with_checkpoint(changed, accept_changes=False)
    (told,) = re.findall(r"`zurau pipeline reset (.*?)`", str(refused.value))
    assert locate(*shlex.split(told)) == changed.file


@pytest.mark.parametrize("name", ready_made())
def test_a_ready_made_pipeline_is_told_by_its_name(name):
    assert as_typed(locate(name)) == name


def test_the_code_of_a_python_step_counts(ran, tmp_path):
    (tmp_path / "count.py").write_text("def count(rows): return rows.limit(1)")
    with pytest.raises(SettingsError, match=r"steps\.counted: code"):
        compare_with_checkpoint(ran(), accept_changes=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("id > 10", "id   >  10"),
        ("127.0.0.1:9092", "127.0.0.1:9093"),
        ('dead_letter = "orders-dead"', 'dead_letter = "orders-dead"\nfail_on_dead = 0.1'),
        ("[sinks.out]", '[sinks.more]\nfrom = "orders"\nkind = "console"\n[sinks.out]'),
    ],
    ids=["white space", "address", "limit", "another sink"],
)
def test_what_does_not_change_the_rows_may_change(ran, old, new):
    compare_with_checkpoint(ran(old, new), accept_changes=False)


def test_an_accepted_change_is_the_new_truth(ran):
    compare_with_checkpoint(ran("id > 10", "id > 20"), accept_changes=True)
    compare_with_checkpoint(ran("id > 10", "id > 20"), accept_changes=False)
    with pytest.raises(SettingsError):
        compare_with_checkpoint(ran(), accept_changes=False)


def test_until_a_batch_is_done_a_pipeline_may_change(ran, tmp_path):
    (tmp_path / "checkpoint" / "out" / "commits" / "0").unlink()
    compare_with_checkpoint(ran("id > 10", "id > 20"), accept_changes=False)
