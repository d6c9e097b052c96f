"""A page with the metrics of a running pipeline, for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from zurau.errors import SettingsError

TYPE = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def serve_metrics(address: str | None, read: Callable[[], str]) -> Iterator[str | None]:
    """Answers `GET /metrics` with what `read` gives, while the block runs. Gives where; None without an address."""
    if address is None:
        yield None
        return

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "there is only /metrics")
                return
            body = read().encode()
            self.send_response(200)
            self.send_header("Content-Type", TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nobody wants a line for every scrape."""

    host, port = _parse(address)
    try:
        server = ThreadingHTTPServer((host, port), Page)
    except OSError as error:
        raise SettingsError(f"--metrics {address}: cannot listen there: {error.strerror}; choose another") from None
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield f"{host}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _parse(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise SettingsError(f"--metrics {address!r} is not HOST:PORT; for example 127.0.0.1:9404")
    return host or "127.0.0.1", int(port)
