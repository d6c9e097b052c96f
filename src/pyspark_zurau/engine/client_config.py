"""`client_config`: a file that says how to log in to a cluster, as `zurau --client-config` takes it.

So no password has to be in a pipeline's own file. It is read where the command runs; tasks are told what it says.
"""

from __future__ import annotations

from pathlib import Path

from pyspark_zurau.engine.table import Table
from zurau.client.security import is_about_security, read_properties
from zurau.errors import SettingsError


def client_options(file: str | None) -> dict[str, str]:
    """What of it is about security, as options of the data source. Raises `SettingsError` if there is no such file."""
    properties = read_properties(Path(file)) if file else {}
    return {f"kafka.{name}": value for name, value in properties.items() if is_about_security(name)}


def read_client_config(table: Table) -> dict[str, str]:
    try:
        return client_options(table.text("client_config"))
    except SettingsError as error:
        table.report("client_config", str(error))
        return {}
