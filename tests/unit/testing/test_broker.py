"""The broker that users' tests start in their own process."""

from __future__ import annotations

import asyncio
import socket

import pytest

from zurau.client.admin import Admin
from zurau.client.cluster import Cluster
from zurau.errors import SettingsError
from zurau.journal.reading import read_journal
from zurau.node.disk import RealDisk
from zurau.testing import Broker


def can_connect(broker: Broker) -> bool:
    try:
        socket.create_connection((broker.host, broker.port), timeout=20).close()
    except ConnectionRefusedError:
        return False
    return True


def test_it_is_ready_in_the_block_and_gone_after_it():
    with Broker() as broker:
        assert can_connect(broker)
        assert broker.directory.exists()
    assert not can_connect(broker)
    assert not broker.directory.exists()


def test_it_works_in_async_code():
    async def use() -> bool:
        async with Broker() as broker:
            return await asyncio.to_thread(can_connect, broker)

    assert asyncio.run(use())


def test_a_directory_of_the_callers_own_is_kept(tmp_path):
    with Broker(dir=str(tmp_path / "data")) as broker:
        assert broker.directory == tmp_path / "data"
    assert read_journal(RealDisk(tmp_path / "data")).known.closed, "stopped in good order"


def test_it_can_be_stopped_twice_and_started_again(tmp_path):
    broker = Broker(dir=str(tmp_path))
    for _ in range(2):
        broker.start()
        assert can_connect(broker)
        broker.stop()
        broker.stop()


def test_a_setting_that_does_not_exist_is_named_where_it_is_written():
    with pytest.raises(SettingsError, match=r"retention_mss.*did you mean"):
        Broker(retention_mss=5)


@pytest.mark.parametrize("settings", [{"node_id": -5}, {"retention_ms": "abc"}, {"kafka": "nowhere"}])
def test_a_wrong_value_is_noticed_where_it_is_written(settings):
    with pytest.raises(SettingsError):
        Broker(**settings)


def test_after_a_failed_start_it_can_be_stopped_and_leaves_nothing_behind():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = Broker(kafka=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(SettingsError):
            broker.start()
    broker.stop()
    assert not broker.directory.exists()


def test_the_fixture_is_found_without_an_import(zurau_broker):
    assert can_connect(zurau_broker)


def test_records_are_written_and_read_with_the_broker_alone():
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.produce("orders", "one", None, key="k", partition=1)
        broker.produce("orders", b"zero", partition=0)
        found = [(record.key, record.value) for record in broker.consume("orders")]
    assert found == [(None, b"zero"), (b"k", b"one"), (b"k", None)]


def test_a_topic_is_made_with_settings_of_its_own():
    with Broker() as broker:
        broker.create_topic("short", retention_ms="1000")
        with Cluster(broker.bootstrap) as cluster:
            settings = {entry.name: entry.value for entry in Admin(cluster).topic_settings("short")}
    assert settings["retention.ms"] == "1000"


def test_a_restart_keeps_address_and_data():
    with Broker() as broker:
        before = broker.bootstrap
        broker.produce("orders", "kept")
        broker.restart()
        assert (broker.bootstrap, [record.value for record in broker.consume("orders")]) == (before, [b"kept"])
