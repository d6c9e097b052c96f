"""Java is given Spark's classes where they are kept for this Java and this Spark, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.spark.class_archive import archive_file, with_classes_ready


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java of our own that has the classes of Java itself ready; gives that archive."""
    base = tmp_path / "java" / "lib" / "server" / "classes.jsa"
    base.parent.mkdir(parents=True)
    base.write_bytes(b"classes")
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return base


def test_without_an_archive_the_options_are_as_they_were(java):
    assert with_classes_ready("-Xmx1g") == "-Xmx1g"


def test_with_an_archive_java_is_told_where_it_is(java):
    archive = archive_file()
    archive.write_bytes(b"")
    assert with_classes_ready("-Xmx1g").split() == [
        f"-XX:SharedArchiveFile={archive}",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
        "-Xlog:class+path=off",
        "-Xmx1g",
    ]


@pytest.mark.parametrize("given", ["-Xshare:off", "-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=/mine"])
def test_a_user_who_speaks_of_archives_is_obeyed(java, given):
    archive_file().write_bytes(b"")
    assert with_classes_ready(given) == given


def test_another_java_has_another_archive(java):
    before = archive_file()
    java.write_bytes(b"newer classes")
    assert archive_file() != before


def test_a_java_without_classes_of_its_own_has_none(java):
    java.unlink()
    assert archive_file() is None


def test_a_spark_of_somebody_else_has_none(java, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert archive_file() is None


def test_a_home_whose_name_java_would_split_has_none(java, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    assert archive_file() is None
