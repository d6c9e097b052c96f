"""Spark's own Kafka connector, to measure against: jars from Maven, kept in .cache."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".cache" / "spark-connector"
SCALA = "2.13"
KAFKA_CLIENTS = "3.9.1"
COMMONS_POOL = "2.12.1"


def connector_jars(version: str, token_provider_version: str) -> list[Path]:
    """The jars for `spark.jars`; empty, with a sentence that says why, when they cannot be had."""
    if shutil.which("mvn") is None:
        print("Spark's own connector is left out: mvn is not on the PATH")
        return []
    artifacts = (
        ("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", version),
        ("org.apache.spark", f"spark-token-provider-kafka-0-10_{SCALA}", token_provider_version),
        ("org.apache.kafka", "kafka-clients", KAFKA_CLIENTS),
        ("org.apache.commons", "commons-pool2", COMMONS_POOL),
    )
    jars = []
    for group, name, its_version in artifacts:
        jar = CACHE / f"{name}-{its_version}.jar"
        if not jar.exists() and not _download(f"{group}:{name}:{its_version}", jar):
            print(f"Spark's own connector is left out: Maven has no {group}:{name}:{its_version} (try --connector)")
            return []
        jars.append(jar)
    return jars


def _download(artifact: str, jar: Path) -> bool:
    jar.parent.mkdir(parents=True, exist_ok=True)
    maven = ["mvn", "-q", "-B"]
    get = [*maven, "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"]
    copy = [*maven, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={jar.parent}"]
    return (
        all(
            subprocess.run(command, cwd=jar.parent, capture_output=True, check=False).returncode == 0
            for command in (get, copy)
        )
        and jar.exists()
    )
