"""Flags, then environment, then file, then defaults; one name for a setting everywhere."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from zurau.errors import SettingsError
from zurau.node.run import Node
from zurau.node.settings import all_settings, load, parse_address


def write(directory: Path, text: str) -> Path:
    file = directory / "zurau.toml"
    file.write_text(text)
    return file


def test_flags_win_over_environment_and_environment_over_the_file(tmp_path: Path):
    file = write(tmp_path, "num_partitions = 2\nnode_id = 2\nretention_ms = 2\n")

    settings = load({"num_partitions": 4}, {"ZURAU_NUM_PARTITIONS": "3", "ZURAU_NODE_ID": "3"}, file)

    assert (settings.broker.num_partitions, settings.node.node_id, settings.log.retention_ms) == (4, 3, 2)


def test_the_file_understands_kafkas_names(tmp_path: Path):
    settings = load(file=write(tmp_path, '"num.partitions" = 5\n"log.retention.ms" = 7\n"retention.bytes" = 9\n'))

    assert (settings.broker.num_partitions, settings.log.retention_ms, settings.log.retention_bytes) == (5, 7, 9)


def test_an_unknown_name_in_the_file_is_refused_with_the_closest_one(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"no setting 'num_partition'; did you mean 'num_partitions'"):
        load(file=write(tmp_path, "num_partition = 1\n"))


def test_a_misspelt_variable_is_refused_and_others_are_left_alone():
    load(environment={"ZURAU_BOOTSTRAP": "x:1", "HOME": "/"})

    with pytest.raises(SettingsError, match=r"ZURAU_NUM_PARTITION; did you mean 'num_partitions'"):
        load(environment={"ZURAU_NUM_PARTITION": "1"})


def test_a_value_out_of_bounds_is_refused():
    with pytest.raises(SettingsError, match=r"num.partitions=0 is too small; use 1 or more"):
        load({"num_partitions": 0})


def test_a_wrong_value_is_refused_with_the_place_it_was_written(tmp_path: Path):
    file = tmp_path / "zurau.toml"
    file.write_text("retention_ms = -5")
    with pytest.raises(SettingsError, match=r"too small.*comes from .*zurau.toml"):
        load(file=file)
    with pytest.raises(SettingsError, match="comes from the environment variable ZURAU_NODE_ID"):
        load(environment={"ZURAU_NODE_ID": "one"})
    with pytest.raises(SettingsError, match="comes from --node-id"):
        load(flags={"node_id": "one"})


@pytest.mark.parametrize("text", ["localhost", "x:99999", "x:port", ":", ""])
def test_a_bad_address_is_refused_with_an_example(text: str):
    with pytest.raises(SettingsError, match=r"is not HOST:PORT; for example 127.0.0.1:9092"):
        parse_address(text, "--kafka")


def test_addresses_may_be_ipv6_or_every_one():
    assert parse_address("[::1]:9092", "--kafka") == ("::1", 9092)
    assert parse_address(":9092", "--kafka") == ("0.0.0.0", 9092)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "plaintext"])
def test_an_address_may_be_written_as_kafka_writes_it(protocol: str):
    assert parse_address(f"{protocol}://127.0.0.1:9092", "--kafka") == ("127.0.0.1", 9092)
    assert parse_address(f"{protocol}://:9092", "--kafka") == ("0.0.0.0", 9092)
    assert parse_address(f"{protocol}://[::1]:9092", "--kafka") == ("::1", 9092)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SASL_SSL://127.0.0.1:9092", "asks for SASL_SSL, which is not served yet; use PLAINTEXT://127.0.0.1:9092"),
        ("PLAINTEXT://a:1,PLAINTEXT://b:2", "names several addresses"),
        ("PLAINTEXT://a", "is not HOST:PORT"),
    ],
)
def test_an_address_that_is_not_served_is_refused_with_what_would_be(text: str, said: str):
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse_address(text, "--kafka")


def test_a_bad_address_is_noticed_before_anything_is_touched():
    with pytest.raises(SettingsError):
        Node(load({"kafka": "nowhere"}))


def test_no_two_settings_share_a_name():
    counts = Counter(declared.name for _, declared in all_settings())

    assert [name for name, count in counts.items() if count > 1] == []
