"""A browser is not its user: any page that somebody looks at can send requests to this machine.

Two checks keep pages of others out, and cost programs nothing:

- A page says where it is from (`Origin`). It has to be from here.
- A page from elsewhere can have its own name lead to this machine (DNS rebinding), and then it is from here. So names
  by which this broker may be called have to be known: addresses, `localhost`, names without a dot, which
  nobody can buy, and those that the operator lists.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from http import HTTPStatus

from zurau.api.http.messages import HttpRequest
from zurau.errors import Refused

#: In the list of names: whatever it is called.
ANY_NAME = "*"


def refuse_pages_of_others(request: HttpRequest, names: Sequence[str]) -> None:
    """Raises `Refused` with 403."""
    host = request.headers.get("host", "")
    name = _name(host)
    if not _is_known(name, names):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            f"this broker does not know that it is called {name!r}; if it is, start it with --http-names {name}",
        )
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise Refused(HTTPStatus.FORBIDDEN, f"pages of {origin} may not use this broker")


def _is_known(name: str, names: Sequence[str]) -> bool:
    if "." not in name and ":" not in name:
        return True
    if ANY_NAME in names or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.endswith(".localhost")
    return True


def _name(host: str) -> str:
    """Without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
