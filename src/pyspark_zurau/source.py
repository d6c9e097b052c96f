"""The name `zurau` in Spark. Which reader or writer a query needs is decided here, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from pyspark_zurau.worker.collector import freeze_imports
from pyspark_zurau.worker.plain_errors import told_plainly

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from pyspark_zurau.options.values import Values


class DefaultSource(DataSource):
    """Spark registers it by itself, because its package is called `pyspark_...`."""

    @classmethod
    def name(cls) -> str:
        return "zurau"

    @told_plainly
    def schema(self) -> StructType:
        from pyspark_zurau.arrow.columns import topic_schema
        from pyspark_zurau.options.read_options import check_options

        # Asked for by `load`, so a slip is told there and not when the query is run.
        return topic_schema(with_headers=check_options(self._values()).with_headers)

    @told_plainly
    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_zurau.arrow.columns import checked_schema
        from pyspark_zurau.options.read_options import parse_batch_options
        from pyspark_zurau.reading.batch import BatchReader

        freeze_imports()
        return BatchReader(parse_batch_options(self._values()), checked_schema(schema))

    @told_plainly
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from pyspark_zurau.arrow.columns import checked_schema
        from pyspark_zurau.options.read_options import parse_stream_options
        from pyspark_zurau.reading.stream import StreamReader

        return StreamReader(parse_stream_options(self._values()), checked_schema(schema))

    @told_plainly
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_zurau.writing.sink import BatchWriter, parse_write_options

        freeze_imports()
        return BatchWriter(parse_write_options(self._values(), schema, overwrite=overwrite))

    @told_plainly
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from pyspark_zurau.writing.sink import StreamWriter, parse_write_options

        freeze_imports()
        return StreamWriter(parse_write_options(self._values(), schema, overwrite=overwrite))

    def _values(self) -> Values:
        from pyspark_zurau.options.values import Values

        return Values(self.options)
