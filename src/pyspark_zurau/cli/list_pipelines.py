"""`zurau pipeline list`: the pipelines that come with the package, and what can be set in them."""

from __future__ import annotations

from pyspark_zurau.engine.locate import ready_made
from pyspark_zurau.engine.parameters import read_parameters
from pyspark_zurau.engine.problems import Problems
from pyspark_zurau.engine.read import read_document
from zurau.cli.options import Format, FormatOption
from zurau.cli.output import show_rows


def list_pipelines(form: FormatOption = Format.TABLE) -> None:
    """List the ready-made pipelines.

    \b
    Examples:
      zurau pipeline list
      zurau pipeline list --format json
    """
    rows = []
    for name, file in ready_made().items():
        document = read_document(file)
        parameters = read_parameters(document, Problems(str(file)))
        rows.append({"name": name, "doc": document.get("doc", ""), "parameters": list(parameters), "file": str(file)})
    show_rows(rows, ("name", "doc", "parameters", "file"), form)
