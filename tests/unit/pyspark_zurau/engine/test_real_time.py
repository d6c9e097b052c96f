"""`[trigger] real_time` in a file."""

from __future__ import annotations

import pytest

from pyspark_zurau.engine.problems import BadPipeline
from pyspark_zurau.engine.read import read_pipeline

HEAD = """
name = "clicks"
[sources.clicks]
topics = ["clicks"]
format = "text"
dead_letter = "fail"
"""
TOPIC = """
[sinks.out]
from = "clicks"
kind = "topic"
topic = "out"
"""


@pytest.fixture
def read(tmp_path):
    def read(text: str):
        file = tmp_path / "pipeline.toml"
        file.write_text(HEAD + text)
        return read_pipeline(file)

    return read


def test_the_time_between_checkpoints_is_kept(read):
    pipeline = read(TOPIC + "[trigger]\nreal_time = '5 minutes'")
    assert (pipeline.trigger.real_time, pipeline.sinks["out"].trigger.real_time) == ("5 minutes", "5 minutes")


def test_without_the_key_there_are_batches(read):
    assert read(TOPIC).trigger.real_time is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TOPIC + "[trigger]\nreal_time = 'soon'", "'soon' is not a duration"),
        (TOPIC + "[trigger]\nreal_time = '5 minutes'\nevery = '1 second'", "a trigger of its own"),
        (TOPIC + "[trigger]\nreal_time = '5 minutes'\navailable_now = true", "a trigger of its own"),
        (TOPIC + "every = '1 second'\n[trigger]\nreal_time = '5 minutes'", "has no meaning with real_time"),
        (TOPIC + "mode = 'complete'\n[trigger]\nreal_time = '5 minutes'", "no whole result in real time"),
        (TOPIC + "options.includeTimestamp = true\n[trigger]\nreal_time = '5 minutes'", "includeTimestamp"),
        (
            TOPIC.replace("topic", "console", 1).replace("topic =", "#") + "[trigger]\nreal_time = '5 minutes'",
            "topics only",
        ),
        ("options.mirrorToGroup = 'g'" + TOPIC + "[trigger]\nreal_time = '5 minutes'", "mirrorToGroup"),
    ],
)
def test_what_cannot_be_in_real_time_is_said(read, text, said):
    with pytest.raises(BadPipeline, match=said):
        read(text)
