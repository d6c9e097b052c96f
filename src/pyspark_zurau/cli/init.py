"""`zurau pipeline init`: a pipeline's file, begun from what is in a topic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zurau.cli.options import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT_S, Bootstrap, Timeout, TopicName, open_cluster
from zurau.cli.output import counted, say
from zurau.errors import SettingsError

#: Beyond which the file says nothing about values that no sample has shown.
RECORDS = 1000


def init(
    topic: TopicName,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file. Default: TOPIC.toml, here.")
    ] = None,
    records: Annotated[
        int, typer.Option("--records", "-n", min=1, help="How many of the newest to look at.")
    ] = RECORDS,
    avro_schema: Annotated[
        Path | None,
        typer.Option("--avro-schema", metavar="FILE", help="For Avro values. Default: any .avsc here that fits."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Write over a file that is there.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Begin a pipeline's file from what is in a topic.

    Looks at the newest records, and writes down what they are: columns of JSON and CSV with their types, the pattern
    of logs that are well known, the schema file that Avro values fit.

    \b
    Examples:
      zurau pipeline init orders
      zurau pipeline init web-logs --out logs.toml
      zurau pipeline init goals --avro-schema goal.avsc
    """
    from pyspark_zurau.engine.inference.guess import guess
    from pyspark_zurau.engine.inference.write import pipeline_file
    from pyspark_zurau.engine.sample import newest_records

    file = out or Path(f"{topic}.toml")
    if file.exists() and not force:
        raise SettingsError(f"{file} is there already; name another with --out, or write over it with --force")
    with open_cluster(bootstrap, timeout) as cluster:
        values = [bytes(record.value) for record in newest_records(cluster, topic, records) if record.value is not None]
    if not values:
        raise SettingsError(f"there is nothing in {topic} to look at; write some records first: zurau produce {topic}")
    found = guess(values, [avro_schema] if avro_schema else sorted(file.parent.glob("*.avsc")))
    file.write_text(pipeline_file(topic, bootstrap, str(file), found, len(values)), encoding="utf-8")
    say(f"{topic}: {found.what}; {found.fits} of {counted(len(values), 'record')} fit")
    for note in found.notes:
        say(f"note: {note}")
    typer.echo(f"wrote {file}; see its rows with `zurau pipeline preview {file}`")
