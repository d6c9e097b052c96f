"""The jars of Spark's own Kafka connector, for real-time mode: fetched from Maven once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[2] / ".cache" / "spark-connector"
#: The newest that Maven has; see docs/spark.md.
ARTIFACTS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)


def connector_jars() -> str:
    """For the setting `spark.jars`."""
    jars = []
    for artifact in ARTIFACTS:
        _, name, version = artifact.split(":")
        jar = CACHE / f"{name}-{version}.jar"
        if not jar.exists():
            if shutil.which("mvn") is None:
                pytest.skip("mvn is not on the PATH; it fetches Spark's own Kafka connector")
            CACHE.mkdir(parents=True, exist_ok=True)
            copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={CACHE}"]
            subprocess.run(copy, cwd=CACHE, capture_output=True, check=True, timeout=200)
        jars.append(str(jar))
    return ",".join(jars)
