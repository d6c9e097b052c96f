"""Nine brokers and a thousand partitions with three replicas each, on one machine: `python bench/nine_brokers.py`.

Creates them, restarts the brokers one by one, kills one, spreads replicas anew, and says how long each took; and what
the idle partitions cost each broker (the goal is under two percent of a core).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

from measure import cpu_s, resident_bytes, show
from zurau.client.admin import Admin
from zurau.client.cluster import Cluster as Client
from zurau.client.cluster.metadata import PartitionInfo
from zurau.client.operations import Operations
from zurau.testing import Cluster

PATIENCE_S = 600
LOOK_S = 0.5
SETTLE_S = 10
BUDGET_PERCENT = 2


def timed(what: str, act: Callable[[], object], rows: list[tuple[str, str]]) -> None:
    begin_s = time.monotonic()
    act()
    rows.append((what, f"{time.monotonic() - begin_s:.1f} s"))
    print(*rows[-1], flush=True)


def wait_until(cluster: Cluster, holds: Callable[[list[PartitionInfo]], bool], problem: str) -> None:
    """Until the partitions of all topics are as they should be, as the brokers that answer see them."""
    until_s = time.monotonic() + PATIENCE_S
    with Client(cluster.bootstrap, timeout_s=60) as client:
        while True:
            topics = Admin(client).describe_cluster().topics.values()
            if holds([each for topic in topics for each in topic.partitions]):
                return
            assert time.monotonic() < until_s, problem
            time.sleep(LOOK_S)


def is_whole(partitions: list[PartitionInfo]) -> bool:
    return all(each.leader >= 0 and len(each.in_sync) == len(each.replicas) for each in partitions)


def is_led(partitions: list[PartitionInfo]) -> bool:
    return all(each.leader >= 0 for each in partitions)


def create(cluster: Cluster, partitions: int, mode: str) -> None:
    for number in range(10):
        cluster.create_topic(f"bench-{number}", partitions=partitions // 10, replication_mode=mode)
    wait_until(cluster, is_whole, "not every partition has its leader and replicas")


def restart_all(cluster: Cluster, rows: list[tuple[str, str]]) -> None:
    for broker in cluster.brokers:
        cluster.restart(broker)
        wait_until(cluster, is_whole, f"broker {broker} does not catch up")
        print("restarted", broker, flush=True)
    with Client(cluster.bootstrap, timeout_s=60) as client:
        rows.append(("voters of the metadata", str(len(Operations(client).voters()))))


def kill_one(cluster: Cluster) -> None:
    victim = cluster.brokers[-1]
    cluster.kill(victim)
    wait_until(
        cluster,
        lambda partitions: is_led(partitions) and all(each.leader != victim for each in partitions),
        "what the dead one led is led by nobody",
    )


def rebalance(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "zurau", "cluster", "rebalance", "--yes", "-b", cluster.bootstrap]
    subprocess.run([*command, "--timeout", "60"], check=True, stdout=subprocess.DEVNULL)
    wait_until(cluster, is_whole, "replicas do not catch up")


def idle(cluster: Cluster, idle_s: float, rows: list[tuple[str, str]]) -> None:
    time.sleep(SETTLE_S)
    pids = {broker: cluster.pid_of(broker) for broker in cluster.brokers}
    before = {broker: cpu_s(pid) for broker, pid in pids.items() if pid is not None}
    time.sleep(idle_s)
    percents = [100 * (cpu_s(pids[broker] or 0) - begin) / idle_s for broker, begin in before.items()]
    memory = [resident_bytes(pid) / 2**20 for pid in pids.values() if pid is not None]
    rows.append(("idle, percent of a core per broker", f"{min(percents):.1f} to {max(percents):.1f}"))
    rows.append(("goal", f"under {BUDGET_PERCENT}"))
    rows.append(("memory per broker", f"{min(memory):.0f} to {max(memory):.0f} MiB"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=9)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--mode", default="quorum", choices=["quorum", "isr"])
    parser.add_argument("--idle", type=float, default=30.0, help="seconds to watch them do nothing")
    options = parser.parse_args()
    rows: list[tuple[str, str]] = []
    cluster = Cluster(options.brokers, disk_low_bytes=0)
    try:
        timed(f"{options.brokers} brokers started", cluster.start, rows)
        timed(f"{options.partitions} partitions made", lambda: create(cluster, options.partitions, options.mode), rows)
        idle(cluster, options.idle, rows)
        timed("all restarted, one by one", lambda: restart_all(cluster, rows), rows)
        timed("one killed, all led again", lambda: kill_one(cluster), rows)
        timed("it is back", lambda: (cluster.restart(cluster.brokers[-1]), wait_until(cluster, is_whole, "")), rows)
        timed("rebalanced", lambda: rebalance(cluster), rows)
    finally:
        cluster.stop()
    show("nine brokers", ["took"], {what: [took] for what, took in rows})


if __name__ == "__main__":
    main()
