"""kcat, the command that people reach for first, from the distribution's package."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing

import environments
import pytest
from apache_kafka import Unavailable
from driver import CLIENTS

from zurau.client.cluster import Cluster
from zurau.client.consumer import Fetcher
from zurau.ids import TopicPartition
from zurau.records.compression import Compression

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
REFERENCE = CLIENTS[0]


@pytest.fixture
def kcat(bootstrap):
    """Runs kcat to its end and returns what it printed."""
    try:
        program = environments.kcat()
    except Unavailable as missing:
        pytest.skip(str(missing))

    def run(*arguments: str, stdin: str = "") -> str:
        command = [program, "-b", bootstrap, "-m", "10", *arguments]
        outcome = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout

    return run


@pytest.mark.parametrize("codec", CODECS)
def test_lines_go_in_compressed_and_come_out(kcat, topic, codec):
    lines = "".join(f"line {number} of a text that compresses well well well\n" for number in range(500))
    kcat("-P", "-t", topic, "-z", codec, stdin=lines)
    assert kcat("-C", "-t", topic, "-e", "-q", "-o", "beginning") == lines


@pytest.mark.parametrize("codec", CODECS)
def test_what_was_compressed_is_stored_compressed(kcat, topic, codec, bootstrap):
    """A broker whose version ranges confuse this client makes it quietly stop compressing."""
    kcat("-P", "-t", topic, "-z", codec, stdin="a line that repeats itself\n" * 1000)
    with Cluster(bootstrap) as cluster, closing(Fetcher(cluster)) as fetcher:
        fetcher.assign({TopicPartition(topic, 0): 0})
        batches = [header for fetched in fetcher.poll(10) for header, _ in fetched.batches]
    assert {header.compression for header in batches} == {Compression[codec.upper()]}


def test_keys_headers_and_offsets_are_shown(kcat, topic):
    kcat("-P", "-t", topic, "-K", ":", "-H", "colour=blue", stdin="one:first\ntwo:second\n")
    shown = kcat("-C", "-t", topic, "-e", "-q", "-f", "%o %k %s %h\n")
    assert shown == "0 one first colour=blue\n1 two second colour=blue\n"


def test_metadata_lists_the_brokers_and_their_topics(kcat, make_topic, bootstrap, brokers):
    topic = make_topic(partitions=3)
    described = json.loads(kcat("-L", "-J", "-t", topic))
    assert bootstrap in [broker["name"] for broker in described["brokers"]]
    assert len(described["brokers"]) == brokers
    assert [partition["partition"] for partition in described["topics"][0]["partitions"]] == [0, 1, 2]


def test_an_offset_is_found_by_its_time(kcat, topic, bootstrap):
    REFERENCE.run("produce", bootstrap, topic=topic, count=100, timestamp_ms=1_700_000_000_000)
    assert kcat("-Q", "-t", f"{topic}:0:1700000000042").split() == [topic, "[0]", "offset", "42"]


def test_a_group_of_one_reads_everything(kcat, make_topic, bootstrap):
    topic = make_topic(partitions=2)
    REFERENCE.run("produce", bootstrap, topic=topic, count=100)
    read = kcat("-G", f"kcat-{topic}", "-c", "100", "-q", "-X", "auto.offset.reset=earliest", topic)
    assert len(read.splitlines()) == 100
