"""The key `client_config`: how to log in is kept in a file of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

TOPICS = 'topics = ["orders"]'


@pytest.fixture
def login(tmp_path):
    file = tmp_path / "login.properties"
    file.write_text(
        "bootstrap.servers=elsewhere:1\nsecurity.protocol=SSL\nssl.endpoint.identification.algorithm=\nlinger.ms=5\n"
    )
    return file


def test_only_what_is_about_security_is_taken_from_the_file(changed, login):
    source = changed(TOPICS, f'{TOPICS}\nclient_config = "{login}"').sources["orders"]
    assert source.options == {"kafka.security.protocol": "SSL", "kafka.ssl.endpoint.identification.algorithm": ""}


def test_options_of_the_pipelines_own_file_count_before_it(changed, login):
    text = f'{TOPICS}\nclient_config = "{login}"\noptions.kafka.ssl.endpoint.identification.algorithm = "https"'
    assert changed(TOPICS, text).sources["orders"].options["kafka.ssl.endpoint.identification.algorithm"] == "https"


def test_a_sink_logs_in_with_a_file_of_its_own(changed, login):
    sink = changed('kind = "console"', f'kind = "topic"\ntopic = "out"\nclient_config = "{login}"').sinks["out"]
    assert sink.target.options["kafka.security.protocol"] == "SSL"


def test_an_empty_name_is_no_file(changed):
    assert changed(TOPICS, f'{TOPICS}\nclient_config = ""').sources["orders"].options == {}


def test_a_missing_file_is_told_with_its_place(problems, tmp_path):
    missing = tmp_path / "missing.properties"
    found = problems(TOPICS, f'{TOPICS}\nclient_config = "{missing}"')
    assert found == [f"[sources.orders] client_config: {missing}: No such file or directory"]
