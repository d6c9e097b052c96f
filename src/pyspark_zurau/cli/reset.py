"""`zurau pipeline reset`: forget how far a pipeline is, so that its next run reads everything again."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from pyspark_zurau.cli.options import BootstrapOption, PipelineFile, SetOption, open_pipeline
from pyspark_zurau.engine.progress import read_status
from pyspark_zurau.spark.checkpoint_lock import CheckpointLock, local_path
from zurau.cli.output import say
from zurau.errors import SettingsError


def reset(
    file: PipelineFile,
    set_: SetOption = None,
    bootstrap: BootstrapOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Throw a pipeline's checkpoint away: its next run begins anew.

    What it has written stays where it is: rows that are added (topics, Parquet, Delta without a key) will be there
    twice unless you remove them first; rows with a key replace themselves.

    \b
    Examples:
      zurau pipeline reset logs
      zurau pipeline reset logs.toml --yes
    """
    pipeline = open_pipeline(file, set_, bootstrap)
    directory = local_path(pipeline.checkpoint)
    if directory is None:
        raise SettingsError(f"the checkpoint {pipeline.checkpoint} is not on this machine; remove it where it is")
    if not directory.exists():
        say(f"{pipeline.name} has no checkpoint at {directory}: its next run begins at the beginning anyway")
        return
    with CheckpointLock(pipeline.checkpoint):
        status = read_status(pipeline.checkpoint)
        say(f"{directory} holds offsets and state of pipeline {pipeline.name}")
        for query in status.queries if status else ():
            say(f"  {query.name}: {query.batch_id + 1} batches, {query.state_rows} rows of state")
        if not yes and not typer.confirm("Throw it away?", err=True):
            raise typer.Exit(1)
        shutil.rmtree(directory)
    say("done; `zurau pipeline run` reads everything again")
