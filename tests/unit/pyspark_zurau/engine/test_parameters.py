"""Parameters: what a user may choose, and what a file does with it."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.parameters import fill_in
from pyspark_zurau.engine.problems import BadPipeline, Problems

TEXT = """
name = "shop"
[parameters]
topics = ["orders"]
rows = {default = 5, doc = "How many."}
dead = {doc = "Where the dead go."}
[sources.orders]
topics = "${topics}"
format = "text"
dead_letter = "${dead}-dead"
[sinks.out]
from = "orders"
kind = "console"
rows = "${rows}"
"""


def test_parameters_are_filled_in_and_keep_their_kind(declare):
    pipeline = declare(TEXT, {"dead": "x", "topics": "a, b"})
    source = pipeline.sources["orders"]
    assert (source.topics, source.dead_letter, pipeline.sinks["out"].target.rows) == (("a", "b"), "x-dead", 5)


def test_a_parameter_without_a_default_has_to_be_given(declare):
    message = r"\[parameters\] dead: has no default \(Where the dead go.\); give it with --set dead=VALUE"
    with pytest.raises(BadPipeline, match=message):
        declare(TEXT)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"row": "5"}, "there is no parameter 'row'; did you mean rows?"),
        ({"rows": "many"}, "'many' is not like its default 5"),
    ],
)
def test_a_wrong_value_on_the_command_line_is_told(declare, given, message):
    with pytest.raises(BadPipeline) as raised:
        declare(TEXT, {"dead": "x", **given})
    assert message in str(raised.value)


def test_a_parameter_that_nobody_declared_is_told_where_it_is_used(declare):
    with pytest.raises(BadPipeline, match=r"\[sinks.out\] rows: there is no parameter 'row'; did you mean rows\?"):
        declare(TEXT.replace("${rows}", "${row}"), {"dead": "x"})


def test_two_dollars_leave_a_parameter_alone():
    assert fill_in("$${a} and ${a}", {"a": True}, "", Problems("file")) == "${a} and true"
