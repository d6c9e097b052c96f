"""A Postgres of one's own: in a temporary directory, on a free port, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

#: Postgres refuses to run as root; Debian's package brings this user.
USER = "postgres"
PATIENCE_S = 60.0


class Unavailable(Exception):
    """There is no Postgres on this machine."""


class PostgresServer:
    def __init__(self) -> None:
        programs = _find_programs()
        self._who: dict[str, Any] = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
        self._directory = Path(tempfile.mkdtemp(prefix="zurau-postgres-"))
        if self._who:
            shutil.chown(self._directory, USER, USER)
        self._data = self._directory / "data"
        self._run(programs / "initdb", "--pgdata", self._data, "--username", USER, "--auth", "trust", "--no-sync")
        self.port = _free_port()
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [programs / "postgres", "-D", self._data, "-p", str(self.port), *settings],
                stdout=log,
                stderr=log,
                cwd=self._directory,
                **self._who,
            )
        self._wait()

    @property
    def dsn(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{USER}"

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)
        shutil.rmtree(self._directory)

    def _run(self, *command: object) -> None:
        words = [str(word) for word in command]
        subprocess.run(words, check=True, capture_output=True, cwd=self._directory, timeout=PATIENCE_S, **self._who)

    def _wait(self) -> None:
        import psycopg

        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.dsn).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline_s or self._process.poll() is not None:
                    raise
                time.sleep(0.05)
            else:
                return


def _find_programs() -> Path:
    """Debian keeps them by version, out of the way."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not versions:
        raise Unavailable("there is no Postgres server; apt-get install postgresql")
    return versions[-1].parent


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
