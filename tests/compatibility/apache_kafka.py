"""A real Apache Kafka, from the jars on Maven Central: the peer that tests and benches measure us against.

Nothing is installed. Maven copies the broker, its tools, Kafka Streams and what they need into a cache directory once
(about 60 MB, because Streams comes without RocksDB: it can keep its state in memory);
after that a single broker in KRaft mode starts in a few seconds in a directory of its own, on ports that the system
picked, and its command line tools run from the same class path against any broker, ours included.

    with ApacheKafka(directory) as kafka:
        run_tool("TopicCommand", "--bootstrap-server", kafka.bootstrap, "--list")

Run as a script it starts a broker and prints its address: `python tests/compatibility/apache_kafka.py`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

KAFKA_VERSION = os.environ.get("ZURAU_APACHE_KAFKA_VERSION", "4.3.1")
LOG4J_VERSION = "2.25.4"
#: Where the jars are kept between runs.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zurau" / "apache-kafka"

START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 30
#: A JVM starts sooner when it does not optimise what runs for two seconds. A bench passes its own options.
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")

#: Where Kafka keeps each tool; the others are in the first package.
_TOOL_PACKAGE = "org.apache.kafka.tools"
_TOOL_CLASSES = {
    "ConsumerGroupCommand": f"{_TOOL_PACKAGE}.consumer.group.ConsumerGroupCommand",
    "ConsoleConsumer": f"{_TOOL_PACKAGE}.consumer.ConsoleConsumer",
    "ReassignPartitionsCommand": f"{_TOOL_PACKAGE}.reassign.ReassignPartitionsCommand",
    "ConfigCommand": "kafka.admin.ConfigCommand",
    "StorageTool": "kafka.tools.StorageTool",
}

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>zurau</groupId>
  <artifactId>apache-kafka</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{kafka}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{kafka}</version></dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId><version>{kafka}</version>
      <exclusions><exclusion><groupId>org.rocksdb</groupId><artifactId>rocksdbjni</artifactId></exclusion></exclusions>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>{log4j}</version>
    </dependency>
  </dependencies>
</project>
"""

_PROPERTIES = """process.roles=broker,controller
node.id={node_id}
listeners={listeners},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners={listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
{quorum}
log.dirs={data}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
"""


class Unavailable(Exception):
    """Apache Kafka cannot be run on this machine; the text says what is missing."""


def classpath() -> str:
    """The class path of the cached jars, resolved with Maven the first time."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not on the PATH; Apache Kafka needs Java 17 and Maven")
    pom = _POM.format(kafka=KAFKA_VERSION, log4j=LOG4J_VERSION)
    directory = CACHE / f"{KAFKA_VERSION}-{hashlib.sha256(pom.encode()).hexdigest()[:8]}"
    if not (directory / "complete").exists():
        _resolve(directory, pom)
    return f"{directory}/jars/*"


def _resolve(directory: Path, pom: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pom.xml").write_text(pom)
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars", "-DincludeScope=runtime"]
    outcome = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=600, check=False)
    if outcome.returncode != 0:
        raise Unavailable(f"mvn could not resolve Apache Kafka {KAFKA_VERSION}: {outcome.stdout[-500:].strip()}")
    (directory / "complete").touch()


def run_tool(
    tool: str, *arguments: str, stdin: str | None = None, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command line tools to its end, by the name of its class."""
    command = ["java", *QUICK_JVM, "-Xmx256m", "-cp", classpath(), _TOOL_CLASSES.get(tool, f"{_TOOL_PACKAGE}.{tool}")]
    return subprocess.run(
        [*command, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
    )


class ApacheKafka:
    """One broker that is its own controller, in `directory`; leaving the `with` block stops it.

    `protocols` are security protocols that it listens for beside PLAINTEXT, each on a port of its own. One of several
    is given the ports of all their `controllers`, by node id; none of them is ready before a majority has started.
    """

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] = MappingProxyType({}),
        protocols: Sequence[str] = (),
        jvm_options: Sequence[str] = (*QUICK_JVM, "-Xmx512m"),
        node_id: int = 1,
        controllers: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._classpath = classpath()
        self._directory = directory
        self._settings = settings
        self._protocols = ("PLAINTEXT", *protocols)
        self._jvm_options = jvm_options
        self._node_id = node_id
        self._controllers = controllers
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: dict[str, int] = {}
        self.data = directory / "data"
        self.log = directory / "broker.out"

    @property
    def port(self) -> int:
        return self._ports["PLAINTEXT"]

    @property
    def bootstrap(self) -> str:
        return self.listener("PLAINTEXT")

    def listener(self, protocol: str) -> str:
        """The address for one of the security protocols that were asked for."""
        return f"127.0.0.1:{self._ports[protocol]}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def start(self) -> None:
        properties = self._write_properties()
        alone = () if self._controllers else ("--standalone",)
        formatted = run_tool("StorageTool", "format", *alone, "-t", "enVyYXUtdGVzdC1jbHVzdA", "-c", str(properties))
        if formatted.returncode != 0:
            raise Unavailable(f"Apache Kafka could not format its directory: {formatted.stdout}{formatted.stderr}")
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                ["java", *self._jvm_options, "-cp", self._classpath, "kafka.Kafka", str(properties)],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self._wait_ready()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def _write_properties(self) -> Path:
        self._directory.mkdir(parents=True, exist_ok=True)
        controller_port, *ports = free_ports(1 + len(self._protocols))
        quorum = f"controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}"
        if self._controllers:
            controller_port = self._controllers[self._node_id]
            voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in self._controllers.items())
            quorum = f"controller.quorum.voters={voters}"
        self._ports = dict(zip(self._protocols, ports, strict=True))
        listeners = ",".join(f"{protocol}://{self.listener(protocol)}" for protocol in self._protocols)
        text = _PROPERTIES.format(
            node_id=self._node_id, listeners=listeners, controller_port=controller_port, quorum=quorum, data=self.data
        )
        text += "".join(f"{name}={value}\n" for name, value in self._settings.items())
        path = self._directory / "server.properties"
        path.write_text(text)
        return path

    def _wait_ready(self) -> None:
        """The broker opens its port only when it can answer."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise Unavailable(f"Apache Kafka stopped while starting: {self.log.read_text()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        self.stop()
        raise Unavailable(f"Apache Kafka was not ready after {START_TIMEOUT_S} s")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with tempfile.TemporaryDirectory(prefix="apache-kafka-") as directory, ApacheKafka(Path(directory)) as kafka:
        print(kafka.bootstrap, kafka.pid, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
