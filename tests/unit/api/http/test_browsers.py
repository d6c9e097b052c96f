"""Pages of others do not get in by a browser; programs do."""

from __future__ import annotations

import pytest

from zurau.api.http.browsers import refuse_pages_of_others
from zurau.api.http.messages import HttpRequest
from zurau.errors import Refused


def look(host: str, origin: str | None = None, names: tuple[str, ...] = ()) -> None:
    headers = {"host": host} if origin is None else {"host": host, "origin": origin}
    refuse_pages_of_others(HttpRequest("GET", "/topics", headers), names)


@pytest.mark.parametrize(
    "host",
    [
        "localhost:8080",
        "LOCALHOST",
        "127.0.0.1:8080",
        "10.1.2.3",
        "[::1]:8080",
        "[fe80::1]",
        "broker-1",
        "a.localhost:1",
    ],
)
def test_whatever_nobody_else_can_own_is_a_name_of_this_broker(host):
    look(host)
    look(host, f"http://{host}")


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:80", "127.0.0.1.attacker.example", "1.2.3"])
def test_a_name_that_somebody_else_may_own_is_refused_until_it_is_listed(host):
    with pytest.raises(Refused, match="--http-names"):
        look(host)
    look(host, names=("zurau.example", host.partition(":")[0]))
    look(host, names=("*",))


@pytest.mark.parametrize("origin", ["http://attacker.example", "http://localhost:8081", "null", "http://localhost"])
def test_a_page_from_elsewhere_is_refused(origin):
    with pytest.raises(Refused, match="may not use this broker"):
        look("localhost:8080", origin)


def test_a_page_from_here_may_ask():
    look("localhost:8080", "http://localhost:8080")
