from __future__ import annotations

from zurau.testing import Broker


def test_a_directory_that_is_not_there_is_refused(zurau, tmp_path):
    refused = zurau("cluster", "recover", str(tmp_path / "none"), "--gone", "1,2")
    assert refused.returncode == 2
    assert "there is no directory" in refused.stderr
    assert not (tmp_path / "none").exists()


def test_brokers_are_named_by_their_ids(zurau, tmp_path):
    refused = zurau("cluster", "recover", str(tmp_path), "--gone", "1,two")
    assert refused.returncode == 2
    assert "is no list of broker ids" in refused.stderr


def test_a_broker_that_votes_alone_has_nothing_to_recover(zurau, tmp_path):
    with Broker(dir=str(tmp_path), node_id=3):
        running = zurau("cluster", "recover", str(tmp_path), "--gone", "1,2")
        assert "a broker is running on" in running.stderr
    shown = zurau("cluster", "recover", str(tmp_path), "--gone", "1,2", "--execute", "--yes")
    assert (shown.returncode, "have a majority without 1,2" in shown.stderr) == (0, True)
