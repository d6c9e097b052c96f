from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.spark.home import quick_home


def test_a_quick_home_has_all_but_the_zip_of_pyspark(tmp_path):
    home = quick_home(tmp_path)
    assert (home / "bin" / "spark-submit").is_file()
    assert any((home / "jars").glob("spark-core*.jar"))
    assert not (home / "python").exists()


def test_a_quick_home_is_made_once(tmp_path):
    assert quick_home(tmp_path) == quick_home(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
