"""`zurau pipeline` on the command line, as far as it goes without Spark and without a broker."""

from __future__ import annotations

import json
import subprocess
import sys
from http.client import HTTPConnection
from unittest.mock import ANY

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.cli.metrics import serve_metrics
from pyspark_zurau.engine.known_checkpoints import note_checkpoint
from pyspark_zurau.engine.progress import FAILED, first_status, publish
from pyspark_zurau.engine.read import read_pipeline
from pyspark_zurau.spark.checkpoint_lock import CheckpointLock
from zurau.cli.main import main
from zurau.cli.optional import COMMANDS
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer
from zurau.errors import SettingsError
from zurau.testing import Broker


@pytest.fixture
def zurau(capsys, monkeypatch):
    """What a user types after `zurau pipeline`: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exited:
            main(["pipeline", *arguments])
        return int(exited.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint whose pipeline says that it is running."""
    publish(first_status("shop", str(tmp_path), {"out": "topic"}))
    return str(tmp_path)


@pytest.mark.parametrize("command", ["init", "preview", "run", "check", "status", "reset", "list", "host"])
def test_the_help_of_every_pipeline_command_has_an_example(zurau, command):
    code, output, _ = zurau(command, "--help")
    assert code == 0
    assert f"zurau pipeline {command}" in output.partition("Examples:")[2]


def test_the_help_of_zurau_names_pipelines_and_imports_no_spark():
    program = (
        "import sys\nfrom zurau.cli.main import main\ntry: main(['--help'])\nfinally: print('pyspark' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "pipeline" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "False"


def test_without_spark_the_error_says_what_to_install(zurau, monkeypatch):
    monkeypatch.setitem(COMMANDS, "pipeline", COMMANDS["pipeline"]._replace(module="no_such_package"))
    code, _, errors = zurau("list")
    assert code == 1
    assert errors.endswith('there is no module no_such_package; install it with pip install "zurau[spark]"\n')


def test_the_list_of_pipelines_fits_a_terminal(zurau):
    code, shown, _ = zurau("list")
    assert code == 0
    assert [line.split()[0] for line in shown.splitlines()] == ["NAME", "archive", "goals", "logs", "mirror", "serve"]
    assert max(map(len, shown.splitlines())) <= 120


def test_the_list_for_programs_has_the_parameters_too(zurau):
    _, shown, _ = zurau("list", "--format", "json")
    parameters = {each["name"]: each["parameters"] for each in json.loads(shown)}
    assert parameters["mirror"][:2] == ["source", "target"]


def test_what_can_be_set_in_a_pipeline_is_told_with_its_defaults_and_its_file(zurau):
    code, shown, said = zurau("list", "logs")
    assert code == 0
    assert "window 10 seconds How long a window is." in [" ".join(line.split()) for line in shown.splitlines()]
    assert said.rstrip().endswith("pipeline.toml")


def test_a_name_that_is_no_pipeline_is_told(zurau):
    code, _, errors = zurau("run", "longs")
    assert code == 1
    assert "there is no file and no ready-made pipeline 'longs'" in errors


def test_a_bad_file_is_refused_with_all_its_problems(zurau, tmp_path):
    (tmp_path / "bad.toml").write_text('nam = "x"\n')
    code, _, errors = zurau("run", str(tmp_path / "bad.toml"))
    assert code == 1
    assert [line.partition(".toml: ")[2].partition(":")[0] for line in errors.splitlines()] == [
        "name",
        "nam",
        "sources",
        "sinks",
    ]


def test_the_status_of_a_pipeline_that_runs_is_told(zurau, checkpoint):
    with CheckpointLock(checkpoint):
        code, output, _ = zurau("status", "--checkpoint", checkpoint, "--format", "json")
    (status,) = json.loads(output)
    assert (code, status["state"], status["queries"][0]["name"]) == (0, "running", "out")


def test_the_status_of_a_pipeline_that_died_says_so_and_fails(zurau, checkpoint):
    code, output, errors = zurau("status", "--checkpoint", checkpoint)
    assert (code, "lost" in output) == (1, True)
    assert "has ended without a word" in errors


def test_the_status_of_all_pipelines_at_home_is_told(zurau, tmp_path, monkeypatch):
    from dataclasses import replace

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("a", "b"):
        status = first_status(name, str(tmp_path / "zurau" / "pipelines" / name), {"out": "topic"})
        publish(replace(status, state=FAILED, reason="it was too hot"))
    code, output, _ = zurau("status", "--format", "csv")
    assert [line.split(",")[:3] for line in output.splitlines()[1:]] == [["a", "failed", "out"], ["b", "failed", "out"]]
    assert code == 1


def test_a_checkpoint_that_nobody_used_has_no_status(zurau, tmp_path):
    code, _, errors = zurau("status", "--checkpoint", str(tmp_path))
    assert code == 1
    assert f"no pipeline has run with the checkpoint {tmp_path}" in errors


def test_a_reset_throws_the_checkpoint_away_when_told_so(zurau, checkpoint, tmp_path):
    file = tmp_path.parent / f"{tmp_path.name}.toml"
    file.write_text(f"""
name = "shop"
checkpoint = "{checkpoint}"
[sources.orders]
topics = ["orders"]
format = "text"
dead_letter = "fail"
[sinks.out]
from = "orders"
kind = "console"
""")
    code, _, errors = zurau("reset", str(file), "--yes")
    assert code == 0, errors
    assert not tmp_path.exists()


CHECKED = """
name = "shop"
checkpoint = "{directory}/checkpoint"
bootstrap = "{bootstrap}"
[sources.orders]
topics = ["orders"]
format = "text"
dead_letter = "fail"
[steps.loud]
python = "{function}"
inputs = ["orders"]
[sinks.out]
from = "loud"
kind = "console"
"""


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import nothing_like_it", "shout.py cannot be imported: ModuleNotFoundError: No module named"),
        ("def louder(rows): ...", "there is no function 'shout' in shout.py"),
    ],
)
def test_a_check_tells_what_is_wrong_before_spark_starts(zurau, tmp_path, code, told):
    (tmp_path / "shout.py").write_text(code)
    file = tmp_path / "shop.toml"
    with Broker() as broker:
        file.write_text(CHECKED.format(directory=tmp_path, bootstrap=broker.bootstrap, function="shout.py:shout"))
        code, _, errors = zurau("check", str(file))
    assert code == 1
    assert "note: [sources.orders] topics: there is no topic 'orders'" in errors
    assert "[steps.loud] python: " in errors
    assert told in errors
    assert "asking Spark" not in errors


def test_a_file_is_begun_from_what_is_in_a_topic_and_never_written_over(zurau, tmp_path):
    file = tmp_path / "orders.toml"
    with Broker() as broker:
        with Cluster(broker.bootstrap) as cluster, Producer(cluster) as producer:
            for number in range(5):
                producer.send("orders", json.dumps({"id": number}).encode())
        begun = zurau("init", "orders", "--out", str(file), "--bootstrap", broker.bootstrap)
        again = zurau("init", "orders", "--out", str(file), "--bootstrap", broker.bootstrap)
    assert begun == (0, f"wrote {file}; see its rows with `zurau pipeline preview {file}`\n", ANY)
    assert "JSON; 5 of 5 records fit" in begun[2]
    assert read_pipeline(file).sources["orders"].schema == "id BIGINT"
    assert (again[0], "is there already" in again[2]) == (1, True)


def test_a_checkpoint_anywhere_is_found_by_status_until_it_is_gone(zurau, checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    note_checkpoint(checkpoint)
    with CheckpointLock(checkpoint):
        code, output, _ = zurau("status", "--format", "csv")
    assert (code, output.splitlines()[1].split(",")[:2]) == (0, ["shop", "running"])
    (tmp_path / "status.json").unlink()
    assert zurau("status", "--format", "json")[:2] == (0, "[]\n")


def test_metrics_are_served_while_a_pipeline_runs():
    with serve_metrics("127.0.0.1:0", lambda: "up 1\n") as address:
        connection = HTTPConnection(address)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"up 1\n")
        connection.request("GET", "/")
        assert connection.getresponse().status == 404
        connection.close()


def test_an_address_for_metrics_that_cannot_be_is_told():
    with pytest.raises(SettingsError, match="is not HOST:PORT"), serve_metrics("here", str):
        pass
