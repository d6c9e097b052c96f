"""The example at the top of docs/pipelines.md, word for word."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyarrow.parquet as pq

from pyspark_zurau.cli.run import read_once
from pyspark_zurau.engine.read import read_pipeline
from pyspark_zurau.engine.topics import create_missing

pytestmark = pytest.mark.xdist_group("spark")

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text(encoding="utf-8")


def test_the_first_example_of_the_page_does_what_the_page_says(broker, run, produce, contents, tmp_path, monkeypatch):
    declared, *_ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (lines,) = re.findall(r"<<END\n(.*?)END\n", PAGE, re.DOTALL)
    (shown,) = re.findall(r"--keys\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("visits.toml").write_text(declared, encoding="utf-8")
    pipeline = read_once(read_pipeline(Path("visits.toml"), bootstrap=broker.bootstrap))
    create_missing(pipeline)
    produce("visits", *(line.encode() for line in lines.splitlines()))
    assert run(pipeline).state == "finished"
    pages = {f"{record.key.decode()}\t{record.value.decode()}" for _, record in contents("pages")}
    assert pages == set(shown.splitlines())
    visits = [json.loads(line) for line in lines.splitlines()[:-1]]
    assert sorted(pq.read_table("lake/visits")["ms"].to_pylist()) == sorted(visit["ms"] for visit in visits)
    assert [record.value for _, record in contents("visits-dead")] == [lines.splitlines()[-1].encode()]
