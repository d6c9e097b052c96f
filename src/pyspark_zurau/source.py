"""The name `zurau` in Spark. Which reader or writer a query needs is decided here, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from pyspark_zurau.values import Values


class DefaultSource(DataSource):
    """Spark registers it by itself, because its package is called `pyspark_...`."""

    @classmethod
    def name(cls) -> str:
        return "zurau"

    def schema(self) -> StructType:
        from pyspark_zurau.columns import topic_schema
        from pyspark_zurau.options import wants_headers

        return topic_schema(with_headers=wants_headers(self._values()))

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_zurau.columns import checked_schema
        from pyspark_zurau.options import parse_batch_options
        from pyspark_zurau.reader import BatchReader

        return BatchReader(parse_batch_options(self._values()), checked_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from pyspark_zurau.columns import checked_schema
        from pyspark_zurau.options import parse_stream_options
        from pyspark_zurau.stream import StreamReader

        return StreamReader(parse_stream_options(self._values()), checked_schema(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_zurau.sink import BatchWriter, parse_write_options

        return BatchWriter(parse_write_options(self._values(), schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from pyspark_zurau.sink import StreamWriter, parse_write_options

        return StreamWriter(parse_write_options(self._values(), schema, overwrite=overwrite))

    def _values(self) -> Values:
        from pyspark_zurau.values import Values

        return Values(self.options)
