"""`zurau pipeline list`: the pipelines that come with the package, and what can be set in one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pyspark_zurau.engine.locate import locate, ready_made
from pyspark_zurau.engine.parameters import Parameter, read_parameters
from pyspark_zurau.engine.problems import Problems
from pyspark_zurau.engine.read import read_document
from zurau.cli.options import Format, FormatOption
from zurau.cli.output import say, show_rows

COLUMNS = ("name", "doc", "parameters", "file")


def list_pipelines(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|FILE]", help="Only this one, with all that can be set.")
    ] = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """List the ready-made pipelines, or the parameters of one.

    \b
    Examples:
      zurau pipeline list
      zurau pipeline list logs
      zurau pipeline list --format json
    """
    if name is not None:
        _show_parameters(name, form)
        return
    pipelines = [_describe(ready, file) for ready, file in ready_made().items()]
    show_rows(pipelines, COLUMNS[:2] if form is Format.TABLE else COLUMNS, form)
    if form is Format.TABLE:
        say("`zurau pipeline list NAME` tells what can be set, and where its file is")


def _describe(name: str, file: Path) -> dict[str, Any]:
    document = read_document(file)
    parameters = list(_parameters(file, document))
    return {"name": name, "doc": document.get("doc", ""), "parameters": parameters, "file": str(file)}


def _show_parameters(name: str, form: Format) -> None:
    file = locate(name)
    parameters = _parameters(file, read_document(file)).values()
    rows = [{"parameter": each.name, "default": each.default, "doc": each.doc} for each in parameters]
    show_rows(rows, ("parameter", "default", "doc"), form)
    if form is Format.TABLE:
        say(f"the file: {file}")


def _parameters(file: Path, document: dict[str, Any]) -> dict[str, Parameter]:
    problems = Problems(str(file))
    parameters = read_parameters(document, problems)
    problems.raise_any()
    return parameters
