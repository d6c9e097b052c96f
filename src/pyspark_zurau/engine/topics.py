"""The topics of a pipeline, at their brokers: which are missing, and making those."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_zurau.engine.declaration import FAIL, Pipeline, TopicTarget
from pyspark_zurau.engine.problems import Problems, did_you_mean
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.errors import ClientError

TIMEOUT_S = 10.0


def named_topics(pipeline: Pipeline) -> Iterator[tuple[str, str, str, str]]:
    """Cluster, topic, and the table and key that name it."""
    for name, source in pipeline.sources.items():
        for topic in source.topics:
            yield source.bootstrap, topic, f"sources.{name}", "topics"
        if source.dead_letter not in {None, FAIL}:
            assert source.dead_letter is not None
            yield source.bootstrap, source.dead_letter, f"sources.{name}", "dead_letter"
    for name, sink in pipeline.sinks.items():
        if isinstance(sink.target, TopicTarget) and sink.target.topic:
            yield sink.target.bootstrap, sink.target.topic, f"sinks.{name}", "topic"


def check_topics(pipeline: Pipeline, problems: Problems) -> None:
    named = list(named_topics(pipeline))
    for bootstrap in dict.fromkeys(place[0] for place in named):
        its_own = [place[1:] for place in named if place[0] == bootstrap]
        try:
            there = _topics(bootstrap)
        except ClientError as error:
            problems.add(its_own[0][1], "bootstrap", str(error))
            continue
        for topic, table, key in its_own:
            if topic not in there:
                hint = did_you_mean(topic, there) if "did you mean" in did_you_mean(topic, there) else ""
                problems.add(
                    table,
                    key,
                    f"there is no topic {topic!r} at {bootstrap}; make it with `zurau topic create {topic}`, or all of"
                    f" them with `zurau pipeline run --create-topics`{hint}",
                )


def create_missing(pipeline: Pipeline) -> list[str]:
    made = []
    for bootstrap, topic, _, _ in named_topics(pipeline):
        if topic not in _topics(bootstrap):
            with Cluster(bootstrap, client_id="zurau-pipeline", timeout_s=TIMEOUT_S) as cluster:
                Admin(cluster).create_topic(NewTopic(topic))
            made.append(topic)
    return made


def _topics(bootstrap: str) -> set[str]:
    with Cluster(bootstrap, client_id="zurau-pipeline", timeout_s=TIMEOUT_S) as cluster:
        return {topic.name for topic in Admin(cluster).list_topics(with_internal=True)}
