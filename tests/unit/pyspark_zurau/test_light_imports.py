"""Spark starts a dozen Python processes for a small pipeline, and each imports its part: that part is to be light."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")


@pytest.mark.parametrize("module", ["reading.stream", "reading.batch", "writing.sink", "cli.run"])
def test_what_spark_or_the_command_starts_with_brings_no_pandas_along(module):
    code = f"import sys, pyspark_zurau.{module}; print([n for n in ('pandas', 'pyarrow.dataset') if n in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
