"""A whole cluster on one machine, and the files that run one on several."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
import yaml

from zurau.cli.deployment import write_deployment
from zurau.cli.main import main
from zurau.cli.up import PORTS_FILE, choose_ports
from zurau.client.cluster import Cluster

PATIENCE_S = 120


@contextmanager
def running(directory, *options: str):
    """`zurau up`, and the rows of its table."""
    command = [sys.executable, "-m", "zurau", "up", "--brokers", "2", "--dir", str(directory), *options]
    command += ["--set", "offsets_topic_num_partitions=1", "--set", "flush=os"]
    with (directory / "up.err").open("wb") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        yield process, [line.split() for line in lines[1:]]
    finally:
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(PATIENCE_S) in (0, 1)


def wait_until(holds) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_brokers_run_start_again_when_they_are_killed_and_stop_with_it(tmp_path):
    with running(tmp_path, "--kafka", "127.0.0.1:0") as (_, rows):
        addresses = [row[1] for row in rows]
        with Cluster(addresses[0]) as client:
            client.refresh(())
            assert sorted(str(each.address) for each in client.metadata.brokers.values()) == sorted(addresses)
        os.kill(int(rows[1][3]), signal.SIGKILL)
        log = tmp_path / "broker-2.log"
        wait_until(lambda: log.read_text().count("ready:") == 2)
        ready = [line for line in log.read_text().splitlines() if "ready:" in line]
        assert addresses[1] in ready[1]
    assert not is_alive(int(rows[0][3]))
    wait_until(lambda: not can_connect(addresses[1]))


def can_connect(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def test_what_has_ended_stays_down_when_that_is_wanted(tmp_path):
    with running(tmp_path, "--kafka", "127.0.0.1:0", "--no-restart") as (process, rows):
        for row in rows:
            os.kill(int(row[3]), signal.SIGKILL)
        assert process.wait(PATIENCE_S) == 1
    assert "broker 2 has ended with -9" in (tmp_path / "up.err").read_text()


def test_ports_are_kept(tmp_path):
    (tmp_path / PORTS_FILE).write_text(json.dumps({"host": "127.0.0.1", "kafka": [5, 6], "peer": [7, 8]}))
    ports = choose_ports(tmp_path, 2, None)
    assert (ports.kafka_address(2), ports.peer_address(1)) == ("127.0.0.1:6", "127.0.0.1:7")
    assert choose_ports(tmp_path, 2, "10.0.0.1:100").kafka == [100, 101]


def test_a_wrong_setting_is_told_before_anything_starts(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["up", "--set", "retention_mss=5"])
    assert ended.value.code == 1
    assert "did you mean" in capsys.readouterr().err


@pytest.fixture
def written(tmp_path):
    write_deployment(tmp_path, 3)
    return tmp_path


def test_scripts_are_read_by_bash_without_complaint(written):
    for name in ("deploy.sh", "install.sh"):
        assert subprocess.run(["bash", "-n", written / name], check=False).returncode == 0
        assert os.access(written / name, os.X_OK)


def test_a_dry_run_says_what_would_be_done_on_every_machine(written):
    command = [written / "deploy.sh", "one", "two"]
    said = subprocess.run(command, env=os.environ | {"DRY_RUN": "1"}, capture_output=True, text=True, check=True).stdout
    assert "would run: ssh -o BatchMode=yes two sudo bash /tmp/zurau-deploy/install.sh" in said
    assert "one\\,two" in said
    assert "clients use: one:9092,two:9092" in said


def test_the_compose_file_names_every_broker(written):
    services = yaml.safe_load((written / "compose.yaml").read_text())["services"]
    assert list(services) == ["broker-1", "broker-2", "broker-3"]
    assert {service["environment"]["ZURAU_JOIN"] for service in services.values()} == {"broker-1,broker-2,broker-3"}
    assert services["broker-3"]["ports"] == ["9094:9092"]


def test_the_unit_and_its_settings_belong_together(written):
    unit = (written / "zurau.service").read_text()
    assert "EnvironmentFile=/etc/zurau.env" in unit
    assert "ZURAU_JOIN=host1,host2,host3" in (written / "zurau.env").read_text()
