"""Installs every client that is not in .venv, so that no test has to: `python tests/compatibility/prepare.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from apache_kafka import Unavailable, classpath
from environments import OLD_CLIENTS, franz_go, java_program, kafkajs_modules, kcat, old_client_python


def main() -> None:
    os.environ["ZURAU_FETCH_LANGUAGES"] = "1"
    steps: dict[str, Callable[[], object]] = {"kcat": kcat, "kafkajs": kafkajs_modules, "Apache Kafka": classpath}
    steps["franz-go"] = franz_go
    for program in ("JavaClient", "StreamsWordCount"):
        steps[program] = lambda program=program: java_program(program)[-1]  # type: ignore[misc]
    for name in OLD_CLIENTS:
        steps[name] = lambda name=name: old_client_python(name)  # type: ignore[misc]
    failed = False
    for name, step in steps.items():
        try:
            print(f"{name}: {step()}", flush=True)
        except Unavailable as missing:
            failed = True
            print(f"{name}: not available: {missing}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
