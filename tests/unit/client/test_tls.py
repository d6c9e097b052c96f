"""TLS between the client and a broker that stands behind a proxy which takes the TLS off."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "compatibility"))

from certificates import Certificates, Unavailable, make_certificates

from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.errors import NotTrusted
from zurau.client.producer import Producer
from zurau.client.security import Security, Tls
from zurau.errors import SettingsError
from zurau.testing import Broker


class TlsProxy:
    """Takes TLS connections and passes on what is in them; with `asks`, only from clients with a certificate."""

    def __init__(self, certificates: Certificates, *, asks: bool = False) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates.broker)
        if asks:
            self._context.load_verify_locations(certificates.authority)
            self._context.verify_mode = ssl.CERT_REQUIRED
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.target_port = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with (
                self._context.wrap_socket(client, server_side=True) as secured,
                socket.create_connection(("127.0.0.1", self.target_port)) as broker,
            ):
                back = threading.Thread(target=_pump, args=(broker, secured), daemon=True)
                back.start()
                _pump(secured, broker)
                back.join()
        except OSError:
            client.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    try:
        return make_certificates(tmp_path_factory.mktemp("certificates"))
    except Unavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture
def proxied(certificates: Certificates, request: pytest.FixtureRequest) -> Iterator[str]:
    proxy = TlsProxy(certificates, asks=getattr(request, "param", False))
    with Broker(advertise=proxy.address) as broker:
        proxy.target_port = broker.port
        yield proxy.address
    proxy.close()


def open_tls(address: str, **tls: object) -> Cluster:
    return Cluster(address, timeout_s=10, security=Security(tls=Tls(**tls)))


def test_megabytes_of_records_go_both_ways(proxied, certificates):
    values = [b"%06d" % number * 500 for number in range(4000)]
    with open_tls(proxied, trusted_file=str(certificates.authority)) as cluster:
        with Producer(cluster) as producer:
            for value in values:
                producer.send("t", value)
        found: list[bytes] = []
        with Consumer(cluster) as consumer:
            consumer.assign(dict.fromkeys(cluster.partitions_of("t"), 0))
            while len(found) < len(values):
                found += [record.value for some in consumer.poll(5) for record in some.records]
    assert sorted(found) == values


def test_a_broker_that_nobody_vouches_for_is_not_trusted(proxied):
    with open_tls(proxied) as cluster, pytest.raises(NotTrusted, match=r"is not trusted: .*ssl\.truststore\.location"):
        cluster.refresh()


def test_a_broker_of_another_name_is_not_trusted_unless_names_do_not_matter(proxied, certificates):
    named = proxied.replace("127.0.0.1", "localhost")
    with (
        open_tls(named, trusted_file=str(certificates.authority)) as cluster,
        pytest.raises(NotTrusted, match="Hostname mismatch"),
    ):
        cluster.refresh()
    with open_tls(named, trusted_file=str(certificates.authority), checks_host_name=False) as cluster:
        cluster.refresh()


@pytest.mark.parametrize("proxied", [True], indirect=True)
def test_a_client_shows_its_certificate_from_a_file_or_from_text(proxied, certificates):
    trusted = certificates.authority.read_text()
    for own in ({"own_file": str(certificates.client)}, {"own_pem": certificates.client.read_text()}):
        with open_tls(proxied, trusted_pem=trusted, **own) as cluster:
            cluster.refresh()
            assert cluster.metadata.brokers


def test_a_port_without_tls_is_recognised(broker):
    with open_tls(broker.bootstrap) as cluster, pytest.raises(NotTrusted, match="could not agree on TLS"):
        cluster.refresh()


def test_a_store_that_is_not_pem_is_named_with_the_way_out(proxied, tmp_path):
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    with open_tls(proxied, trusted_file=str(store)) as cluster, pytest.raises(SettingsError, match="keytool -list"):
        cluster.refresh()
    with open_tls(proxied, trusted_file="nowhere.pem") as cluster, pytest.raises(SettingsError, match="No such file"):
        cluster.refresh()
