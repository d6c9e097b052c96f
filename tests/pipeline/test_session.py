"""What a session of ours has that Spark's own has not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import pyspark

from pyspark_zurau.spark.class_archive import archive_file

pytestmark = pytest.mark.xdist_group("spark")


def test_workers_import_pyspark_where_it_is_installed_and_compiled(spark):
    place = Path(pyspark.__file__)
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: Path(pyspark.__file__)).first() == place


def test_java_has_sparks_classes_ready(spark):
    archive = archive_file()
    assert archive is None or archive.exists()
    java = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    given = f"-XX:SharedArchiveFile={archive}" in list(java.getInputArguments())
    assert given is (archive is not None)
