"""A cluster of real brokers, each a process of its own, that can be killed, paused and cut off from each other."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from zurau.broker.metadata_voters import METADATA_VOTERS_MAX
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.errors import ClientError
from zurau.client.operations import Operations
from zurau.ids import TopicPartition
from zurau.node.process import BrokerProcess
from zurau.node.settings import load
from zurau.testing.broker import TEST_DEFAULTS
from zurau.testing.network import CLIENTS, Network, ReservedPort

#: Whoever is not ready by then has not started; a machine under load takes its time.
READY_WITHIN_S = 120.0
LOOK_AGAIN_S = 0.05
#: Whoever does not say by then who leads is not asked.
ASK_WITHIN_S = 1.0


class _Member:
    """A broker with its ports, which it keeps for the life of the cluster."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.kafka = ReservedPort()
        self.peer = ReservedPort()
        network = cluster.network
        self.reached_by_peers = network.open(number, self.peer.number, for_clients=False)
        self.reached_by_clients = (
            network.open(number, self.kafka.number, for_clients=True) if cluster.cuts_clients else self.kafka.address
        )
        self.process: BrokerProcess | None = None
        #: What it said when it was last ready.
        self.ready_line = ""

    def close(self) -> None:
        self.kafka.close()
        self.peer.close()


class Cluster:
    """Brokers 1 to N, ready when the `with` block begins and gone when it ends.

        with Cluster(brokers=3) as cluster:
            cluster.create_topic("orders", partitions=3, replication_factor=3)
            cluster.kill(cluster.leader_of("orders"))

    Settings are those of `zurau serve`, for all brokers. Without `dir` the data lives in a temporary directory and is
    removed at the end. With `cuts_clients=True` clients go through the cluster's network as well, so that `isolate`
    and `cut_clients` keep a broker from them too. `racks`: where brokers stand, one after the other and over again.
    """

    def __init__(
        self, brokers: int = 3, *, cuts_clients: bool = False, racks: Sequence[str] = (), **settings: Any
    ) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster has at least one broker, not {brokers}")
        load(TEST_DEFAULTS | settings)  # a wrong setting is noticed here, where it is written
        self._count = brokers
        self.cuts_clients = cuts_clients
        self._directory: str | None = settings.pop("dir", None)
        self._settings = settings
        self._racks = racks
        self._temporary: str | None = None
        self._members: dict[int, _Member] = {}
        self.network: Network

    # Where it is

    @property
    def brokers(self) -> tuple[int, ...]:
        """Their ids, running or not."""
        return tuple(self._members)

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`: all of them."""
        return ",".join(member.reached_by_clients for member in self._members.values())

    def address_of(self, broker: int) -> str:
        """Where clients find one of them."""
        return self._member(broker).reached_by_clients

    def http_address_of(self, broker: int) -> str:
        """Where a broker speaks HTTP: `Cluster(http="127.0.0.1:0")`. Another one after each start, if the port is 0."""
        found = re.search(r" http=(\S+)", self._member(broker).ready_line)
        if found is None:
            raise RuntimeError('these brokers speak no HTTP; make them with Cluster(http="127.0.0.1:0")')
        return found[1]

    @property
    def directory(self) -> Path:
        """Everything is in here: a directory `broker-N`, and its log `broker-N.log`, for each broker."""
        assert self._directory is not None, "a cluster without `dir` gets its directory when it starts"
        return Path(self._directory)

    def directory_of(self, broker: int) -> Path:
        return self.directory / f"broker-{broker}"

    def log_of(self, broker: int) -> str:
        """What it has said so far."""
        return (self.directory / f"broker-{broker}.log").read_text(errors="replace")

    def pid_of(self, broker: int) -> int | None:
        """None when it is not running."""
        return self._process(broker).pid

    # Its life

    def start(self) -> Self:
        if self._members:
            raise RuntimeError("this cluster is running; make another Cluster() for a second one")
        if self._directory is None:
            self._directory = self._temporary = tempfile.mkdtemp(prefix="zurau-cluster-")
        self.network = Network()
        try:
            for number in range(1, self._count + 1):
                self._members[number] = _Member(self, number)
            for number in self._members:
                self._begin(number)
            self._wait_for(self.brokers)
            self._wait_until_formed()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all in good order; what is stopped already stays so."""
        with ThreadPoolExecutor(max(1, len(self._members))) as pool:
            list(pool.map(lambda member: member.process and member.process.stop(), self._members.values()))
        for member in self._members.values():
            member.close()
        if self._members:
            self.network.close()
        self._members.clear()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._directory = self._temporary = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # What can go wrong with a broker

    def kill(self, broker: int) -> None:
        """As `kill -9`: no chance to flush, close or say goodbye."""
        self._process(broker).kill()

    def shut_down(self, broker: int) -> None:
        """Stop one in good order."""
        self._process(broker).stop()

    def pause(self, broker: int) -> None:
        """It does nothing any more, and its connections stay: a machine that hangs."""
        self._process(broker).pause()

    def resume(self, broker: int) -> None:
        self._process(broker).resume()

    def restart(self, broker: int) -> None:
        """Start it again, at the same address and with the same data; one that runs is stopped in good order first.
        Returns when it is ready."""
        self.start_again(broker)
        self._wait_for([broker])

    def start_again(self, broker: int) -> None:
        """As `restart`, without waiting for it: alone it may not become ready."""
        self._process(broker).stop()
        self._begin(broker)

    def wait_until_ready(self, *brokers: int) -> None:
        """Until those that were started again serve; all of them if none is named."""
        self._wait_for(brokers or self.brokers)

    def wipe(self, broker: int) -> None:
        """Kill it and take its disk: what comes back has nothing."""
        self.kill(broker)
        shutil.rmtree(self.directory_of(broker), ignore_errors=True)

    # What can go wrong between them

    def cut(self, a: int, b: int, *, one_way: bool = False) -> None:
        """Nothing passes between two brokers any more; or, one way, nothing from the first to the second."""
        self._check(a, b)
        self.network.cut(a, b)
        if not one_way:
            self.network.cut(b, a)

    def isolate(self, broker: int) -> None:
        """Cut one off from all others, and from its clients if they go through the network too."""
        for other in self._members:
            if other != broker:
                self.cut(broker, other)
        if self.cuts_clients:
            self.cut_clients(broker)

    def cut_clients(self, broker: int) -> None:
        """Clients do not reach it any more."""
        self._check(broker)
        if not self.cuts_clients:
            raise RuntimeError("clients do not go through this cluster's network; make it with cuts_clients=True")
        self.network.cut(CLIENTS, broker)
        self.network.cut(broker, CLIENTS)

    def split(self, *sides: tuple[int, ...]) -> None:
        """Cut the cluster into parts: `split((1, 2), (3,))`."""
        for left, right in combinations(sides, 2):
            for a in left:
                for b in right:
                    self.cut(a, b)

    def slow(self, a: int, b: int, delay_s: float) -> None:
        """What two brokers say to each other takes so much longer."""
        self._check(a, b)
        self.network.slow(a, b, delay_s)
        self.network.slow(b, a, delay_s)

    def heal(self) -> None:
        """Everything passes again, at once."""
        self.network.heal()

    # What tests ask and do all the time

    def create_topic(
        self, name: str, partitions: int = 1, replication_factor: int | None = None, **settings: str
    ) -> str:
        """With as many replicas as there are brokers, three at most, unless told. Settings are those of topics, by
        Kafka's names with underscores: `replication_mode="isr"`."""
        wanted = {setting.replace("_", "."): value for setting, value in settings.items()}
        factor = replication_factor or min(3, self._count)
        with ClusterClient(self.bootstrap) as client:
            return Admin(client).create_topic(NewTopic(name, partitions, factor, settings=wanted)).name

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The broker that says of itself that it leads a partition; waits until one does."""
        name = TopicPartition(topic, partition)
        leading: int = _wait_until(
            lambda: next(filter(partial(self._leads, name), self.brokers), None), f"nobody leads {name}"
        )
        return leading

    # Inside

    def _settings_of(self, broker: int) -> dict[str, object]:
        member = self._members[broker]
        settings: dict[str, object] = TEST_DEFAULTS | self._settings
        settings |= {"kafka": member.kafka.address, "node_id": broker}
        if self._racks:
            settings["broker_rack"] = self._racks[(broker - 1) % len(self._racks)]
        if self.cuts_clients:
            settings["advertise"] = member.reached_by_clients
        if len(self._members) > 1:
            settings |= {"peer": member.peer.address, "advertise_peer": member.reached_by_peers}
            settings["join"] = ",".join(each.reached_by_peers for each in self._members.values())
        return settings

    def _begin(self, broker: int) -> None:
        log = self.directory / f"broker-{broker}.log"
        process = BrokerProcess(self.directory_of(broker), log, self._settings_of(broker))
        self._members[broker].process = process
        process.start()

    def _wait_for(self, brokers: Iterable[int]) -> None:
        for broker in brokers:
            self._members[broker].ready_line = self._process(broker).wait_until_ready(READY_WITHIN_S)

    def _wait_until_formed(self) -> None:
        def knows_all(broker: int) -> bool:
            with ClusterClient(self.address_of(broker)) as client:
                client.refresh(())
                return len(client.metadata.brokers) == len(self._members)

        voters = min(METADATA_VOTERS_MAX, self._count)
        voters -= voters % 2 == 0  # an even number survives no more failures

        def has_its_voters() -> bool:
            """Or else a broker that a test kills at once could be one too many."""
            with ClusterClient(self.bootstrap) as client:
                return len(Operations(client).voters()) == voters

        _wait_until(lambda: all(map(knows_all, self.brokers)), "not all brokers know each other")
        _wait_until(has_its_voters, "not all that should vote on the metadata do")

    def _leads(self, name: TopicPartition, broker: int) -> bool:
        if self.pid_of(broker) is None:
            return False
        with suppress(ClientError), ClusterClient(self.address_of(broker), timeout_s=ASK_WITHIN_S) as client:
            return client.leader_of(name) == broker
        return False

    def _member(self, broker: int) -> _Member:
        self._check(broker)
        return self._members[broker]

    def _process(self, broker: int) -> BrokerProcess:
        process = self._member(broker).process
        assert process is not None, "a member has a process"
        return process

    def _check(self, *brokers: int) -> None:
        for broker in brokers:
            if broker not in self._members:
                there = ", ".join(map(str, self._members)) or "none: it is not running"
                raise ValueError(f"there is no broker {broker}; this cluster has {there}")


def _wait_until(found: Callable[[], Any], problem: str) -> Any:
    until = time.monotonic() + READY_WITHIN_S
    while not (value := found()):
        if time.monotonic() > until:
            raise TimeoutError(f"{problem}, after {READY_WITHIN_S} s")
        time.sleep(LOOK_AGAIN_S)
    return value
