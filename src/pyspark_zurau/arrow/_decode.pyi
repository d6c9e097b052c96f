from collections.abc import Sequence

from pyspark_zurau.arrow.layout import Columns, Part

def decode(parts: Sequence[Part], start: int, end: int, wanted: int) -> Columns: ...
