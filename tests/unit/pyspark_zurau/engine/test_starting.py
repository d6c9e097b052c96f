"""What is put in order before a sink's query starts."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.sinks.starting import remove_half_written


def test_what_spark_was_about_to_note_when_it_was_killed_goes_and_what_it_noted_stays(tmp_path):
    kept = ["metadata", "offsets/0", "offsets/.0.crc", "commits/0", "sources/0/.tmp-of-a-source"]
    gone = ["offsets/.1.8a2f.tmp", "offsets/..1.8a2f.tmp.crc", "commits/.1.77.tmp"]
    for name in kept + gone:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    remove_half_written(f"file://{tmp_path}")
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == set(kept)


def test_a_checkpoint_that_only_spark_can_reach_is_left_alone():
    remove_half_written("s3://bucket/checkpoint")
