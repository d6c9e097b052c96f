"""Everything that brokers are said to survive, done to real ones under load; a checker holds what clients were told."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from zurau.chaos.experiment import Experiment, Plan
from zurau.chaos.faults import FAULTS, Fault
from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets
from zurau.client.producer import Producer, ProducerSettings
from zurau.ids import TopicPartition
from zurau.testing import Cluster

PATIENCE_S = 60
#: Together in one cluster, each once, in an order that is drawn.
FAMILIES = {
    "killed": ("leader killed", "follower killed", "controller killed", "coordinator killed", "all killed"),
    "paused": ("leader paused", "follower paused", "controller paused", "minority killed"),
    "cut": ("link cut", "link cut one way", "leader isolated", "cluster split"),
    "troubled": ("link flapping", "link slow", "disk full", "disk wiped", "rolling restart"),
}


def faults(family: str) -> tuple[Fault, ...]:
    return tuple(fault for fault in FAULTS if fault.name in FAMILIES[family])


def test_every_fault_is_in_a_family():
    assert sorted(name for names in FAMILIES.values() for name in names) == sorted(fault.name for fault in FAULTS)


@pytest.mark.parametrize("mode", ["quorum", "isr"])
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_lost_and_nobody_has_an_error_to_handle(family, mode):
    require_held(faults(family), mode, brokers=3)


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_five_brokers_survive_that_three_and_two_of_them_do_not_hear_each_other(mode):
    (split,) = [fault for fault in FAULTS if fault.name == "cluster split"]
    require_held((split,), mode, brokers=5)


def require_held(chosen: tuple[Fault, ...], mode: str, brokers: int) -> None:
    plan = Plan(
        minutes=PATIENCE_S,
        seed=1,
        brokers=brokers,
        mode=mode,
        faults=chosen,
        injections_max=len(chosen),
        partitions=3,
        hold_s=(0.5, 1.5),
    )
    with Cluster(brokers) as cluster:
        outcome = Experiment(plan, cluster).run()
    assert [str(violation) for violation in outcome.violations] == []
    assert sorted(each.fault for each in outcome.injections) == sorted(fault.name for fault in chosen)
    assert outcome.counts["given up"] == outcome.counts["lost"] == 0
    assert outcome.counts["acknowledged"] > 0 < outcome.counts["commits"]


def test_the_last_of_three_replicas_serves_all_that_was_acknowledged():
    with Cluster(5) as cluster, ClusterClient(cluster.bootstrap) as client:
        cluster.create_topic("t", replication_factor=3, replication_mode="isr")
        partition = TopicPartition("t", 0)
        lost: list[int] = []
        with Producer(client, ProducerSettings(linger_s=0, delivery_timeout_s=PATIENCE_S)) as producer:
            for number in range(300):
                producer.send("t", b"%d" % number, partition=0)
                if number in (100, 200):
                    producer.flush()
                    lost.append(cluster.leader_of("t"))
                    cluster.kill(lost[-1])
        assert cluster.leader_of("t") not in lost
        found: list[bytes] = []
        with Consumer(client) as consumer:
            consumer.assign({partition: 0})
            (end,) = end_offsets(client, [partition]).values()
            while consumer.positions[partition] < end:
                for _, records, _ in consumer.poll():
                    found += [bytes(record.value) for record in records]
    assert found == [b"%d" % number for number in range(300)]


def test_brokers_end_with_the_process_that_started_them(tmp_path):
    """Also when it is killed, and cannot stop them."""
    script = (
        "import sys, time\n"
        "from zurau.testing import Cluster\n"
        f"cluster = Cluster(2, dir={str(tmp_path)!r}).start()\n"
        "print(*map(cluster.pid_of, cluster.brokers), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as starter:
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(pids) == 2
        starter.send_signal(signal.SIGKILL)
    deadline_s = time.monotonic() + PATIENCE_S
    while any(is_there(pid) for pid in pids):
        assert time.monotonic() < deadline_s, "they are still there"
        time.sleep(0.05)


def is_there(pid: int) -> bool:
    """A process that has ended and that nobody has asked about is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
