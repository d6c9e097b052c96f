"""The topics of a pipeline, at their brokers: which are missing, and making those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from pyspark_zurau.engine.declaration import FAIL, Pipeline, Source, TopicTarget
from pyspark_zurau.engine.problems import Problem, Problems, did_you_mean
from pyspark_zurau.engine.read_sources import reader_options
from pyspark_zurau.engine.sinks.topic import writer_options
from pyspark_zurau.options.kafka_settings import Peer, parse_peer
from pyspark_zurau.options.values import Values
from zurau.client.admin import Admin, NewTopic
from zurau.client.errors import ClientError

TIMEOUT_S = 10.0


class Named(NamedTuple):
    """A topic, and the place in the file that names it."""

    peer: Peer
    topic: str
    table: str
    key: str


def named_topics(pipeline: Pipeline) -> Iterator[Named]:
    for name, source in pipeline.sources.items():
        peer = _peer(reader_options(source))
        for topic in source.topics:
            yield Named(peer, topic, f"sources.{name}", "topics")
        if source.dead_letter is not None and source.dead_letter != FAIL:
            yield Named(peer, source.dead_letter, f"sources.{name}", "dead_letter")
    for name, sink in pipeline.sinks.items():
        if isinstance(sink.target, TopicTarget) and sink.target.topic:
            yield Named(_peer(writer_options(sink.target)), sink.target.topic, f"sinks.{name}", "topic")


def find_missing(pipeline: Pipeline, problems: Problems) -> list[Problem]:
    """Topics that are not there, which `--create-topics` would make. A cluster that cannot be reached is a problem."""
    missing = []
    named = list(named_topics(pipeline))
    for peer in dict.fromkeys(one.peer for one in named):
        its_own = [one for one in named if one.peer == peer]
        try:
            there = _topics(peer)
        except ClientError as error:
            problems.add(its_own[0].table, "bootstrap", str(error))
            continue
        for _, topic, table, key in its_own:
            if topic not in there:
                hint = did_you_mean(topic, there) if key == "topics" else ""
                hint = hint if "did you mean" in hint else ""
                what = (
                    f"there is no topic {topic!r} at {peer.bootstrap}; make it with `zurau topic create {topic}`, or"
                    f" all of them with `zurau pipeline run --create-topics`{hint}"
                )
                missing.append(Problem(table, key, what))
    return list(dict.fromkeys(missing))


def create_missing(pipeline: Pipeline) -> list[str]:
    made = []
    for peer, topic, _, _ in named_topics(pipeline):
        if topic not in _topics(peer):
            with peer.open() as cluster:
                Admin(cluster).create_topic(NewTopic(topic))
            made.append(topic)
    return made


def partition_counts(source: Source) -> dict[str, int]:
    """Of every topic in the cluster of a source."""
    with _peer(reader_options(source)).open() as cluster:
        return {topic.name: len(topic.partitions) for topic in Admin(cluster).list_topics()}


def _peer(options: Mapping[str, str]) -> Peer:
    return replace(parse_peer(Values(options), client_id="zurau-pipeline"), timeout_s=TIMEOUT_S)


def _topics(peer: Peer) -> set[str]:
    with peer.open() as cluster:
        return {topic.name for topic in Admin(cluster).list_topics(with_internal=True)}
