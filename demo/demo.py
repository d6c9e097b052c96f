"""Log lines of several services go in, a consumer group reads them, and half-way the broker is killed with -9.

Everything is real: `zurau serve` as a process of its own, librdkafka as the client, files in a directory. At the end
every acknowledged line must have been read, in order, each exactly once in the log. Run it with `make demo`.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from rich.console import Console
from rich.live import Live
from rich.table import Table

TOPIC = "logs"
PARTITIONS = 3
SERVICES = ("web", "checkout", "search", "mailer")
LEVELS = ("INFO", "INFO", "INFO", "WARN", "ERROR")


class BrokerProcess:
    """`zurau serve`, started, killed and started again on the same directory and port."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> float:
        """Returns the seconds from nothing to ready."""
        began = time.perf_counter()
        ready, told = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "zurau", "serve", "--dir", self._directory, "--kafka", self.bootstrap,
             "--num-partitions", str(PARTITIONS), "--ready-fd", str(told), "--log-level", "error"],
            pass_fds=[told], stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(told)
        with os.fdopen(ready) as pipe:
            line = pipe.readline()
        if not line:
            raise SystemExit("the broker did not start; run `zurau serve` to see why")
        self._port = int(line.split("kafka=")[1].split()[0].rpartition(":")[2])
        return time.perf_counter() - began

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


@dataclass
class Tally:
    """What was acknowledged and what was read, by service; lines are numbered from 0."""

    acknowledged: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    read: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    errors: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failed: int = 0

    def table(self, broker: str) -> Table:
        table = Table(title=f"broker: {broker}", title_justify="left")
        for column in ("service", "acknowledged", "read by the group", "ERROR lines"):
            table.add_column(column, justify="left" if column == "service" else "right")
        for service in SERVICES:
            table.add_row(
                service,
                f"{len(self.acknowledged[service]):,}",
                f"{len(set(self.read[service])):,}",
                f"{self.errors[service]:,}",
            )
        return table


def produce(bootstrap: str, tally: Tally, lines: int, half_way: threading.Event) -> None:
    """Stream lines of all services in; the client retries over the crash by itself, idempotently."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0})
    dice = random.Random(1883)

    def acknowledged(service: str, number: int, error: KafkaError | None) -> None:
        if error is None:
            tally.acknowledged[service].add(number)
        else:
            tally.failed += 1

    for number in range(lines):
        for service in SERVICES:
            line = f"{number} {dice.choice(LEVELS)} {service} took {dice.randint(1, 900)} ms"
            while True:
                try:
                    producer.produce(
                        TOPIC, line, key=service,
                        on_delivery=lambda error, _, service=service, number=number: acknowledged(
                            service, number, error
                        ),
                    )  # fmt: skip
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
        if number == lines // 2:
            half_way.set()
        time.sleep(0.0002)
    producer.flush(60)


def consume(bootstrap: str, tally: Tally, finished: threading.Event) -> None:
    """One member of the group. Offsets are committed after the lines were counted."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest",
         "enable.auto.commit": False, "session.timeout.ms": 10_000, "log_level": 0}
    )  # fmt: skip
    consumer.subscribe([TOPIC])
    while not finished.is_set():
        messages: list[Message] = consumer.consume(500, timeout=0.2)
        good = [message for message in messages if message.error() is None]
        for message in good:
            number, level, service, *_ = (message.value() or b"").decode().split()
            tally.read[service].append(int(number))
            tally.errors[service] += level == "ERROR"
        if good:
            consumer.commit(asynchronous=True)
    consumer.close()


def copies_in_the_log(bootstrap: str) -> dict[str, list[int]]:
    """Read the whole topic once more, from the beginning and without a group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "audit", "enable.auto.commit": False})
    stored: dict[str, list[int]] = defaultdict(list)
    for partition in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=10)
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        seen = 0
        while seen < end:
            for message in consumer.consume(1000, timeout=1):
                number, _, service, *_ = (message.value() or b"").decode().split()
                stored[service].append(int(number))
                seen = (message.offset() or 0) + 1
    consumer.close()
    return stored


def run(lines: int, console: Console) -> bool:
    tally, half_way, finished = Tally(), threading.Event(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="zurau-demo-") as directory:
        broker = BrokerProcess(directory)
        console.print(f"a broker on an empty directory was ready in {broker.start() * 1000:.0f} ms")
        producing = threading.Thread(target=produce, args=(broker.bootstrap, tally, lines, half_way))
        members = [threading.Thread(target=consume, args=(broker.bootstrap, tally, finished)) for _ in range(2)]
        for thread in (producing, *members):
            thread.start()
        state = "serving"
        with Live(tally.table(state), console=console, refresh_per_second=8) as live:
            killed = False
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                if half_way.is_set() and not killed:
                    killed = True
                    broker.kill()
                    live.update(tally.table("killed with -9"))
                    took = broker.start()
                    state = f"restarted and recovered in {took * 1000:.0f} ms"
                live.update(tally.table(state))
                everything_read = all(tally.acknowledged[service] <= set(tally.read[service]) for service in SERVICES)
                if not producing.is_alive() and everything_read:
                    break
                time.sleep(0.1)
        console.print()
        finished.set()
        for thread in (producing, *members):
            thread.join()
        stored = copies_in_the_log(broker.bootstrap)
        broker.stop()
    return judge(tally, stored, console)


def judge(tally: Tally, stored: dict[str, list[int]], console: Console) -> bool:
    """Say what was lost, doubled or out of order: nothing, or the demo fails."""
    lost = sum(len(tally.acknowledged[service] - set(stored[service])) for service in SERVICES)
    unread = sum(len(tally.acknowledged[service] - set(tally.read[service])) for service in SERVICES)
    doubled = sum(len(stored[service]) - len(set(stored[service])) for service in SERVICES)
    in_order = all(stored[service] == sorted(stored[service]) for service in SERVICES)
    total = sum(map(len, tally.acknowledged.values()))
    console.print(
        f"{total:,} lines acknowledged, {lost} lost, {unread} unread, {doubled} stored twice, "
        f"{'in' if in_order else 'OUT OF'} order, {tally.failed} refused"
    )
    good = total > 0 and lost == unread == doubled == 0 and in_order
    verdict = "[bold green]nothing acknowledged was lost[/]" if good else "[bold red]this should not have happened[/]"
    console.print(verdict)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000, help="lines for each of the four services")
    arguments = parser.parse_args()
    return 0 if run(arguments.lines, Console()) else 1


if __name__ == "__main__":
    sys.exit(main())
