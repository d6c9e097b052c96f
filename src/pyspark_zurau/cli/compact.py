"""`zurau pipeline compact`: few large files from many small ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zurau.cli.options import Format, FormatOption
from zurau.cli.output import show_rows
from zurau.cli.progress import progress
from zurau.settings import MIB


def compact(
    lake: Annotated[Path, typer.Argument(metavar="LAKE", help="Directory of the lake, Parquet or Delta.")],
    target_mib: Annotated[int, typer.Option("--target-mib", min=1, help="Files of this size are large enough.")] = 128,
    form: FormatOption = Format.TABLE,
) -> None:
    """Merge the small files of a lake, folder by folder.

    A pipeline may go on writing meanwhile. What was interrupted is finished or undone the next time; no row is lost. Do
    not read a Parquet lake in the same moment: a reader may see rows twice. Delta tables have no such moment.

    \b
    Examples:
      zurau pipeline compact ./lake
      zurau pipeline compact ./lake --target-mib 512
    """
    from pyspark_zurau.lake.compact import compact as merge
    from pyspark_zurau.lake.compact import count_files

    with progress("compacting", count_files(lake)) as advance:
        outcome = merge(lake, target_bytes=target_mib * MIB, advance=advance)
    columns = ("files_before", "files_after", "merged_rows")
    show_rows([{column: getattr(outcome, column) for column in columns}], columns, form)
