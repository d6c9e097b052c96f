"""Classes that Java finds ready when Spark starts.

A session loads, parses and verifies some twenty thousand classes, which is most of what its start costs. Java can keep
classes as they are in memory in a file, an archive (CDS), and map them the next time. The archive belongs to one Java
and one Spark; Java checks that itself, jar by jar, and goes on without an archive that does not fit.

Only for Spark on this machine, in the home that we give it: elsewhere Spark's jars are somebody else's.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from pyspark_zurau.spark.home import quick_home
from pyspark_zurau.spark.java import cache_directory, find_java_home
from zurau.errors import ZurauError

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
#: Whoever gives one of these knows better.
_OF_USERS = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit")
#: Java tells on stdout of every class that cannot be archived, and of an archive that does not fit.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
#: For a Java that runs for seconds: what it compiles it compiles quickly.
_SHORT_RUN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_TRAINING_S = 900


def with_classes_ready(options: str) -> str:
    """The options for Java, with the archive if there is one for this Java and this Spark."""
    archive = archive_file()
    if archive is None or not archive.exists() or any(word in options for word in _OF_USERS):
        return options
    return f"-XX:SharedArchiveFile={archive} {_QUIET} {options}".strip()


def archive_file() -> Path | None:
    """Where the archive is, or would be; None where Java or Spark have no place for one."""
    home = quick_home(cache_directory())
    if os.environ.get("SPARK_HOME", str(home)) != str(home):
        return None
    java_home = find_java_home()
    java = str(java_home / "bin" / "java") if java_home else shutil.which("java")
    # An archive of Spark's classes builds upon that of Java's own, which not every Java brings.
    base = Path(java).resolve().parents[1] / "lib" / "server" / "classes.jsa" if java else None
    if base is None or not base.exists() or any(character.isspace() for character in str(home)):
        return None
    facts = base.stat()
    of_what = f"{base} {facts.st_mtime_ns} {facts.st_size} {pyspark.__version__}"
    return home / f"classes-{hashlib.sha256(of_what.encode()).hexdigest()[:12]}.jsa"


def make_archive() -> Path | None:
    """Run Spark once with a bit of everything, and keep what it has loaded: some twenty seconds of CPU, and 200 MB.

    None where there can be no archive. Others may be making the same at this moment.
    """
    archive = archive_file()
    if archive is None:
        return None
    with tempfile.TemporaryDirectory(prefix="classes-", dir=archive.parent) as directory:
        fresh = Path(directory) / archive.name
        options = f"-XX:ArchiveClassesAtExit={fresh} {_QUIET} {_SHORT_RUN}"
        command = [sys.executable, "-m", "pyspark_zurau.spark.training", options, directory]
        # It has ended when Java has, which holds its output open as well.
        ended = subprocess.run(  # noqa: S603 - ourselves
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_TRAINING_S, check=False
        )
        if not fresh.exists():
            said = ended.stdout.decode(errors="replace")[-2000:]
            raise ZurauError(f"Java has kept no archive of Spark's classes; what it said:\n{said}")
        for old in archive.parent.glob("classes-*.jsa"):
            old.unlink(missing_ok=True)
        fresh.replace(archive)
    return archive
