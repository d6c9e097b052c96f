"""What a file with `[trigger] real_time` may not have, as far as the file shows it."""

from __future__ import annotations

from pyspark_zurau.engine.declaration import Pipeline, TopicTarget
from pyspark_zurau.engine.problems import Problems
from pyspark_zurau.options.values import Values

#: Options of our data source that Spark's own connector, which reads and writes here, does not have.
NOT_FOR_SOURCES = ("history", "mirrorToGroup")
NOT_FOR_SINKS = ("includeTimestamp",)


def check_real_time(pipeline: Pipeline, problems: Problems) -> None:
    """Spark itself knows which queries it can run so."""
    if pipeline.trigger.real_time is None:
        return
    for name, sink in pipeline.sinks.items():
        place = f"sinks.{name}"
        if not isinstance(sink.target, TopicTarget):
            problems.add(place, "kind", f"{sink.kind}: in real time Spark writes topics only; use kind = 'topic'")
            continue
        if sink.mode == "complete":
            problems.add(place, "mode", "complete: there is no whole result in real time; use mode = 'update'")
        for option in NOT_FOR_SINKS:
            if option in Values(sink.target.options):
                problems.add(
                    place, "options", f"{option}: Spark's own connector, which writes here, has no such option"
                )
    for name, source in pipeline.sources.items():
        for option in NOT_FOR_SOURCES:
            if option in Values(source.options):
                what = f"{option}: Spark's own connector, which reads here, has no such option"
                problems.add(f"sources.{name}", "options", what)
